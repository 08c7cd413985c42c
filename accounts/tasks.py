"""Celery tasks."""

from celery import shared_task

from accounts import history, idempotency


@shared_task
def prune_idempotency_records() -> int:
    """Delete answers that were kept long enough; returns how many."""
    return idempotency.prune()


@shared_task
def prune_history() -> int:
    """Delete changes that were kept long enough; returns how many."""
    return history.prune()

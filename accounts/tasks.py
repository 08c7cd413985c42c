"""Celery tasks."""

from accounts import history, idempotency
from common.celery import app


@app.task
def prune_idempotency_records() -> int:
    """Delete answers that were kept long enough; returns how many."""
    return idempotency.prune()


@app.task
def prune_history() -> int:
    """Delete changes that were kept long enough; returns how many."""
    return history.prune()

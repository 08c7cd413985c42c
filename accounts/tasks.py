"""Celery tasks."""

from accounts import audit, idempotency, invitations
from common.celery import app


@app.task
def prune_idempotency_records() -> int:
    """Delete answers that were kept long enough; returns how many."""
    return idempotency.prune_records()


@app.task
def prune_invitations() -> int:
    """Delete invitations that ended long ago; returns how many."""
    return invitations.prune_invitations()


@app.task
def prune_history() -> int:
    """Delete changes that were kept long enough; returns how many."""
    return audit.prune_changes()

"""Celery tasks."""

from accounts import audit, idempotency, invitations, sign_in
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


@app.task
def prune_sessions() -> int:
    """Delete sessions that have expired; returns how many."""
    return sign_in.prune_sessions()

"""Celery tasks."""

from common.celery import app
from dashboard import samples


@app.task
def take_samples() -> int:
    """Sample the counts of every workspace; returns how many."""
    return samples.take_samples()


@app.task
def prune_samples() -> int:
    """Thin out old samples; returns how many were deleted."""
    return samples.prune_samples()

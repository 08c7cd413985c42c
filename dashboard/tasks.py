"""Celery tasks."""

from common.celery import app
from dashboard import sampling


@app.task
def take_samples() -> int:
    """Note how much there is and how much waits; how many workspaces."""
    return sampling.take_samples()


@app.task
def prune_samples() -> int:
    """Thin out old samples; how many went."""
    return sampling.prune_samples()

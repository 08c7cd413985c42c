"""Celery tasks."""

from celery import shared_task

from dashboard import sampling


@shared_task
def take_samples() -> int:
    """Note how much there is and how much waits; how many workspaces."""
    return sampling.take_samples()


@shared_task
def prune_samples() -> int:
    """Thin out old samples; how many went."""
    return sampling.prune_samples()

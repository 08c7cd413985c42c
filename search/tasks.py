"""Celery tasks."""

from celery import shared_task

from search import log


@shared_task
def prune_search_log() -> int:
    """Delete what the search log has kept long enough; returns how many rows."""
    return log.prune_search_log()

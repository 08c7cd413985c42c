"""Celery tasks."""

from common.celery import app
from model_servers import usage


@app.task
def prune_usage() -> int:
    """Delete old rows of what models have used; returns how many."""
    return usage.prune_usage()

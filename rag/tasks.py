"""Celery tasks: end answers and runs whose process died, delete old traces."""

from common.celery import app
from rag.services import conversations, traces


@app.task
def end_lost_answers() -> int:
    """Mark answers whose process died as failed; returns how many."""
    return conversations.fail_stale_answers()


@app.task
def end_lost_runs() -> int:
    """Mark pipeline runs whose process died as failed; returns how many."""
    return traces.fail_stale_runs()


@app.task
def prune_traces() -> int:
    """Delete old traces; returns how many."""
    return traces.prune_traces()

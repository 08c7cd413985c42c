"""Celery tasks."""

from common.celery import app
from search import log
from search.evaluation import keeping


@app.task
def prune_search_log() -> int:
    """Delete what the search log has kept long enough; returns how many rows."""
    return log.prune_search_log()


@app.task
def measure_quality(evaluation_id: int) -> bool:
    """Measure what was asked for; False where somebody else does."""
    return keeping.measure_now(evaluation_id) is not None


@app.task
def measure_due_quality() -> int:
    """Measure what is due, and what a message was lost for; how many collections."""
    keeping.end_lost()
    keeping.make_due()
    return sum(keeping.measure_now(pk) is not None for pk in keeping.waiting_ids())

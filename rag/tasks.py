"""What is tidied up from time to time."""

from common.celery import app
from rag.services import keeping, traces


@app.task
def end_lost_answers() -> int:
    """Answers whose process died are said to have failed; how many that were."""
    return keeping.end_lost_answers()


@app.task
def end_lost_runs() -> int:
    """Runs of pipelines whose process died are said to have failed; how many that were."""
    return traces.end_lost_runs()


@app.task
def prune_traces() -> int:
    """Delete traces that are old; how many."""
    return traces.prune_traces()

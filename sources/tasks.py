"""Celery tasks: they take ids and may be delivered twice. Rows are the truth, messages only save
time."""

from common.celery import app, send_or_wait
from sources import notices
from sources.runs import QUEUE, work_on

#: Sources that one sweep sends to the workers.
SWEPT_SOURCES = 200
#: Messages that one sweep sends: a slow mail server must not keep a worker for long.
SENT_NOTICES = 20


def enqueue_source(source_id: int) -> None:
    """Send a source to the workers. Without a broker the next sweep finds it."""
    send_or_wait(run_source, source_id)


@app.task
def run_source(source_id: int) -> None:
    """Work on a source for a while, then send a message for the rest, so that uploads and other
    sources have their turn."""
    run = work_on(source_id)
    if run is not None and not run.is_finished:
        enqueue_source(source_id)


@app.task
def start_due_sources() -> int:
    """Send the sources that are due, and those whose workers died; returns how many."""
    ids = QUEUE.sweep("due_at", "pk", limit=SWEPT_SOURCES)
    for source_id in ids:
        enqueue_source(source_id)
    return len(ids)


@app.task
def check_sources() -> int:
    """Find sources that are late or stopped; returns how many have a new problem."""
    return notices.check_sources()


@app.task
def send_notices() -> int:
    """Send the messages that are due; returns how many were tried."""
    ids = notices.QUEUE.sweep("due_at", "pk", limit=SENT_NOTICES)
    for tried, notice_id in enumerate(ids, start=1):
        if not notices.send_notice(notice_id):
            return tried
    return len(ids)

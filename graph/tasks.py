"""Celery tasks of extraction: they take ids and may be delivered twice; the queue
rows are authoritative.
"""

from collections.abc import Sequence

from common import features
from common.celery import app, send_or_wait
from common.leases import database_now
from graph.extraction import queue, worker
from graph.extraction.worker import Outcome

#: Documents of one message.
MESSAGE_DOCUMENTS = 200
#: Longest countdown of a message in seconds; recovery handles later retries.
MAX_COUNTDOWN = 30


def enqueue_extraction(document_ids: Sequence[int]) -> None:
    """Queues messages to extract these documents. Without a broker, or while the graph is
    switched off, they wait for recovery.
    """
    if not features.is_on("graph"):
        return
    for start in range(0, len(document_ids), MESSAGE_DOCUMENTS):
        part = list(document_ids[start : start + MESSAGE_DOCUMENTS])
        if not send_or_wait(extract_documents, part):
            break


def enqueue_recovery() -> None:
    """Queues a recovery of all due documents."""
    if features.is_on("graph"):
        send_or_wait(recover_extractions)


def extract_now(document_ids: Sequence[int]) -> None:
    """Extracts by rules in this process; documents for the chat model wait for a worker."""
    worker.extract(document_ids)


@app.task
def extract_documents(document_ids: Sequence[int]) -> int:
    """Extracts these documents; returns how many."""
    outcome = worker.extract(document_ids)
    _send_messages(outcome, goes_on=bool(outcome.for_model))
    return outcome.read


@app.task
def extract_next() -> int:
    """Extracts one document by the chat model and queues the next; whether one was extracted.

    One message at a time: a model may take minutes, and many messages would block the queue.
    """
    outcome = worker.extract_next()
    _send_messages(outcome, goes_on=outcome.taken > 0)
    return outcome.read


@app.task
def recover_extractions() -> int:
    """Queues due documents, also of dead workers; returns how many by rules."""
    ids = queue.sweep_due()
    enqueue_extraction(ids)
    _send_messages(Outcome(), goes_on=queue.next_for_model() is not None)
    return len(ids)


def _send_messages(outcome: Outcome, *, goes_on: bool) -> None:
    """Queues retries, and the next document for the model."""
    now = database_now()
    if goes_on and not send_or_wait(extract_next):
        return
    for document_id, at in outcome.again.items():
        seconds = (at - now).total_seconds()
        if seconds < MAX_COUNTDOWN and not send_or_wait(
            extract_documents, [document_id], countdown=max(0, seconds)
        ):
            return

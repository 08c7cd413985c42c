"""Celery tasks: they take ids and may be delivered twice. Rows are the truth, messages hurry."""

import logging
from collections.abc import Sequence

from kombu.exceptions import OperationalError

from common.celery import app
from common.clock import database_now
from graph.extraction import outages, queue, working
from graph.extraction.working import Outcome

logger = logging.getLogger(__name__)

#: Documents of one message.
MESSAGE_DOCUMENTS = 200
#: Seconds for which a message is sent ahead. What is later than that, recovery finds in time.
SOON = 30


def enqueue_extraction(document_ids: Sequence[int]) -> None:
    """Have these documents read soon. Without a broker they wait for recovery."""
    try:
        for start in range(0, len(document_ids), MESSAGE_DOCUMENTS):
            extract_documents.delay(list(document_ids[start : start + MESSAGE_DOCUMENTS]))
    except OperationalError as error:
        logger.warning("the broker does not answer, documents wait to be read: %s", error)


def enqueue_recovery() -> None:
    """Have all that waits read soon."""
    try:
        recover_extractions.delay()
    except OperationalError as error:
        logger.warning("the broker does not answer, documents wait to be read: %s", error)


def extract_now(document_ids: Sequence[int]) -> None:
    """Read these in this process, unless a chat model is to: that waits for a worker."""
    working.extract(document_ids)


@app.task
def extract_documents(document_ids: Sequence[int]) -> int:
    """Read these documents for the graph; how many were read."""
    outcome = working.extract(document_ids)
    _send(outcome, goes_on=bool(outcome.for_model))
    return outcome.read


@app.task
def extract_next() -> int:
    """Have the chat model read one document, then send for the next; whether one was read.

    One message after the other: a model takes minutes for some documents, and a thousand messages
    would keep all other work of the queue waiting.
    """
    outcome = working.extract_next()
    _send(outcome, goes_on=outcome.taken > 0)
    return outcome.read


@app.task
def recover_extractions() -> int:
    """Send the documents that are due, and those whose worker died; how many by rules."""
    ids = queue.sweep()
    enqueue_extraction(ids)
    _send(Outcome(), goes_on=not outages.is_paused() and queue.next_for_model() is not None)
    return len(ids)


def _send(outcome: Outcome, *, goes_on: bool) -> None:
    """What failed is tried again, and the model goes on."""
    now = database_now()
    try:
        if goes_on:
            extract_next.delay()
        for document_id, at in outcome.again.items():
            seconds = (at - now).total_seconds()
            if seconds < SOON:
                extract_documents.apply_async(([document_id],), countdown=max(0, seconds))
    except OperationalError as error:
        logger.warning("the broker does not answer, documents wait to be read: %s", error)

"""Celery tasks: they take ids and may be delivered twice. Rows are the truth, messages hurry."""

import logging
from collections.abc import Sequence

from celery import shared_task
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

#: Documents of one message.
MESSAGE_DOCUMENTS = 200


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


@shared_task
def extract_documents(document_ids: Sequence[int]) -> int:
    """Read these documents for the graph; how many were read."""
    return 0


@shared_task
def recover_extractions() -> int:
    """Send the documents that are due, and those whose worker died; how many."""
    return 0

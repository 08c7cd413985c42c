"""Celery tasks: they take ids and may be delivered twice. Rows are the truth, messages hurry."""

import logging
from collections.abc import Sequence

from kombu.exceptions import OperationalError

from common.celery import app
from common.clock import database_now
from inference.base import BackendUnavailable
from memory import quotas
from memory.embedding import embed_waiting
from memory.extraction import outages, queue, working

logger = logging.getLogger(__name__)

#: Seconds for which a message is sent ahead.
SOON = 30


def enqueue_embedding(*, contexts: Sequence[int] = (), facts: Sequence[int] = ()) -> None:
    """Have these rows embedded soon. Without a broker they wait for recovery."""
    try:
        embed_memories.delay(list(contexts), list(facts))
    except OperationalError as error:
        logger.warning("the broker does not answer, embedding of memories waits: %s", error)


@app.task
def embed_memories(contexts: Sequence[int], facts: Sequence[int]) -> int:
    """Embed these rows; those that have gone or are done are passed over."""
    return _embed(contexts=contexts, facts=facts)


@app.task
def recover_memories() -> int:
    """Embed whatever waits: rows whose message was lost, and those of a former default space."""
    return _embed()


def enqueue_extraction(item_id: int, *, seconds: float = 0) -> None:
    """Have this conversation read soon, or after so many seconds. Without a broker it waits for
    recovery."""
    try:
        extract.apply_async((item_id,), countdown=seconds)
    except OperationalError as error:
        logger.warning("the broker does not answer, conversations wait to be read: %s", error)


@app.task
def extract(item_id: int) -> bool:
    """Learn what a conversation tells of its user; whether anything was read."""
    outcome = working.extract(item_id)
    if outcome is None:
        return False
    if outcome.contexts or outcome.facts:
        enqueue_embedding(contexts=outcome.contexts, facts=outcome.facts)
    if outcome.due_at is not None:
        seconds = (outcome.due_at - database_now()).total_seconds()
        # What is later than that, recovery finds in time.
        if seconds < SOON:
            enqueue_extraction(item_id, seconds=max(0, seconds))
    return True


@app.task
def recover_extractions() -> int:
    """Send the conversations that are due, and those whose worker died; how many."""
    if outages.is_paused():
        return 0
    ids = queue.sweep()
    for item_id in ids:
        enqueue_extraction(item_id)
    return len(ids)


@app.task
def prune_memories() -> int:
    """Remove what exceeds the quotas; of how many users."""
    return len(quotas.prune())


def _embed(*, contexts: Sequence[int] | None = None, facts: Sequence[int] | None = None) -> int:
    try:
        return embed_waiting(contexts=contexts, facts=facts)
    except BackendUnavailable as error:
        logger.warning("memories wait for their model: %s", error)
        return 0

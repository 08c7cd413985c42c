"""Celery tasks: they take ids and may be delivered twice. Rows are the truth, messages only save
time.
"""

import logging
from collections.abc import Sequence

from common import features
from common.celery import app, send_or_wait
from common.leases import database_now
from inference.interfaces import BackendUnavailable
from memory import quotas
from memory.embedding import embed_waiting
from memory.extraction import worker
from memory.extraction.queue import due_items

logger = logging.getLogger(__name__)

#: Seconds for which a message is sent ahead.
ENQUEUE_AHEAD_SECONDS = 30


def enqueue_embedding(*, contexts: Sequence[int] = (), facts: Sequence[int] = ()) -> None:
    """Enqueue the embedding of these rows. Without a broker the recovery task finds them."""
    send_or_wait(embed_memories, list(contexts), list(facts))


@app.task
def embed_memories(contexts: Sequence[int], facts: Sequence[int]) -> int:
    """Embed these rows; deleted and embedded ones are skipped."""
    return _embed(contexts=contexts, facts=facts)


@app.task
def recover_memories() -> int:
    """Embed all rows without a vector in the default space, such as those whose message
    was lost.
    """
    return _embed()


def enqueue_extraction(item_id: int, *, seconds: float = 0) -> None:
    """Enqueue the extraction of this conversation, after `seconds`. Without a broker the recovery
    task finds it.
    """
    send_or_wait(extract, item_id, countdown=seconds)


@app.task
def extract(item_id: int) -> bool:
    """Extract facts from a conversation; returns whether anything was read."""
    if not features.is_on("memory"):
        return False
    outcome = worker.extract_conversation(item_id)
    if outcome is None:
        return False
    if outcome.contexts or outcome.facts:
        enqueue_embedding(contexts=outcome.contexts, facts=outcome.facts)
    if outcome.due_at is not None:
        seconds = (outcome.due_at - database_now()).total_seconds()
        # Later ones are found in time by the recovery task.
        if seconds < ENQUEUE_AHEAD_SECONDS:
            enqueue_extraction(item_id, seconds=max(0, seconds))
    return True


@app.task
def recover_extractions() -> int:
    """Enqueue due conversations, including those of dead workers; returns how many."""
    if not features.is_on("memory"):
        return 0
    ids = due_items()
    for item_id in ids:
        enqueue_extraction(item_id)
    return len(ids)


@app.task
def prune_memories() -> int:
    """Prune what exceeds the quotas; returns the number of affected users."""
    return len(quotas.prune_to_quotas()) if features.is_on("memory") else 0


def _embed(*, contexts: Sequence[int] | None = None, facts: Sequence[int] | None = None) -> int:
    if not (features.is_on("memory") and features.is_on("vectors")):
        return 0
    try:
        return embed_waiting(contexts=contexts, facts=facts)
    except BackendUnavailable as error:
        logger.warning("memories wait for their model: %s", error)
        return 0

"""Celery tasks: they take ids and may be delivered twice. Rows are the truth, messages hurry."""

import logging
from collections.abc import Sequence

from celery import shared_task
from kombu.exceptions import OperationalError

from inference.base import BackendUnavailable
from memory import quotas
from memory.embedding import embed_waiting

logger = logging.getLogger(__name__)


def enqueue_embedding(*, contexts: Sequence[int] = (), facts: Sequence[int] = ()) -> None:
    """Have these rows embedded soon. Without a broker they wait for recovery."""
    try:
        embed_memories.delay(list(contexts), list(facts))
    except OperationalError as error:
        logger.warning("the broker does not answer, embedding of memories waits: %s", error)


@shared_task
def embed_memories(contexts: Sequence[int], facts: Sequence[int]) -> int:
    """Embed these rows; those that have gone or are done are passed over."""
    return _embed(contexts=contexts, facts=facts)


@shared_task
def recover_memories() -> int:
    """Embed whatever waits: rows whose message was lost, and those of a former default space."""
    return _embed()


@shared_task
def prune_memories() -> int:
    """Remove what exceeds the quotas; of how many users."""
    return len(quotas.prune())


def _embed(*, contexts: Sequence[int] | None = None, facts: Sequence[int] | None = None) -> int:
    try:
        return embed_waiting(contexts=contexts, facts=facts)
    except BackendUnavailable as error:
        logger.warning("memories wait for their model: %s", error)
        return 0

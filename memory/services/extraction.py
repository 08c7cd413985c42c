"""Conversations out of which facts are learnt, after a while and by a worker."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from memory.extraction import queue
from memory.extraction.recording import Recorded, take_over
from memory.extraction.turns import said_by_user
from memory.scopes import UserScope
from memory.tasks import enqueue_extraction


def record_messages(
    *,
    scope: UserScope | None,
    conversation: str,
    messages: Sequence[Mapping[str, Any]],
    at: datetime | None = None,
) -> Recorded | None:
    """Queue what the user said in a conversation, so that facts are learnt from it later.

    `messages` are as chat clients send them, the whole conversation each time; what was sent
    before is not taken again. Only the user's messages are kept, without what was injected, and
    only until they have been read. `at` is when the new ones were said, by default now; a message
    may have its own. Of nobody nothing is kept, and None returned, as where the user said nothing.
    Raises InvalidInput and QueueFull.
    """
    if scope is None:
        return None
    said = said_by_user(messages, at=at)
    if not said:
        return None
    recorded = take_over(scope, conversation, said)
    if recorded.is_due:
        transaction.on_commit(partial(enqueue_extraction, recorded.item_id))
    return recorded


def retry_extractions(*, item_ids: Sequence[int]) -> int:
    """Try conversations again that were given up, as if for the first time; how many were."""
    with transaction.atomic():
        ids = queue.revive(item_ids)
        for item_id in ids:
            transaction.on_commit(partial(enqueue_extraction, item_id))
    return len(ids)

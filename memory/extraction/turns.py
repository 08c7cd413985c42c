"""The user's own words out of a conversation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from common.errors import InvalidInput
from memory import texts
from memory.extraction.found import Said
from memory.extraction.prompt import MOST_CHARACTERS
from memory.injection import text_of_content, without_blocks

#: What is kept of a message: enough to see that it is longer than what is read.
KEPT = MOST_CHARACTERS + 1


def said_by_user(messages: Sequence[Mapping[str, Any]], *, at: datetime | None) -> list[Said]:
    """The user's messages with text, in order, without what was injected into them.

    A message's own `at` says when it was said, else `at`, else it was now; never later. Raises
    InvalidInput for messages that are none.
    """
    now = timezone.now()
    said: list[Said] = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InvalidInput(
                'A message is an object with a "role" and a "content".', field="messages"
            )
        text = _own_words(message) if message["role"] == "user" else ""
        if text:
            said.append(Said(text, min(_moment(message.get("at")) or at or now, now)))
    return said


def _own_words(message: Mapping[str, Any]) -> str:
    # What is beyond is not read, so that it need not be searched for blocks either.
    text = text_of_content(message.get("content"))[: 4 * KEPT]
    return texts.storable(without_blocks(text)[:KEPT].strip(), field="messages")


def _moment(given: Any) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise InvalidInput("A message's “at” is a time with its zone.", field="messages")
    return given

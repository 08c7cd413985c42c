"""Who reads messages: the configured chat model, or rules where there is none."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from inference.base import BackendUnavailable
from inference.handler import chats, has_chat
from inference.remote.errors import ServerRefused
from memory.extraction import rules
from memory.extraction.found import Found, FoundContext, FoundFact, Said
from memory.extraction.prompt import extraction_messages
from memory.extraction.replies import read_reply
from memory.models import Origin

#: Answers of a server that has something against this conversation, and not against all.
_OF_THE_REQUEST = frozenset((400, 413, 422))


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found, and by whom: `extractor` is a model's name, or “rules”."""

    found: Found
    origin: Origin
    extractor: str


def read(messages: Sequence[Said], *, known_keys: Sequence[str]) -> Reading:
    """What the messages tell of their user. Raises InferenceError and UnreadableReply."""
    if not has_chat():
        return Reading(rules.found_by_rules(messages), Origin.RULES, rules.NAME)
    model = chats["default"]
    answer = model.complete(
        extraction_messages(messages, known_keys=known_keys),
        max_tokens=settings.MEMORY_EXTRACTION_MAX_TOKENS,
        temperature=settings.MEMORY_EXTRACTION_TEMPERATURE,
        timeout=settings.MEMORY_EXTRACTION_SECONDS,
    )
    facts, contexts = read_reply(answer.content)
    found = Found(
        tuple(FoundFact(key, value, _said_in(value, messages)) for key, value in facts.items()),
        tuple(FoundContext(q, a, _said_in(a, messages)) for q, a in contexts),
    )
    return Reading(found, Origin.MODEL, model.model_name[:200])


def is_outage(error: Exception) -> bool:
    """Whether there was no model to ask, rather than one that cannot read this conversation."""
    if isinstance(error, ServerRefused):
        return not (error.too_large or error.status in _OF_THE_REQUEST)
    return isinstance(error, BackendUnavailable)


def _said_in(value: str, messages: Sequence[Said]) -> int:
    """The last message that holds the value word for word, or the last of all."""
    wanted = value.casefold()
    for number in range(len(messages) - 1, -1, -1):
        if wanted in messages[number].text.casefold():
            return number
    return len(messages) - 1

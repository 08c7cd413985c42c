"""A user's memory around an answer: put before the model, and added to."""

import logging
import re
from collections.abc import Sequence

from django.utils import timezone

from common.errors import RagsiteError
from inference.base import ChatMessage
from rag.context import RagContext
from rag.events import Remembered

logger = logging.getLogger(__name__)

#: The least relevance (memory.relevance) of what is quoted as an answer. Of 20 questions in the
#: first person about other things, the best of eight facts had up to 0.3, and one had 0.7.
SURE = 0.5
SPEAKS_OF_ONESELF = re.compile(
    r"\b(?:i|i'm|me|my|mine|myself|ich|mir|mich|mein\w{0,2}|yo|mis?|vivo|je|j'\w+|moi|mon|mes"
    r"|io|mi[oa]|eu|meu|minha|ik|mijn)\b",
    re.IGNORECASE,
)
#: How people ask for facts without saying their keys.
KEYS = {
    re.compile(r"\bwhere do i live\b|\b(?:wohne ich|vivo)\b", re.IGNORECASE): (
        *("city", "town", "home", "address", "residence", "location"),
    ),
    re.compile(r"\b(?:who am i|am i called|heiße ich|heisse ich|me llamo)\b", re.IGNORECASE): (
        *("name", "full_name", "first_name"),
    ),
    re.compile(r"\bwhere do i work\b|\b(?:arbeite ich|trabajo)\b", re.IGNORECASE): (
        *("employer", "company", "workplace", "job"),
    ),
    re.compile(r"\bhow old am i\b|\balt bin ich\b", re.IGNORECASE): ("age", "birthday"),
}


def with_memory(
    question: str, *, history: Sequence[ChatMessage], context: RagContext
) -> tuple[str, Remembered]:
    """The question with what is remembered put behind it, and what that is."""
    from memory.services import inject  # noqa: PLC0415 (loads Celery and the rules of extraction)

    injected = inject(
        messages=_messages(question, history), scope=context.memory_scope, enabled=True
    )
    remembered = Remembered(
        facts=injected.facts,
        context=tuple((turn.said_on.isoformat(), turn.question) for turn in injected.context),
        tokens=injected.tokens,
    )
    return str(injected.messages[-1]["content"]), remembered


def recalled(question: str, *, context: RagContext) -> Remembered | None:
    """What is remembered of the user that answers a question about the user, without a chat model:
    a fact, or else what the user said; None where nothing does."""
    if not SPEAKS_OF_ONESELF.search(question) or not context.allows("memory"):
        return None
    from memory.services import get_fact, rank_facts, search_memory  # noqa: PLC0415

    scope = context.memory_scope
    facts = [
        hit.fact
        for hit in rank_facts(scope=scope, query=question, most=1)
        if hit.ranked.relevance >= SURE
    ]
    keys = [key for asks, named in KEYS.items() if asks.search(question) for key in named]
    facts += [fact for key in keys if (fact := get_fact(scope=scope, key=key))]
    if facts:
        return Remembered(facts=((facts[0].key, facts[0].value),))
    # Questions are remembered too, and answer none.
    for hit in search_memory(scope=scope, query=question, max_results=10, threshold=SURE).hits:
        said = hit.context.user_message
        if "?" not in said and SPEAKS_OF_ONESELF.search(said):
            day = timezone.localdate(hit.context.created_at).isoformat()
            return Remembered(context=((day, said),))
    return None


def archive(
    question: str,
    told: str,
    *,
    history: Sequence[ChatMessage],
    conversation: str,
    context: RagContext,
) -> None:
    """Keep what was asked and `told`, and have facts learnt from a `conversation` of a name."""
    from memory.services import archive_turn, record_messages  # noqa: PLC0415

    scope = context.memory_scope
    try:
        archive_turn(
            scope=scope, user_message=question, assistant_response=told, conversation=conversation
        )
        if conversation:
            record_messages(
                scope=scope, conversation=conversation, messages=_messages(question, history)
            )
    except RagsiteError as error:
        # Full, mostly: the answer is none the worse for it.
        logger.warning("a turn is not remembered: %s", error)


def _messages(question: str, history: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [
        *({"role": turn.role, "content": turn.content} for turn in history),
        {"role": "user", "content": question},
    ]

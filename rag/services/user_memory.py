"""What is remembered of users: put before a model, quoted, and added to. Begin with `recall`."""

import logging
import re
from collections.abc import Mapping, Sequence

from django.utils import timezone

from common import features
from common.errors import RagsiteError
from inference.interfaces import ChatMessage
from memory.models import Context, Fact
from rag.context import RagContext
from rag.events import InjectedMemory
from rag.services.questions import AnswerRequest

logger = logging.getLogger(__name__)

#: Minimum relevance (memory.ranking) of a memory quoted as an answer. Of 20 questions in the
#: first person about other things, the best of eight facts had up to 0.3, and one had 0.7.
MIN_RECALL_RELEVANCE = 0.5
FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|me|my|mine|myself|ich|mir|mich|mein\w{0,2}|yo|mis?|vivo|je|j'\w+|moi|mon|mes"
    r"|io|mi[oa]|eu|meu|minha|ik|mijn)\b",
    re.IGNORECASE,
)
#: Questions that ask for a fact without naming its key.
FACT_KEYS = {
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


def inject_memory(
    messages: Sequence[Mapping[str, str]], *, context: RagContext
) -> tuple[list[str], InjectedMemory]:
    """The contents of the messages, the last with relevant memory added, and that memory."""
    from memory.services import inject  # noqa: PLC0415 (loads Celery and the rules of extraction)

    injected = inject(messages=messages, scope=context.memory_scope, enabled=True)
    remembered = InjectedMemory(
        facts=injected.facts,
        context=tuple((turn.said_on.isoformat(), turn.question) for turn in injected.context),
        tokens=injected.tokens,
    )
    return [str(message["content"]) for message in injected.messages], remembered


def recall(question: str, *, context: RagContext) -> InjectedMemory | None:
    """The memory that answers a question about the user, without a chat model: a fact, else
    something the user wrote; None if nothing fits."""
    may_recall = features.is_on("memory") and context.allows("memory")
    if not may_recall or not FIRST_PERSON.search(question):
        return None
    scope = context.memory_scope
    if not any(model.objects.of(scope).exists() for model in (Fact, Context)):
        return None
    from memory.services import get_fact, rank_facts, search_memory  # noqa: PLC0415 (as above)

    facts = [
        fact
        for fact, scores in rank_facts(scope=scope, query=question, limit=1)
        if scores.relevance >= MIN_RECALL_RELEVANCE
    ]
    keys = [key for asks, named in FACT_KEYS.items() if asks.search(question) for key in named]
    facts += [fact for key in keys if (fact := get_fact(scope=scope, key=key))]
    if facts:
        return InjectedMemory(facts=((facts[0].key, facts[0].value),))
    # Stored questions are no answers.
    for hit in search_memory(
        scope=scope, query=question, k=10, threshold=MIN_RECALL_RELEVANCE
    ).hits:
        message = hit.context.user_message
        if "?" not in message and FIRST_PERSON.search(message):
            day = timezone.localdate(hit.context.created_at).isoformat()
            return InjectedMemory(context=((day, message),))
    return None


def remember_turn(
    question: str,
    response: str,
    *,
    context: RagContext,
    history: Sequence[ChatMessage] = (),
    conversation: str = "",
) -> None:
    """Store question and `response` in memory, and have facts extracted from a named
    `conversation`."""
    from memory.services import archive_turn, record_messages  # noqa: PLC0415

    scope = context.memory_scope
    try:
        archive_turn(
            scope=scope,
            user_message=question,
            assistant_response=response,
            conversation=conversation,
        )
        if conversation:
            record_messages(
                scope=scope, conversation=conversation, messages=chat_messages(question, history)
            )
    except RagsiteError as error:
        # Mostly a full quota; the answer itself is not affected.
        logger.warning("a turn is not remembered: %s", error)


def chat_messages(question: str, history: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [
        *({"role": turn.role, "content": turn.content} for turn in history),
        {"role": "user", "content": question},
    ]


def remember(request: AnswerRequest, *, response: str) -> None:
    """Keep the turn, where memory is used."""
    if request.uses_memory:
        remember_turn(
            request.asked.message,
            response,
            history=request.asked.history,
            conversation=request.conversation,
            context=request.context,
        )

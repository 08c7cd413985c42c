"""A user's memory around an answer: put before the model, and added to."""

import logging
from collections.abc import Sequence

from common.errors import RagsiteError
from inference.base import ChatMessage
from rag.context import RagContext
from rag.events import Remembered

logger = logging.getLogger(__name__)


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

"""An answer takes the place of the last one, and of no other."""

import pytest

from common.errors import Conflict
from rag.context import RagContext
from rag.events import Done, Metadata
from rag.models import Conversation, Message
from rag.services.chat import chat
from rag.services.questions import Question

pytestmark = pytest.mark.django_db

MOVE = "When does the firm leave Mill Street?"
TRAVEL = "When are receipts paid back?"


def ask(context: RagContext, question: str, **how: int) -> Message:
    told = list(chat(Question(question), context=context, **how))  # type: ignore[arg-type]
    assert isinstance(told[0], Metadata)
    assert isinstance(told[-1], Done)
    return Message.objects.get(pk=told[-1].message)


def said(conversation: int) -> list[tuple[str, str]]:
    rows = Conversation.objects.get(pk=conversation).messages.order_by("pk")
    return [(row.role, row.content[:30]) for row in rows]


def test_the_last_answer_is_replaced_with_its_question(context: RagContext) -> None:
    first = ask(context, MOVE)
    last = ask(context, TRAVEL, conversation=first.conversation_id)
    before = said(first.conversation_id)

    again = ask(context, TRAVEL, conversation=first.conversation_id, replaces=last.pk)

    assert again.pk > last.pk
    assert said(first.conversation_id) == before


def test_only_the_last_answer_can_be_replaced(context: RagContext) -> None:
    first = ask(context, MOVE)
    ask(context, TRAVEL, conversation=first.conversation_id)

    with pytest.raises(Conflict, match="Only the last answer"):
        ask(context, MOVE, conversation=first.conversation_id, replaces=first.pk)
    assert len(said(first.conversation_id)) == 4


def test_what_is_deleted_while_it_is_answered_does_not_come_back(context: RagContext) -> None:
    first = ask(context, MOVE)
    events = chat(Question(TRAVEL), context=context, conversation=first.conversation_id)
    begun = next(events)
    assert isinstance(begun, Metadata)

    Message.objects.get(pk=begun.message).delete()
    list(events)

    assert not Message.objects.filter(pk=begun.message).exists()

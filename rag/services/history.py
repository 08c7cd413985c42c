"""What was said before, as an answer takes it into account."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from inference.base import ChatMessage
from rag.context import RagContext
from rag.models import Conversation, Message
from rag.services.conversations import readable_documents

#: Messages that are looked at, and the characters of those that are taken.
MESSAGES = 20
CHARACTERS = 24_000
_TOLD = (Message.State.COMPLETE, Message.State.STOPPED)


def history_of(
    conversation: Conversation, *, context: RagContext, before: int | None = None
) -> tuple[list[ChatMessage], list[int]]:
    """The last turns as a model reads them, and the documents whose text they may hold.

    A question whose answer failed, was removed or is withheld stays out with it; so does what was
    said from the message `before` on.
    """
    said = conversation.messages.order_by("-id")
    if before is not None:
        said = said.filter(pk__lt=before)
    rows = list(said[:MESSAGES])[::-1]
    readable = readable_documents(rows, context)
    turns = [
        (question, answer)
        for question, answer in pairwise(rows)
        if question.role == Message.Role.USER
        and answer.role == Message.Role.ASSISTANT
        and answer.content
        and answer.state in _TOLD
        and readable.issuperset(answer.documents)
    ]
    while sum(len(row.content) for turn in turns for row in turn) > CHARACTERS:
        del turns[0]
    messages = [
        message
        for question, answer in turns
        for message in (
            ChatMessage("user", question.content),
            ChatMessage("assistant", answer.content),
        )
    ]
    return messages, sorted({id for _, answer in turns for id in answer.documents})


def as_history(messages: Iterable[Mapping[str, str]]) -> list[ChatMessage]:
    """A client's own history, {"role", "content"} each, the last of it as far as it is read."""
    return [
        ChatMessage("user" if each["role"] == "user" else "assistant", each["content"])
        for each in list(messages)[-MESSAGES:]
    ]

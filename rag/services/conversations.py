"""Conversations that are kept: made, named, shown to their user, deleted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from common.errors import Conflict, InvalidInput, NotFound
from common.wording import shortened
from documents.models import Chunk, Document
from rag.context import RagContext
from rag.models import Conversation, Message, Trace
from rag.querysets import OwnQuerySet
from rag.storing import hurried

TITLE_CHARACTERS = 80


def start_conversation(*, context: RagContext, title: str = "", pipeline: str = "") -> Conversation:
    """A new one of the user's; what is asked first names it where no title does."""
    context.require("chat")
    with hurried():
        return Conversation.objects.create(
            workspace=context.workspace,
            user=context.user,
            title=title_of(title),
            collections=list(context.collections),
            pipeline=pipeline,
        )


def get_conversation(*, context: RagContext, id: int) -> Conversation:
    """One of the user's. Raises NotFound."""
    context.require("chat")
    found = own_conversations(context).filter(pk=id).first()
    if found is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    return found


def question_of_last(conversation: Conversation, answer: int) -> int:
    """The id of the question that the last message, `answer`, answers.

    Raises Conflict for any other message: what was said after it would hang in the air.
    """
    last, question = [*conversation.messages.order_by("-id")[:2], None, None][:2]
    if last is None or question is None or last.pk != answer:
        raise Conflict("Only the last answer can be replaced. Ask anew instead.")
    return int(question.pk)


def rename_conversation(*, conversation: Conversation, title: str) -> Conversation:
    """Call it otherwise. Raises InvalidInput for an empty title."""
    conversation.title = title_of(title)
    if not conversation.title:
        raise InvalidInput("A conversation needs a title.", field="title")
    # `updated_at` stays: it is when something was said last.
    conversation.save(update_fields=["title"])
    return conversation


def delete_conversation(*, conversation: Conversation) -> None:
    """Remove it with its messages and the runs that answered them."""
    with transaction.atomic():
        runs = list(conversation.messages.exclude(trace=None).values_list("trace", flat=True))
        conversation.delete()
        Trace.objects.filter(pk__in=runs).delete()


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as its user may see it now.

    `is_withheld`: it holds text of a document that the user may not read any more, and is shown
    without its content. `passages` have their texts as they are now, "" where a text has changed.
    """

    message: Message
    content: str
    passages: tuple[dict[str, Any], ...]
    citations: tuple[dict[str, Any], ...]
    is_withheld: bool


def shown_messages(*, rows: Sequence[Message], context: RagContext) -> list[Shown]:
    """Messages of one of the user's conversations, as the user may see them now."""
    readable = readable_documents(rows, context)
    kept = [row for row in rows if readable.issuperset(row.documents)]
    ids = {passage["chunk"] for row in kept for passage in row.passages}
    rows_now = Chunk.objects.filter(pk__in=ids).only("text", "start", "end")
    now = {chunk.pk: chunk for chunk in rows_now}
    return [
        Shown(
            message=row,
            content=row.content if (told := readable.issuperset(row.documents)) else "",
            passages=tuple(_as_now(passage, now) for passage in row.passages) if told else (),
            citations=tuple(_cited_now(row, now)) if told else (),
            is_withheld=not told,
        )
        for row in rows
    ]


def _as_now(passage: dict[str, Any], now: Mapping[int, Chunk]) -> dict[str, Any]:
    """With its present text and place, which moves when something before it changes."""
    chunk = now.get(passage["chunk"])
    if chunk is None:
        return {**passage, "text": ""}
    return {**passage, "text": chunk.text, "start": chunk.start, "end": chunk.end}


def _cited_now(row: Message, now: Mapping[int, Chunk]) -> Iterator[dict[str, Any]]:
    """Citations with the offsets that their quotes have now. One whose quote is there no longer,
    because a person changed the passage, keeps the quote and stands at no place in it."""
    passages = {passage["number"]: passage for passage in row.passages}
    for cited in row.citations:
        passage = passages.get(cited["number"])
        chunk = now.get(passage["chunk"]) if passage else None
        if passage is None or chunk is None:
            yield cited
            continue
        offset = cited["start"] - passage["start"]
        if not chunk.text.startswith(cited["quote"], max(0, offset)):
            offset = chunk.text.find(cited["quote"])
        start = chunk.end if offset < 0 else chunk.start + offset
        end = start if offset < 0 else start + len(cited["quote"])
        yield {**cited, "start": start, "end": end}


def readable_documents(rows: Sequence[Message], context: RagContext) -> set[int]:
    """Documents of these messages that the user may read."""
    ids = {id for row in rows for id in row.documents}
    if not ids:
        return set()
    visible = Document.objects.visible_to(context.user).filter(pk__in=ids)
    return set(visible.values_list("pk", flat=True))


def own_conversations(context: RagContext) -> OwnQuerySet[Conversation]:
    """Those of the user who asks."""
    return Conversation.objects.visible_to(context.user).filter(workspace=context.workspace)


def title_of(text: str) -> str:
    """One line of a question, for a list."""
    return shortened(" ".join(text.replace("\0", " ").split()), TITLE_CHARACTERS)

"""Answers on their way into their conversation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from common.connections import give_back
from common.errors import Conflict, NotFound
from rag.context import RagContext
from rag.events import (
    Cited,
    Done,
    Event,
    Failed,
    Metadata,
    Retrieved,
    Token,
    passage_data,
)
from rag.models import Conversation, Message
from rag.services.conversations import own_conversations, title_of
from rag.storing import emptied, held_documents, hurried

#: Questions and answers of one conversation.
MAX_MESSAGES = 2_000


def converse(
    events: Iterable[Event],
    *,
    question: str,
    conversation: Conversation,
    context: RagContext,
    earlier_documents: Sequence[int] = (),
    replaces: int | None = None,
) -> Iterator[Event]:
    """`events` of an answer, which is kept in `conversation` with its question.

    Both take the place of what was said from the message `replaces` on.

    What was answered is kept as well where the client hangs up (`stopped`) or something goes wrong
    (`failed`). `earlier_documents` are those whose text the history may have brought in.
    """
    kept: _Kept | None = None
    try:
        for event in events:
            if kept is None:
                # Not before the first event: a request that is refused leaves nothing.
                kept = _begin(question, conversation, context, earlier_documents, replaces)
                give_back()
            yield kept.take(event)
    except GeneratorExit:
        if kept is not None:
            kept.finish(Message.State.STOPPED)
        raise
    except BaseException:
        if kept is not None:
            kept.finish(
                Message.State.STOPPED if context.cancelled.is_set() else Message.State.FAILED
            )
        raise
    finally:
        if kept is not None:
            kept.finish(Message.State.STOPPED)
            give_back()


@dataclass(slots=True)
class _Kept:
    """An answer on its way into its row."""

    row: Message
    text: list[str] = field(default_factory=list)
    passages: dict[int, dict[str, Any]] = field(default_factory=dict)
    citations: list[dict[str, Any]] = field(default_factory=list)
    documents: set[int] = field(default_factory=set)
    is_finished: bool = False

    def take(self, event: Event) -> Event:
        """Note what is worth keeping; the event as the client is to get it."""
        match event:
            case Metadata():
                self.row.model = event.model[:200]
                self.row.generator = event.generator
                self.row.pipeline = event.pipeline or ""
                self.row.memory = event.memory.data() if event.memory else None
                return replace(event, conversation=self.row.conversation_id, message=self.row.pk)
            case Retrieved():
                self.row.degraded = sorted({*self.row.degraded, *event.degraded})
                for passage in event.passages:
                    self.documents.add(passage.document_id)
                    data = passage_data(passage)
                    # The text is looked up when it is shown: as it is then, if it is there.
                    data.pop("text")
                    self.passages[passage.number] = data
            case Token():
                self.text.append(event.text)
            case Cited():
                self.documents.add(event.passage.document_id)
                self.citations.append(dict(event.data()))
            case Done():
                self.row.verdict = event.verdict.data()
                self.row.finish_reason = event.finish_reason
                self.row.input_tokens = event.input_tokens
                self.row.output_tokens = event.output_tokens
                self.row.elapsed_ms = event.elapsed_ms
                self.row.first_token_ms = event.first_token_ms
                self.row.trace_id = event.trace
                self.finish(Message.State.COMPLETE)
                return replace(event, message=self.row.pk)
            case Failed():
                self.row.error_code, self.row.error = event.code[:40], event.detail
                self.row.trace_id = event.trace
                self.finish(Message.State.FAILED)
            case _:
                pass
        return event

    def finish(self, state: Message.State) -> None:
        """Write it down, once."""
        if self.is_finished:
            return
        self.is_finished = True
        row = self.row
        row.content = "".join(self.text).replace("\0", "")
        row.passages = [self.passages[number] for number in sorted(self.passages)]
        row.citations = self.citations
        row.state = state
        row.documents = sorted({*row.documents, *self.documents})
        with transaction.atomic():
            _hold_or_empty(row)
            # Not what was deleted meanwhile: saving would bring it back.
            if Message.objects.select_for_update(of=("self",)).filter(pk=row.pk).exists():
                row.save()


def _begin(
    question: str,
    conversation: Conversation,
    context: RagContext,
    documents: Sequence[int],
    replaces: int | None,
) -> _Kept:
    with hurried():
        held = own_conversations(context).select_for_update().filter(pk=conversation.pk).first()
        if held is None:
            raise NotFound("There is no such conversation. It may have been deleted.")
        if replaces is not None:
            held.messages.filter(pk__gte=replaces).delete()
        if held.messages.count() >= MAX_MESSAGES:
            raise Conflict("This conversation is full. Begin a new one.")
        held.title = held.title or title_of(question)
        held.collections = list(context.collections)
        held.save(update_fields=["title", "collections", "updated_at"])
        asked = {"workspace": context.workspace, "conversation": held}
        Message.objects.create(role=Message.Role.USER, content=question.replace("\0", ""), **asked)
        row = Message.objects.create(
            role=Message.Role.ASSISTANT,
            state=Message.State.RUNNING,
            documents=list(documents),
            **asked,
        )
    return _Kept(row)


def _hold_or_empty(row: Message) -> None:
    """Keep what the message rests on from going until it is written; empty it where something went.

    The trigger empties what is written when a document goes, and this what is written after that.
    """
    if len(held_documents(row.documents)) == len(row.documents):
        return
    for name, nothing in emptied().items():
        setattr(row, name, nothing)


def end_lost_answers() -> int:
    """Answers whose process died are said to have failed; how many that were."""
    late = Now() - timedelta(seconds=settings.RAG_ANSWER_SECONDS * 2)
    return Message.objects.filter(state=Message.State.RUNNING, created_at__lt=late).update(
        state=Message.State.FAILED,
        error_code="interrupted",
        error="The site was restarted while it answered. Ask again.",
    )

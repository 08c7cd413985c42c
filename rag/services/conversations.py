"""Conversations and their messages: create, show, rename, delete, read as history, record an
answer. Begin with `start_conversation` and `record_answer`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from time import perf_counter
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext

from common.errors import Conflict, InvalidInput, NotFound
from common.sql import release_connection
from common.text import truncated
from documents.models import Chunk, Document
from inference.interfaces import ChatMessage
from memory.scopes import UserScope, account_pk
from memory.tools import TOOLS as MEMORY_TOOLS
from rag.context import RagContext
from rag.events import (
    Citation,
    Done,
    Event,
    Failed,
    Metadata,
    ReasoningToken,
    Retrieval,
    Tables,
    Token,
    passage_data,
)
from rag.models import Conversation, Message, Span, Trace, UserOwnedQuerySet

# The weakest row lock that blocks deletion; answers do not block each other.
_LOCK_DOCUMENTS = "SELECT id FROM documents_document WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"


def lock_documents(ids: Sequence[int]) -> list[int]:
    """Which of these documents exist. They are locked against deletion until the transaction ends;
    text of theirs written in it is cleared by the trigger of migration 0001 when they are deleted
    later."""
    if not ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_DOCUMENTS, [list(ids)])
        return [row[0] for row in cursor.fetchall()]


@contextmanager
def asynchronous_commit() -> Iterator[None]:
    """A transaction that commits without waiting for the disk, because the first token would wait
    too. If the database server crashes then, the beginning of an answer is lost which could not be
    finished either. The end of an answer is committed as usual."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO off")
        yield


def cleared_message_fields() -> dict[str, Any]:
    """Values for a message without its content, as the trigger of migration 0001 sets them."""
    return {
        "state": Message.State.REMOVED,
        "content": "",
        "passages": [],
        "citations": [],
        "verdict": {},
        "tables": None,
        "reasoning": "",
        "reasoning_ms": None,
        "memory": None,
        "error": "",
        "documents": [],
    }


def forget_memory(scope: UserScope) -> None:
    """Clear messages and runs that used this memory. Conversations belong to the account. For a
    user named by a program it is unknown whose memory a tool read: all runs of the workspace that
    read memory are cleared."""
    account = account_pk(scope)
    if account is not None:
        rows = Message.objects.filter(
            workspace_id=scope.workspace_id, conversation__user_id=account, memory__isnull=False
        )
        rows.update(**cleared_message_fields())
    read = Span.objects.filter(kind=Span.Kind.TOOL, type__in=list(MEMORY_TOOLS))
    runs = Trace.objects.filter(workspace_id=scope.workspace_id, pk__in=read.values("trace"))
    if account is not None:
        runs = runs.filter(user_id=account)
    ids = list(runs.values_list("pk", flat=True))
    Span.objects.filter(trace__in=ids).update(input="", output="", error="")
    Trace.objects.filter(pk__in=ids).update(
        answer="", error="", documents=[], removed_at=timezone.now()
    )


MAX_TITLE_CHARACTERS = 80


def start_conversation(*, context: RagContext, pipeline: str = "") -> Conversation:
    """A new conversation of the user; its first question becomes its title."""
    context.require("chat")
    with asynchronous_commit():
        return Conversation.objects.create(
            workspace=context.workspace,
            user=context.user,
            collections=list(context.collections),
            pipeline=pipeline,
        )


def get_conversation(*, context: RagContext, id: int) -> Conversation:
    """One of the user's conversations. Raises NotFound."""
    context.require("chat")
    found = own_conversations(context).filter(pk=id).first()
    if found is None:
        raise NotFound(gettext("This conversation does not exist. It may have been deleted."))
    return found


def question_of_last_answer(conversation: Conversation, answer: int) -> int:
    """The id of the question that the last message, `answer`, answers. Raises Conflict for any
    other message: later messages would lose their context."""
    last, question = [*conversation.messages.order_by("-id")[:2], None, None][:2]
    if last is None or question is None or last.pk != answer:
        raise Conflict(gettext("Only the last answer can be replaced. Ask a new question instead."))
    return int(question.pk)


def rename_conversation(*, conversation: Conversation, title: str) -> Conversation:
    """Set its title. Raises InvalidInput for an empty one."""
    conversation.title = make_title(title)
    if not conversation.title:
        raise InvalidInput(gettext("A conversation needs a title."), field="title")
    # `updated_at` is unchanged: it is the time of the last message.
    conversation.save(update_fields=["title"])
    return conversation


def delete_conversation(*, conversation: Conversation) -> None:
    """Delete it with its messages and their pipeline runs."""
    with transaction.atomic():
        runs = list(conversation.messages.exclude(trace=None).values_list("trace", flat=True))
        conversation.delete()
        Trace.objects.filter(pk__in=runs).delete()


@dataclass(frozen=True, slots=True)
class VisibleMessage:
    """A message as its user may see it now. `is_withheld`: it contains text of a document that the
    user may no longer read, and has no content here. `passages` have their current texts, "" if a
    text has changed."""

    message: Message
    content: str
    reasoning: str
    passages: tuple[dict[str, Any], ...]
    citations: tuple[dict[str, Any], ...]
    tables: dict[str, Any] | None
    is_withheld: bool


def visible_messages(*, rows: Sequence[Message], context: RagContext) -> list[VisibleMessage]:
    """Messages of one of the user's conversations, as the user may see them now."""
    readable = readable_document_ids(rows, context)
    visible_rows = [row for row in rows if readable.issuperset(row.documents)]
    ids = {passage["chunk"] for row in visible_rows for passage in row.passages}
    rows_now = Chunk.objects.filter(pk__in=ids).only("text", "start", "end")
    now = {chunk.pk: chunk for chunk in rows_now}
    visible = []
    for row in rows:
        if not readable.issuperset(row.documents):
            visible.append(VisibleMessage(row, "", "", (), (), None, is_withheld=True))
            continue
        passages = []
        for passage in row.passages:
            # Offsets move when text before them changes.
            chunk = now.get(passage["chunk"])
            current = {"text": chunk.text, "start": chunk.start, "end": chunk.end} if chunk else {}
            passages.append({**passage, "text": "", **current})
        citations = tuple(_current_citations(row, now))
        visible.append(
            VisibleMessage(
                *(row, row.content, row.reasoning, tuple(passages), citations, row.tables),
                is_withheld=False,
            )
        )
    return visible


def _current_citations(row: Message, now: Mapping[int, Chunk]) -> Iterator[dict[str, Any]]:
    """Citations with the current offsets of their quotes. A quote that no longer occurs, because
    the passage was edited, has an empty range at the passage's end."""
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


def readable_document_ids(
    rows: Sequence[Message] | Sequence[Trace], context: RagContext
) -> set[int]:
    """Documents of these messages or runs that the user may read."""
    ids = {id for row in rows for id in row.documents}
    if not ids:
        return set()
    visible = Document.objects.visible_to(context.user).filter(pk__in=ids)
    return set(visible.values_list("pk", flat=True))


def own_conversations(context: RagContext) -> UserOwnedQuerySet[Conversation]:
    """The user's conversations in the workspace."""
    return Conversation.objects.visible_to(context.user).filter(workspace=context.workspace)


def make_title(text: str) -> str:
    """A title from the beginning of a question, on one line."""
    return truncated(" ".join(text.replace("\0", " ").split()), MAX_TITLE_CHARACTERS)


#: Latest messages considered, and the total characters of those used.
MAX_HISTORY_MESSAGES = 20
MAX_HISTORY_CHARACTERS = 24_000
_ANSWERED_STATES = (Message.State.COMPLETE, Message.State.STOPPED)


def conversation_history(
    conversation: Conversation, *, context: RagContext, before: int | None = None
) -> tuple[list[ChatMessage], list[int]]:
    """The last turns for a model, and the documents whose text they may contain. A question whose
    answer failed, was removed or is withheld is left out with it, and so are messages from `before`
    on."""
    query = conversation.messages.order_by("-id")
    if before is not None:
        query = query.filter(pk__lt=before)
    rows = list(query[:MAX_HISTORY_MESSAGES])[::-1]
    readable = readable_document_ids(rows, context)
    turns = [
        (question, answer)
        for question, answer in pairwise(rows)
        if question.role == Message.Role.USER
        and answer.role == Message.Role.ASSISTANT
        and answer.content
        and answer.state in _ANSWERED_STATES
        and readable.issuperset(answer.documents)
    ]
    while sum(len(row.content) for turn in turns for row in turn) > MAX_HISTORY_CHARACTERS:
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


def parse_history(messages: Iterable[Mapping[str, str]]) -> list[ChatMessage]:
    """A client's own history, {"role", "content"} each, limited to the last messages."""
    return [
        ChatMessage("user" if each["role"] == "user" else "assistant", each["content"])
        for each in list(messages)[-MAX_HISTORY_MESSAGES:]
    ]


#: Questions and answers of one conversation.
MAX_MESSAGES = 2_000


def record_answer(
    events: Iterable[Event],
    *,
    question: str,
    conversation: Conversation,
    context: RagContext,
    earlier_documents: Sequence[int] = (),
    replaces: int | None = None,
) -> Iterator[Event]:
    """Pass on `events` of an answer and store it in `conversation` with its question. Both replace
    what was written from the message `replaces` on. The answer is also stored if the client
    disconnects (`stopped`) or something fails (`failed`). `earlier_documents` are those whose text
    the history may contain."""
    recorder: _AnswerRecorder | None = None
    try:
        for event in events:
            if recorder is None:
                # Only at the first event, so that a refused request stores nothing.
                recorder = _create_messages(
                    question, conversation, context, earlier_documents, replaces
                )
                release_connection()
            yield recorder.take(event)
    except GeneratorExit:
        if recorder is not None:
            recorder.finish(Message.State.STOPPED)
        raise
    except BaseException:
        if recorder is not None:
            recorder.finish(
                Message.State.STOPPED if context.cancelled.is_set() else Message.State.FAILED
            )
        raise
    finally:
        if recorder is not None:
            recorder.finish(Message.State.STOPPED)
            release_connection()


@dataclass(slots=True)
class _AnswerRecorder:
    """Collects the events of an answer and writes them to its row."""

    row: Message
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    thinks_since: float | None = None  # when the model's first piece came
    passages: dict[int, dict[str, Any]] = field(default_factory=dict)
    citations: list[dict[str, Any]] = field(default_factory=list)
    documents: set[int] = field(default_factory=set)
    is_finished: bool = False

    def take(self, event: Event) -> Event:
        """Record an event; returns it with the conversation's and message's ids."""
        match event:
            case Metadata():
                self.row.model = event.model[:200]
                self.row.generator = event.generator
                self.row.pipeline = event.pipeline or ""
                self.row.memory = event.memory.data() if event.memory else None
                return replace(event, conversation=self.row.conversation_id, message=self.row.pk)
            case Retrieval():
                self.row.degraded = sorted({*self.row.degraded, *event.degraded})
                for passage in event.passages:
                    self.documents.add(passage.document_id)
                    data = passage_data(passage)
                    # The current text is looked up when the message is displayed.
                    data.pop("text")
                    self.passages[passage.number] = data
            case Tables():
                self.row.tables = event.data()
                self.documents.update(event.documents)
            case Token():
                self.thinks_since = self.thinks_since or perf_counter()
                self.text.append(event.text)
            case ReasoningToken():
                self.thinks_since = self.thinks_since or perf_counter()
                self.row.reasoning_ms = round((perf_counter() - self.thinks_since) * 1000, 1)
                self.reasoning.append(event.text)
                if (start := event.withdrawn_from) is not None:
                    self.text = ["".join(self.text)[:start]]
                    self.citations = [each for each in self.citations if each["at"] < start]
            case Citation():
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
        """Save the message; later calls do nothing."""
        if self.is_finished:
            return
        self.is_finished = True
        row = self.row
        row.content = "".join(self.text).replace("\0", "")
        row.reasoning = "".join(self.reasoning).replace("\0", "")
        row.passages = [self.passages[number] for number in sorted(self.passages)]
        row.citations = self.citations
        row.state = state
        row.documents = sorted({*row.documents, *self.documents})
        with transaction.atomic():
            # The documents are locked until the message is written. The trigger clears what was
            # written before one is deleted, and this what is written after.
            if len(lock_documents(row.documents)) != len(row.documents):
                for name, nothing in cleared_message_fields().items():
                    setattr(row, name, nothing)
            # Saving a row deleted in the meantime would recreate it.
            if Message.objects.select_for_update(of=("self",)).filter(pk=row.pk).exists():
                row.save()


def _create_messages(
    question: str,
    conversation: Conversation,
    context: RagContext,
    documents: Sequence[int],
    replaces: int | None,
) -> _AnswerRecorder:
    with asynchronous_commit():
        locked = own_conversations(context).select_for_update().filter(pk=conversation.pk).first()
        if locked is None:
            raise NotFound(gettext("This conversation does not exist. It may have been deleted."))
        if replaces is not None:
            locked.messages.filter(pk__gte=replaces).delete()
        if locked.messages.count() >= MAX_MESSAGES:
            raise Conflict(gettext("This conversation has reached its limit. Start a new one."))
        locked.title = locked.title or make_title(question)
        locked.collections = list(context.collections)
        locked.save(update_fields=["title", "collections", "updated_at"])
        common_fields = {"workspace": context.workspace, "conversation": locked}
        Message.objects.create(
            role=Message.Role.USER, content=question.replace("\0", ""), **common_fields
        )
        row = Message.objects.create(
            role=Message.Role.ASSISTANT,
            state=Message.State.RUNNING,
            documents=list(documents),
            **common_fields,
        )
    return _AnswerRecorder(row)


def fail_stale_answers() -> int:
    """Mark answers whose process died as failed; returns how many."""
    late = Now() - timedelta(seconds=settings.RAG_ANSWER_SECONDS * 2)
    return Message.objects.filter(state=Message.State.RUNNING, created_at__lt=late).update(
        state=Message.State.FAILED,
        error_code="interrupted",
        error="The site was restarted while it answered. Ask again.",
    )

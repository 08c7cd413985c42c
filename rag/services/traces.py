"""Traces: what a run did, kept for its user, whatever became of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from common.errors import Conflict, NotFound
from documents.models import Document
from rag.context import RagContext
from rag.models import Trace
from rag.pipelines import engine
from rag.pipelines.definition import Definition
from rag.pipelines.limits import MAX_QUESTION_CHARACTERS
from rag.services.spans import MAX_ERROR_CHARACTERS, Spans, Step, storable
from rag.storing import held_documents

MAX_ANSWER_CHARACTERS = 400_000

#: Seconds between two looks at whether somebody cancelled a run, perhaps by another process.
LOOK_SECONDS = 0.4
_CANCELLED = "rag.trace.{id}.cancelled"


class NotRunning(Conflict):
    """A run that has ended is not to be stopped."""

    code = "not_running"


@dataclass(slots=True)
class Tracing:
    """A run that is being traced. Its row is there from the beginning, so that it can be cancelled
    and nothing is lost."""

    row: Trace
    context: RagContext
    documents: frozenset[int]
    began: float = field(default_factory=monotonic)
    input_tokens: int = 0
    output_tokens: int = 0
    looked: float = 0.0
    was_cancelled: bool = False
    is_kept: bool = False
    steps: dict[int, Step] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        *,
        context: RagContext,
        definition: Definition,
        version: int | None,
        question: str,
        documents: Sequence[int] = (),
    ) -> "Tracing":
        """Note that a run begins. `documents` are those whose text may be in the question's
        history."""
        row = Trace.objects.create(
            workspace=context.workspace,
            user=context.user,
            pipeline=definition.id,
            version=version,
            definition=definition.to_json(),
            question=storable(question, MAX_QUESTION_CHARACTERS),
            started_at=timezone.now(),
            documents=sorted(documents),
        )
        return cls(row, context, frozenset(documents))

    @property
    def id(self) -> int:
        """Of the trace."""
        return self.row.pk

    def is_cancelled(self) -> bool:
        """Whether its user cancelled the run. Asked often, looked up at times."""
        now = monotonic()
        if not self.was_cancelled and now - self.looked >= LOOK_SECONDS:
            self.looked = now
            self.was_cancelled = _is_marked(self.id)
        return self.was_cancelled

    def take(self, happening: engine.Happening) -> None:
        """Note what is worth keeping."""
        match happening:
            case engine.Started(call=call, at=at):
                self.steps[id(call)] = Step(call, at)
            case engine.Ended(call=call):
                step = self.steps[id(call)]
                step.ended = happening
                self.input_tokens += call.ledger.input_tokens
                self.output_tokens += call.ledger.output_tokens
            case _:
                pass

    def finish(self, finished: engine.Finished, *, answer: str) -> None:
        """Keep the run as it ended."""
        self._keep(finished.state, answer, finished.code, finished.detail)

    def abandon(self, *, answer: str) -> None:
        """Keep the run whose end nobody waited for; nothing if it was kept."""
        if not self.is_kept:
            self._keep("cancelled", answer, "cancelled", "Nobody waited for the answer any more.")

    def _keep(self, state: str, answer: str, code: str, detail: str) -> None:
        self.is_kept = True
        passages = self.context.found.passages
        documents = sorted(self.documents | {passage.document_id for passage in passages})
        spans = Spans(self.row, self.steps.values(), moment=self._moment)
        with transaction.atomic():
            row = Trace.objects.select_for_update().filter(pk=self.id).first()
            if row is None:
                return  # deleted while it ran, with its user or workspace
            held = held_documents(documents)
            is_whole = len(held) == len(documents) and row.removed_at is None
            row.state, row.ended_at = state, timezone.now()
            row.input_tokens, row.output_tokens = self.input_tokens, self.output_tokens
            row.error_code = code[:40]
            if is_whole:
                row.answer = storable(answer, MAX_ANSWER_CHARACTERS)
                row.error = storable(detail, MAX_ERROR_CHARACTERS)
                row.documents = documents
                row.sources = [[each.number, each.document_id, each.chunk_id] for each in passages]
            else:
                row.documents, row.removed_at = [], row.removed_at or timezone.now()
            row.save()
            spans.save(has_texts=is_whole)
        cache.delete(_CANCELLED.format(id=self.id))

    def _moment(self, at: float) -> datetime:
        """What the clock of the engine said, as a moment."""
        return self.row.started_at + timedelta(seconds=max(0.0, at - self.began))


def get_trace(*, context: RagContext, id: int) -> Trace:
    """One of the user's runs. Raises NotFound."""
    context.require("chat")
    found: Trace | None = own_traces(context=context).filter(pk=id).first()
    if found is None:
        raise NotFound("There is no such run. It may have been deleted, or be too old.")
    return found


def own_traces(*, context: RagContext) -> Any:
    """The user's runs in the workspace."""
    return Trace.objects.visible_to(context.user).filter(workspace=context.workspace)


def withheld(rows: Sequence[Trace], *, context: RagContext) -> set[int]:
    """Which of these runs quote documents that the user may read no longer: their texts are not to
    be shown."""
    ids = {id for row in rows for id in row.documents}
    visible = Document.objects.visible_to(context.user).filter(pk__in=ids)
    readable = set(visible.values_list("pk", flat=True)) if ids else set()
    return {row.pk for row in rows if not readable.issuperset(row.documents)}


def delete_trace(*, context: RagContext, id: int) -> None:
    """Remove one of the user's runs that has ended. Raises NotFound, and Conflict for one that has
    not."""
    trace = get_trace(context=context, id=id)
    if trace.state == Trace.State.RUNNING:
        raise Conflict("The run goes on. Cancel it first.")
    trace.delete()


def cancel_run(*, context: RagContext, id: int) -> Trace:
    """Have a run of the user's end, whichever process it is in: it does within a second.

    Raises NotFound, and NotRunning for one that has ended.
    """
    trace = get_trace(context=context, id=id)
    if trace.state != Trace.State.RUNNING:
        raise NotRunning(f"The run has ended already: {trace.get_state_display()}.")
    seconds = round(settings.RAG_ANSWER_SECONDS * 2)
    cache.set(_CANCELLED.format(id=trace.pk), True, seconds)
    return trace


def end_lost_runs() -> int:
    """Runs whose process died are said to have failed; how many that were."""
    late = Now() - timedelta(seconds=settings.RAG_ANSWER_SECONDS * 2)
    return Trace.objects.filter(state=Trace.State.RUNNING, started_at__lt=late).update(
        state=Trace.State.FAILED,
        ended_at=timezone.now(),
        error_code="interrupted",
        error="The site was restarted while it ran. Run it again.",
    )


def prune_traces() -> int:
    """Delete what is older than RAG_TRACE_DAYS; how many runs."""
    late = timezone.now() - timedelta(days=settings.RAG_TRACE_DAYS)
    _, by_model = Trace.objects.filter(started_at__lt=late).delete()
    return by_model.get(Trace._meta.label, 0)


def _is_marked(id: int) -> bool:
    try:
        return cache.get(_CANCELLED.format(id=id)) is not None
    except Exception:  # a cache that is down stops nobody's run
        return False

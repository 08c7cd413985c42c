"""Traces of pipeline runs: record, read, cancel, delete, statistics. Begin with `TraceRecorder`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Extract, Now
from django.utils import timezone
from django.utils.translation import gettext

from common.errors import Conflict, NotFound
from common.fields import Percentile
from rag.context import RagContext
from rag.models import Span, Trace
from rag.pipelines.definition import MAX_QUESTION_CHARACTERS, Definition
from rag.pipelines.engine.scheduler import (
    EngineEvent,
    NodeCall,
    NodeEnded,
    NodeStarted,
    RunFinished,
)
from rag.services.conversations import lock_documents, readable_document_ids

#: Characters stored of a step's input and output, and of an error.
MAX_SPAN_CHARACTERS = 20_000
MAX_ERROR_CHARACTERS = 2_000
MAX_SPANS = 2_000


#: The last event of a node's turn.
NodeEvent = NodeStarted | NodeEnded


def _span(call: NodeCall, *, input: str, output: str, error: str, **columns: Any) -> Span:
    return Span(
        node=call.node.id,
        iteration=call.iteration,
        input=truncate_for_storage(input, MAX_SPAN_CHARACTERS),
        output=truncate_for_storage(output, MAX_SPAN_CHARACTERS),
        error=truncate_for_storage(error, MAX_ERROR_CHARACTERS),
        is_cut=max(len(input), len(output)) > MAX_SPAN_CHARACTERS,
        **columns,
    )


def spans_of(
    steps: Iterable[NodeEvent], *, moment: Callable[[float], datetime]
) -> Iterator[tuple[Span, Span | None]]:
    """The span rows of a run with their parents, not saved: nodes in the order in which they began,
    each before its calls. `moment` converts a time of the engine's clock to a datetime."""
    for step in steps:
        call, now = step.call, monotonic()
        ended = step if isinstance(step, NodeEnded) else None
        output = ""
        if ended and ended.result:
            fields: Mapping[str, Any] = {"route": ended.result.route, "score": ended.result.score}
            notes = [f"{name}: {value}" for name, value in fields.items() if value is not None]
            output = "\n\n".join(filter(None, [", ".join(notes), ended.result.output]))
        node = _span(
            call,
            started_at=moment(ended.started if ended else step.at),
            ended_at=moment(ended.at if ended else now),
            kind="node",
            type=call.node.type,
            state=ended.state if ended else "cancelled",
            input="\n\n".join(
                [call.question, *(f"{each.node}:\n{each.output}" for each in call.inputs)]
            ),
            output=output,
            error=ended.error if ended else "",
            input_tokens=call.ledger.input_tokens,
            output_tokens=call.ledger.output_tokens,
        )
        yield node, None
        of_use: dict[int, Span] = {}
        for use in call.ledger.uses:
            of_use[id(use)] = _span(
                call,
                started_at=moment(use.started),
                ended_at=moment(now if use.ended is None else use.ended),
                kind="node" if use.kind == "task" else use.kind,
                type=use.name[:63],
                state="cancelled" if use.ended is None else "failed" if use.error else "done",
                input=use.input,
                output=use.output,
                error=use.error,
                input_tokens=use.input_tokens,
                output_tokens=use.output_tokens,
            )
            yield of_use[id(use)], of_use[id(use.parent)] if use.parent else node


def truncate_for_storage(text: str, most: int) -> str:
    """The beginning of a text, without characters that the database cannot store."""
    text = text if len(text) <= most else f"{text[:most]}…"
    return text.encode(errors="replace").decode().replace("\0", "")


MAX_ANSWER_CHARACTERS = 400_000

#: Seconds between two checks whether a run was cancelled, perhaps by another process.
CANCEL_POLL_SECONDS = 0.4
_CANCEL_KEY = "rag.trace.{id}.cancelled"


class NotRunning(Conflict):
    """The run has already ended."""

    code = "not_running"


@dataclass(slots=True)
class TraceRecorder:
    """Records a run. Its row exists from the start, so that it can be cancelled and nothing is
    lost."""

    row: Trace
    context: RagContext
    documents: frozenset[int]
    began: float = field(default_factory=monotonic)
    input_tokens: int = 0
    output_tokens: int = 0
    checked_at: float = 0.0
    was_cancelled: bool = False
    is_saved: bool = False
    steps: dict[int, NodeEvent] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        *,
        context: RagContext,
        definition: Definition,
        version: int | None,
        question: str,
        documents: Sequence[int] = (),
    ) -> "TraceRecorder":
        """Create the trace. `documents` are those whose text the history may contain."""
        row = Trace.objects.create(
            workspace=context.workspace,
            user=context.user,
            pipeline=definition.id,
            version=version,
            definition=definition.to_json(),
            question=truncate_for_storage(question, MAX_QUESTION_CHARACTERS),
            started_at=timezone.now(),
            documents=sorted(documents),
        )
        return cls(row, context, frozenset(documents))

    @property
    def id(self) -> int:
        return self.row.pk

    def is_cancelled(self) -> bool:
        """Whether its user cancelled the run; the cache is queried only every
        CANCEL_POLL_SECONDS."""
        now = monotonic()
        if not self.was_cancelled and now - self.checked_at >= CANCEL_POLL_SECONDS:
            self.checked_at = now
            with suppress(Exception):  # an unavailable cache must not stop runs
                self.was_cancelled = cache.get(_CANCEL_KEY.format(id=self.id)) is not None
        return self.was_cancelled

    def take(self, event: EngineEvent) -> None:
        """Record the start or end of a node."""
        if isinstance(event, NodeEvent):
            self.steps[id(event.call)] = event
        if isinstance(event, NodeEnded):
            self.input_tokens += event.call.ledger.input_tokens
            self.output_tokens += event.call.ledger.output_tokens

    def finish(self, finished: RunFinished, *, answer: str) -> None:
        """Save the run with its final state."""
        self._save(finished.state, answer, finished.code, finished.detail)

    def abandon(self, *, answer: str) -> None:
        """Save a run that nobody waited for, unless it was saved."""
        if not self.is_saved:
            self._save("cancelled", answer, "cancelled", "Nobody waited for the answer any more.")

    def _save(self, state: str, answer: str, code: str, detail: str) -> None:
        self.is_saved = True
        passages = self.context.found.passages
        documents = sorted(self.documents | {passage.document_id for passage in passages})
        spans = spans_of(self.steps.values(), moment=self._moment)
        with transaction.atomic():
            row = Trace.objects.select_for_update().filter(pk=self.id).first()
            if row is None:
                return  # deleted while it ran, with its user or workspace
            locked = lock_documents(documents)
            is_whole = len(locked) == len(documents) and row.removed_at is None
            row.state, row.ended_at = state, timezone.now()
            row.input_tokens, row.output_tokens = self.input_tokens, self.output_tokens
            row.error_code = code[:40]
            if is_whole:
                row.answer = truncate_for_storage(answer, MAX_ANSWER_CHARACTERS)
                row.error = truncate_for_storage(detail, MAX_ERROR_CHARACTERS)
                row.documents = documents
                row.sources = [[each.number, each.document_id, each.chunk_id] for each in passages]
            else:
                row.documents, row.removed_at = [], row.removed_at or timezone.now()
            row.save()
            waiting = list(islice(spans, MAX_SPANS))
            for ordinal, (span, _) in enumerate(waiting, 1):
                span.workspace, span.trace, span.ordinal = row.workspace, row, ordinal
            if not is_whole:
                for span, _ in waiting:
                    span.input = span.output = span.error = ""
            while waiting:  # parents first, because children refer to them by id
                ready = [(span, parent) for span, parent in waiting if parent is None or parent.pk]
                for span, parent in ready:
                    span.parent = parent
                Span.objects.bulk_create([span for span, _ in ready])
                waiting = [(span, parent) for span, parent in waiting if span.pk is None]
        cache.delete(_CANCEL_KEY.format(id=self.id))

    def _moment(self, at: float) -> datetime:
        """A time of the engine's clock as a datetime."""
        return self.row.started_at + timedelta(seconds=max(0.0, at - self.began))


def get_trace(*, context: RagContext, id: int) -> Trace:
    """One of the user's runs. Raises NotFound."""
    context.require("chat")
    found: Trace | None = own_traces(context=context).filter(pk=id).first()
    if found is None:
        raise NotFound(gettext("This run does not exist. It may have been deleted, or be too old."))
    return found


def own_traces(*, context: RagContext) -> Any:
    """The user's runs in the workspace."""
    return Trace.objects.visible_to(context.user).filter(workspace=context.workspace)


def withheld_traces(rows: Sequence[Trace], *, context: RagContext) -> set[int]:
    """Ids of the runs that quote documents the user may no longer read: their texts must not be
    shown."""
    readable = readable_document_ids(rows, context)
    return {row.pk for row in rows if not readable.issuperset(row.documents)}


def delete_trace(*, context: RagContext, id: int) -> None:
    """Delete one of the user's runs. Raises NotFound, and Conflict if it is running."""
    trace = get_trace(context=context, id=id)
    if trace.state == Trace.State.RUNNING:
        raise Conflict(gettext("The run is in progress. Cancel it first."))
    trace.delete()


def cancel_run(*, context: RagContext, id: int) -> Trace:
    """Cancel a run of the user in whichever process it runs; it ends within a second. Raises
    NotFound, and NotRunning if it has ended."""
    trace = get_trace(context=context, id=id)
    if trace.state != Trace.State.RUNNING:
        raise NotRunning(
            gettext("The run has already ended: {state}.").format(state=trace.get_state_display())
        )
    seconds = round(settings.RAG_ANSWER_SECONDS * 2)
    cache.set(_CANCEL_KEY.format(id=trace.pk), True, seconds)
    return trace


def fail_stale_runs() -> int:
    """Mark runs whose process died as failed; returns how many."""
    late = Now() - timedelta(seconds=settings.RAG_ANSWER_SECONDS * 2)
    return Trace.objects.filter(state=Trace.State.RUNNING, started_at__lt=late).update(
        state=Trace.State.FAILED,
        ended_at=timezone.now(),
        error_code="interrupted",
        error="The site was restarted while it ran. Run it again.",
    )


def prune_traces() -> int:
    """Delete runs older than RAG_TRACE_DAYS; returns how many."""
    late = timezone.now() - timedelta(days=settings.RAG_TRACE_DAYS)
    _, by_model = Trace.objects.filter(started_at__lt=late).delete()
    return by_model.get(Trace._meta.label, 0)


MAX_DAYS = 90


def trace_statistics(
    *, context: RagContext, days: int = 7, pipeline: str = ""
) -> list[dict[str, Any]]:
    """Runs, failures, milliseconds (percentiles, None if nothing has ended) and tokens of the
    user's own runs in the last `days`, by pipeline, and below `nodes` of its nodes; `pipeline`
    limits it to one id."""
    context.require("chat")
    since = timezone.now() - timedelta(days=days)
    traces = own_traces(context=context).filter(started_at__gte=since, ended_at__isnull=False)
    if pipeline:
        traces = traces.filter(pipeline=pipeline)
    spans = Span.objects.filter(trace__in=traces, kind=Span.Kind.NODE, parent=None)
    nodes = _aggregate(
        spans.values(of=F("trace__pipeline"), name=F("node")),
        "of",
        "name",
        bad=Q(state=Span.State.FAILED),
    )
    return [
        {
            **total,
            "nodes": [
                {name: value for name, value in node.items() if name != "of"}
                for node in nodes
                if node["of"] == total["name"]
            ],
        }
        for total in _aggregate(
            traces.values(name=F("pipeline")), "name", bad=Q(state__in=_FAILED_STATES)
        )
    ]


_FAILED_STATES = (Trace.State.FAILED, Trace.State.TIMED_OUT)


def _aggregate(rows: Any, *by: str, bad: Q) -> list[dict[str, Any]]:
    """The statistics of each group of `rows`, which `by` names and orders."""
    took = Extract(F("ended_at") - F("started_at"), "epoch") * 1000.0
    found = (
        rows.order_by()
        .annotate(
            runs=Count("pk"),
            failed=Count("pk", filter=bad),
            p50_ms=Percentile(took, share=0.5),
            p95_ms=Percentile(took, share=0.95),
            p99_ms=Percentile(took, share=0.99),
            input_total=Sum("input_tokens", default=0),
            output_total=Sum("output_tokens", default=0),
        )
        .order_by(*by)
    )
    return [
        {
            **{key: value for key, value in row.items() if not key.endswith(("_ms", "_total"))},
            **{
                key: None if row[key] is None else round(row[key], 1)
                for key in ("p50_ms", "p95_ms", "p99_ms")
            },
            "input_tokens": row["input_total"],
            "output_tokens": row["output_total"],
        }
        for row in found
    ]

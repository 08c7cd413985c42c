"""How long runs and their steps take, and how many tokens: percentiles over a window."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Extract
from django.utils import timezone

from common.aggregates import Percentile
from rag.context import RagContext
from rag.models import Span, Trace
from rag.services.traces import own_traces

MAX_DAYS = 90


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a pipeline, or of one of its nodes: how often it ran and failed, milliseconds, tokens.
    Milliseconds are None where nothing has ended."""

    name: str
    runs: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class PipelineFigures:
    """A pipeline with its nodes."""

    total: Figures
    nodes: tuple[Figures, ...]


def trace_statistics(
    *, context: RagContext, days: int = 7, pipeline: str = ""
) -> list[PipelineFigures]:
    """Of the user's own runs in the last `days`, by pipeline; `pipeline` is the id of one."""
    context.require("chat")
    since = timezone.now() - timedelta(days=days)
    traces = own_traces(context=context).filter(started_at__gte=since, ended_at__isnull=False)
    if pipeline:
        traces = traces.filter(pipeline=pipeline)
    totals = _figures(traces, "pipeline", bad=Q(state__in=_BAD))
    spans = Span.objects.filter(trace__in=traces, kind=Span.Kind.NODE, parent=None)
    nodes: dict[str, list[Figures]] = {}
    for (name, node), figures in _figures(
        spans, "trace__pipeline", "node", bad=Q(state=Span.State.FAILED)
    ).items():
        nodes.setdefault(name, []).append(_named(node, figures))
    return [
        PipelineFigures(_named(name, figures), tuple(nodes.get(name, ())))
        for (name,), figures in totals.items()
    ]


_BAD = (Trace.State.FAILED, Trace.State.TIMED_OUT)


def _figures(rows: Any, *by: str, bad: Q) -> dict[tuple[str, ...], dict[str, Any]]:
    took = Extract(F("ended_at") - F("started_at"), "epoch") * 1000.0
    found = (
        rows.order_by()
        .values(*by)
        .annotate(
            runs=Count("pk"),
            failed=Count("pk", filter=bad),
            p50_ms=Percentile(took, share=0.5),
            p95_ms=Percentile(took, share=0.95),
            p99_ms=Percentile(took, share=0.99),
            input_total=Sum("input_tokens"),
            output_total=Sum("output_tokens"),
        )
        .order_by(*by)
    )
    return {tuple(row[name] for name in by): row for row in found}


def _named(name: str, row: dict[str, Any]) -> Figures:
    rounded = {key: None if row[key] is None else round(row[key], 1) for key in _PERCENTILES}
    return Figures(
        name=name,
        runs=row["runs"],
        failed=row["failed"],
        input_tokens=row["input_total"] or 0,
        output_tokens=row["output_total"] or 0,
        **rounded,
    )


_PERCENTILES = ("p50_ms", "p95_ms", "p99_ms")

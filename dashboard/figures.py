"""Figures of a workspace over a time range: documents, ingestion, searches, quality, unanswered
questions. Begin with `read_dashboard`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.aggregates import BoolOr
from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Count,
    DateTimeField,
    F,
    FloatField,
    Func,
    IntegerField,
    Max,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Extract, Lower, Trim
from django.utils import timezone

from accounts.models import Workspace
from accounts.services import can_edit
from common.fields import Percentile
from dashboard.models import Sample
from dashboard.samples import count_documents
from documents.models import Collection, Document, IngestionRun
from search.models import Evaluation, SearchLog

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RangeKind:
    """A choice on the page: `count` parts of `step` each, ending now."""

    name: str
    label: str
    step: timedelta
    count: int

    @property
    def part(self) -> str:
        """The name of one part's length."""
        hours = int(self.step / timedelta(hours=1))
        return "day" if hours == 24 else "hour" if hours == 1 else f"{hours} hours"


RANGE_KINDS = {
    kind.name: kind
    for kind in (
        RangeKind("24h", "24 hours", timedelta(hours=1), 24),
        RangeKind("7d", "7 days", timedelta(hours=6), 28),
        RangeKind("30d", "30 days", DAY, 30),
    )
}
DEFAULT_RANGE = "7d"
RANGE_CHOICES = [(kind.name, kind.label) for kind in RANGE_KINDS.values()]


@dataclass(frozen=True, slots=True)
class Range:
    """`starts` are when the parts begin, oldest first; the last one ends at `end`, after `now`."""

    kind: RangeKind
    starts: tuple[datetime, ...]
    end: datetime
    now: datetime

    @property
    def start(self) -> datetime:
        return self.starts[0]

    def place(self, moment: datetime) -> int | None:
        """The index of the part that contains `moment`; None if outside."""
        if not self.start <= moment < self.end:
            return None
        return bisect_right(self.starts, moment) - 1

    def spans(self) -> Sequence[tuple[datetime, datetime]]:
        """Start and end of each part."""
        return list(zip(self.starts, (*self.starts[1:], self.end), strict=True))


def range_of(name: str, *, now: datetime) -> Range:
    """The range with that name up to `now`, whose time zone defines when a day begins. Unknown
    names mean the default."""
    kind = RANGE_KINDS.get(name, RANGE_KINDS[DEFAULT_RANGE])
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    end = midnight + ((now - midnight) // kind.step + 1) * kind.step
    starts = tuple(end - kind.step * back for back in range(kind.count, 0, -1))
    return Range(kind, starts, end, now)


class RangePart(Func):
    """The part of a range that contains a time, counted from 1; 0 is before it."""

    function = "width_bucket"
    output_field = IntegerField()

    def __init__(self, moment: Any, range: Range) -> None:
        starts = Value(list(range.starts), output_field=ArrayField(DateTimeField()))
        super().__init__(moment, starts)


def aggregate_by_part(
    rows: QuerySet[Any], moment: Any, range: Range, /, **figures: Any
) -> dict[int, dict[str, Any]]:
    """Aggregates `figures` of the rows of each part that has any, by its index from 0."""
    counted = (
        rows.order_by()
        .annotate(part=RangePart(F(moment) if isinstance(moment, str) else moment, range))
        .values("part")
        .annotate(**figures)
    )
    return {row["part"] - 1: row for row in counted if row["part"] > 0}


def counts_by_part(rows: dict[int, dict[str, Any]], name: str, range: Range) -> tuple[int, ...]:
    """One figure for each part, 0 if there are no rows."""
    return tuple(
        rows[place][name] or 0 if place in rows else 0 for place, _ in enumerate(range.starts)
    )


def values_by_part(
    rows: dict[int, dict[str, Any]], name: str, range: Range
) -> tuple[float | None, ...]:
    """One figure for each part, None if there are no rows."""
    return tuple(
        rows[place][name] if place in rows else None for place, _ in enumerate(range.starts)
    )


#: Collections whose quality is drawn: those with the largest golden sets.
MAX_COLLECTIONS = 4

CountSeries = tuple[int, ...]
OptionalSeries = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """The counts at this moment."""

    documents: int = 0
    chunks: int = 0
    waiting: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Stock:
    """Counts at the end of each part, and the highest number waiting within it; None if unknown.
    `since` is the first sample: everything before it was backfilled."""

    documents: OptionalSeries
    chunks: OptionalSeries
    waiting: OptionalSeries
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Ingested:
    """Files ready and failed and chunks made, in runs that ended in each part; `rate` is chunks a
    second while runs worked, None without any."""

    ready: CountSeries
    failed: CountSeries
    chunks: CountSeries
    rate: float | None


@dataclass(frozen=True, slots=True)
class SearchSource:
    """Searches of each part from one source, one of `SearchLog.Source`."""

    source: str
    count: CountSeries


@dataclass(frozen=True, slots=True)
class Searched:
    """Searches of each part: how many, how many found nothing, how many were chat questions and how
    many of these were refused; median and 95th percentile in milliseconds, of each part and of all.
    """

    count: CountSeries
    nothing: CountSeries
    asked: CountSeries
    refused: CountSeries
    p50_ms: OptionalSeries
    p95_ms: OptionalSeries
    total_p50_ms: float | None
    total_p95_ms: float | None
    doors: tuple[SearchSource, ...]


@dataclass(frozen=True, slots=True)
class Quality:
    """nDCG@10 of one collection's golden set as last measured in each part; None if it was not."""

    slug: str
    name: str
    ndcg: OptionalSeries
    latest: float
    questions: int


@dataclass(frozen=True, slots=True)
class Dashboard:
    """All figures of the dashboard except unanswered questions."""

    range: Range
    now: Now
    stock: Stock
    ingested: Ingested
    searched: Searched
    quality: tuple[Quality, ...]


def read_dashboard(*, workspace: Workspace, range_name: str = "") -> Dashboard:
    """Figures of `workspace` over the range with that name. Counts only, no texts of users."""
    range = range_of(range_name, now=timezone.localtime())
    row = next(iter(count_documents(Document.objects.filter(workspace=workspace))), None)
    now = Now(row["documents"], row["chunks"] or 0, row["waiting"], row["failed"]) if row else Now()
    return Dashboard(
        range=range,
        now=now,
        stock=_stock(workspace, range, now),
        ingested=_ingested(workspace, range),
        searched=_searched(workspace, range),
        quality=_quality(workspace, range),
    )


def _stock(workspace: Workspace, range: Range, now: Now) -> Stock:
    fields = ("at", "documents", "chunks", "waiting")
    samples = Sample.objects.filter(workspace=workspace).order_by("at")
    before = samples.filter(at__lt=range.start).order_by("-at")[:1].values_list(*fields)
    rows = samples.filter(at__gte=range.start, at__lt=range.end).values_list(*fields)
    first = samples.filter(is_estimated=False).values_list("at", flat=True).first()
    last: dict[int, tuple[int, int]] = {}
    most: dict[int, int] = {}
    for at, documents, chunks, waiting in rows:
        place = range.place(at)
        if place is not None:
            last[place] = (documents, chunks)
            most[place] = max(most.get(place, 0), waiting)
    present = range.place(range.now)
    if present is not None:
        last[present] = (now.documents, now.chunks)
        most[present] = max(most.get(present, 0), now.waiting)
    known = next(iter(before), None)
    carried: tuple[int, int] | None = (known[1], known[2]) if known else None
    documents_then: list[float | None] = []
    chunks_then: list[float | None] = []
    for place, start in enumerate(range.starts):
        carried = last.get(place, carried)
        current = carried if start <= range.now else None
        documents_then.append(current[0] if current else None)
        chunks_then.append(current[1] if current else None)
    waiting_then = tuple(most.get(place) for place, _ in enumerate(range.starts))
    return Stock(tuple(documents_then), tuple(chunks_then), waiting_then, since=first)


def _ingested(workspace: Workspace, range: Range) -> Ingested:
    ended = Coalesce("finished_at", "updated_at")
    runs = (
        IngestionRun.objects.filter(workspace=workspace)
        .annotate(ended=ended)
        .filter(ended__gte=range.start, ended__lt=range.end)
    )
    seconds = Cast(Extract(F("ended") - F("started_at"), "epoch"), FloatField())
    rows = aggregate_by_part(
        runs,
        "ended",
        range,
        read=Sum("ready"),
        broken=Sum("failed"),
        passages=Sum("chunks"),
        seconds=Sum(seconds, filter=Q(chunks__gt=0)),
    )
    chunks = counts_by_part(rows, "passages", range)
    worked = sum(row["seconds"] or 0.0 for row in rows.values())
    return Ingested(
        ready=counts_by_part(rows, "read", range),
        failed=counts_by_part(rows, "broken", range),
        chunks=chunks,
        rate=round(sum(chunks) / worked, 1) if worked and sum(chunks) else None,
    )


def _searched(workspace: Workspace, range: Range) -> Searched:
    log = SearchLog.objects.filter(
        workspace=workspace, created_at__gte=range.start, created_at__lt=range.end
    )
    of_chats = Q(source=SearchLog.Source.CHAT)
    times = {
        "p50": Percentile("milliseconds", share=0.5),
        "p95": Percentile("milliseconds", share=0.95),
    }
    rows = aggregate_by_part(
        log,
        "created_at",
        range,
        number=Count("id"),
        nothing=Count("id", filter=Q(total=0) | Q(refused=True)),
        asked=Count("id", filter=of_chats),
        declined=Count("id", filter=of_chats & Q(refused=True)),
        **{f"by_{source}": Count("id", filter=Q(source=source)) for source in SearchLog.Source},
        **times,
    )
    total = log.aggregate(**times)
    return Searched(
        count=counts_by_part(rows, "number", range),
        nothing=counts_by_part(rows, "nothing", range),
        asked=counts_by_part(rows, "asked", range),
        refused=counts_by_part(rows, "declined", range),
        p50_ms=_rounded(values_by_part(rows, "p50", range)),
        p95_ms=_rounded(values_by_part(rows, "p95", range)),
        total_p50_ms=_rounded([total["p50"]])[0],
        total_p95_ms=_rounded([total["p95"]])[0],
        doors=tuple(
            SearchSource(source, counts_by_part(rows, f"by_{source}", range))
            for source in SearchLog.Source.values
        ),
    )


def _rounded(values: Sequence[float | None]) -> OptionalSeries:
    return tuple(None if value is None else round(value, 1) for value in values)


def _quality(workspace: Workspace, range: Range) -> tuple[Quality, ...]:
    done = Evaluation.objects.filter(workspace=workspace).done()
    latest = {
        row.collection_id: row
        for row in done.order_by("collection_id", "-id").distinct("collection_id")
    }
    largest = sorted(latest.values(), key=lambda row: (-row.questions, row.collection_id))[
        :MAX_COLLECTIONS
    ]
    collections = Collection.objects.in_bulk([row.collection_id for row in largest])
    within = done.filter(created_at__gte=range.start, created_at__lt=range.end).order_by("id")
    values: dict[int, dict[int, float]] = {}
    for collection, at, ndcg in within.values_list("collection", "created_at", "ndcg"):
        place = range.place(at)
        if place is not None and ndcg is not None:
            values.setdefault(collection, {})[place] = ndcg
    return tuple(
        Quality(
            slug=collections[row.collection_id].slug,
            name=collections[row.collection_id].name,
            ndcg=tuple(
                values.get(row.collection_id, {}).get(place) for place, _ in enumerate(range.starts)
            ),
            latest=row.ndcg or 0.0,
            questions=row.questions,
        )
        for row in largest
        if row.collection_id in collections
    )


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A question that found nothing: how often, by how many people, and when last. `refused`: a
    chat answered that the sources do not say."""

    question: str
    times: int
    people: int
    refused: bool
    last_at: datetime


def unanswered_questions(
    *, workspace: Workspace, user: Any, range: Range, most: int = 20
) -> tuple[list[UnansweredQuestion], int]:
    """The most frequent ones, and how many different ones there are. Editors see everybody's
    questions, others only their own."""
    log = SearchLog.objects.filter(workspace=workspace)
    if not can_edit(user=user, workspace=workspace):
        log = log.visible_to(user)
    rows = (
        log.found_nothing()
        .filter(created_at__gte=range.start, created_at__lt=range.end)
        .order_by()
        .annotate(same=Lower(Trim("query")))
        .values("same")
        .annotate(
            question=Max("query"),
            times=Count("id"),
            people=Count("user", distinct=True),
            refused=BoolOr("refused"),
            last_at=Max("created_at"),
        )
    )
    top_rows = rows.order_by("-times", "-last_at", "same")[: most + 1]
    found = [
        UnansweredQuestion(
            question=row["question"].strip(),
            times=row["times"],
            people=row["people"],
            refused=row["refused"],
            last_at=row["last_at"],
        )
        for row in top_rows
    ]
    return found[:most], len(found) if len(found) <= most else rows.count()

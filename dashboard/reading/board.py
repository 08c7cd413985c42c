"""Everything that the dashboard shows but the questions: counts, times, quality."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, FloatField, Q, Sum
from django.db.models.functions import Cast, Coalesce, Extract
from django.utils import timezone

from accounts.models import Workspace
from common.aggregates import Percentile
from dashboard.models import Sample
from dashboard.ranges import Range, range_of
from dashboard.reading.parts import by_part, column, gappy
from dashboard.sampling import counted
from documents.models import Collection, Document, IngestionRun
from search.models import Evaluation, SearchLog

#: Collections whose quality is drawn: those with the largest golden sets.
LINES = 4

Whole = tuple[int, ...]
Gappy = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """How much there is at this moment."""

    documents: int = 0
    chunks: int = 0
    waiting: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Stock:
    """How much there was at the end of each part, and the most that waited within it; None where
    nobody counted. `since` is when the first sample was taken: all before it was counted later."""

    documents: Gappy
    chunks: Gappy
    waiting: Gappy
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Ingested:
    """Files read and failed and passages made, in runs that ended in each part; `rate` is passages
    a second over all of them while they worked, None without any."""

    ready: Whole
    failed: Whole
    chunks: Whole
    rate: float | None


@dataclass(frozen=True, slots=True)
class Door:
    """Searches of each part that came by one door: `source` is one of `SearchLog.Source`."""

    source: str
    count: Whole


@dataclass(frozen=True, slots=True)
class Searched:
    """Searches of each part: how many, how many found nothing, how many were questions of a chat
    and how many of these were refused; the median and the 95th percentile in milliseconds, of
    each part and of all."""

    count: Whole
    nothing: Whole
    asked: Whole
    refused: Whole
    p50_ms: Gappy
    p95_ms: Gappy
    total_p50_ms: float | None
    total_p95_ms: float | None
    doors: tuple[Door, ...]


@dataclass(frozen=True, slots=True)
class Quality:
    """nDCG@10 of one collection's golden set as last measured in each part; None where it was
    not."""

    slug: str
    name: str
    ndcg: Gappy
    latest: float
    questions: int


@dataclass(frozen=True, slots=True)
class Board:
    """All of it."""

    range: Range
    now: Now
    stock: Stock
    ingested: Ingested
    searched: Searched
    quality: tuple[Quality, ...]


def read_board(*, workspace: Workspace, range_name: str = "") -> Board:
    """Figures of `workspace` over the range of that name. Counts only, and nobody's words."""
    range = range_of(range_name, now=timezone.localtime())
    now = _now(workspace)
    return Board(
        range=range,
        now=now,
        stock=_stock(workspace, range, now),
        ingested=_ingested(workspace, range),
        searched=_searched(workspace, range),
        quality=_quality(workspace, range),
    )


def _now(workspace: Workspace) -> Now:
    row = next(iter(counted(Document.objects.filter(workspace=workspace))), None)
    if row is None:
        return Now()
    return Now(row["documents"], row["chunks"] or 0, row["waiting"], row["failed"])


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
    held: tuple[int, int] | None = (known[1], known[2]) if known else None
    documents_then: list[float | None] = []
    chunks_then: list[float | None] = []
    for place, start in enumerate(range.starts):
        held = last.get(place, held)
        shown = held if start <= range.now else None
        documents_then.append(shown[0] if shown else None)
        chunks_then.append(shown[1] if shown else None)
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
    rows = by_part(
        runs,
        "ended",
        range,
        read=Sum("ready"),
        broken=Sum("failed"),
        passages=Sum("chunks"),
        seconds=Sum(seconds, filter=Q(chunks__gt=0)),
    )
    chunks = column(rows, "passages", range)
    worked = sum(row["seconds"] or 0.0 for row in rows.values())
    return Ingested(
        ready=column(rows, "read", range),
        failed=column(rows, "broken", range),
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
    rows = by_part(
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
        count=column(rows, "number", range),
        nothing=column(rows, "nothing", range),
        asked=column(rows, "asked", range),
        refused=column(rows, "declined", range),
        p50_ms=_rounded(gappy(rows, "p50", range)),
        p95_ms=_rounded(gappy(rows, "p95", range)),
        total_p50_ms=_rounded([total["p50"]])[0],
        total_p95_ms=_rounded([total["p95"]])[0],
        doors=tuple(
            Door(source, column(rows, f"by_{source}", range)) for source in SearchLog.Source.values
        ),
    )


def _rounded(values: Sequence[float | None]) -> Gappy:
    return tuple(None if value is None else round(value, 1) for value in values)


def _quality(workspace: Workspace, range: Range) -> tuple[Quality, ...]:
    done = Evaluation.objects.filter(workspace=workspace).done()
    latest = {
        row.collection_id: row
        for row in done.order_by("collection_id", "-id").distinct("collection_id")
    }
    largest = sorted(latest.values(), key=lambda row: (-row.questions, row.collection_id))[:LINES]
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

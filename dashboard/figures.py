"""Figures of a workspace over a time range: documents, ingestion, searches, quality, unanswered
questions. Begin with `read_dashboard`.
"""

from bisect import bisect_right
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
from django.utils.translation import gettext, gettext_noop

from accounts.models import Workspace
from accounts.services import can_edit
from common.fields import Percentile
from dashboard.models import Sample
from dashboard.samples import count_documents
from documents.models import Collection, Document, IngestionRun
from search.models import Evaluation, SearchLog

DAY = timedelta(days=1)


#: Label of each choice on the page, and how many parts of which length it has, ending now.
RANGE_KINDS = {
    "24h": (gettext_noop("24 hours"), 24, timedelta(hours=1)),
    "7d": (gettext_noop("7 days"), 28, timedelta(hours=6)),
    "30d": (gettext_noop("30 days"), 30, DAY),
}
DEFAULT_RANGE = "7d"
RANGE_CHOICES = [(name, label) for name, (label, _, _) in RANGE_KINDS.items()]


@dataclass(frozen=True, slots=True)
class Range:
    """`starts` are when the parts begin, oldest first, each `step` long; the last one ends at
    `end`, after `now`.
    """

    name: str
    label: str
    step: timedelta
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


def range_of(name: str, *, now: datetime) -> Range:
    """The range with that name up to `now`, whose time zone defines when a day begins. Unknown
    names mean the default."""
    name = name if name in RANGE_KINDS else DEFAULT_RANGE
    label, count, step = RANGE_KINDS[name]
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    end = midnight + ((now - midnight) // step + 1) * step
    starts = tuple(end - step * back for back in range(count, 0, -1))
    return Range(name, gettext(label), step, starts, end, now)


class RangePart(Func):
    """The part of a range that contains a time, counted from 1; 0 is before it."""

    function = "width_bucket"
    output_field = IntegerField()

    def __init__(self, moment: Any, range: Range) -> None:
        starts = Value(list(range.starts), output_field=ArrayField(DateTimeField()))
        super().__init__(moment, starts)


def aggregate_by_part(
    rows: QuerySet[Any], moment: str, range: Range, /, **figures: Any
) -> dict[str, tuple[Any, ...]]:
    """Each of `figures` over the rows of each part; None for a part that has none."""
    counted = (
        rows.order_by()
        .annotate(part=RangePart(F(moment), range))
        .values("part")
        # Under names that no field has.
        .annotate(**{f"{name}_of_part": figure for name, figure in figures.items()})
    )
    found = {row["part"] - 1: row for row in counted}
    return {
        name: tuple(
            found.get(place, {}).get(f"{name}_of_part") for place, _ in enumerate(range.starts)
        )
        for name in figures
    }


#: Collections whose quality is drawn: those with the largest golden sets.
MAX_COLLECTIONS = 4

#: Figures by name, as the API names them: numbers, or one number for each part of the range.
Figures = dict[str, Any]


def read_dashboard(*, workspace: Workspace, range_name: str = "") -> Figures:
    """Figures of `workspace` over the range with that name, all but unanswered questions. Counts
    only, no texts of users."""
    range = range_of(range_name, now=timezone.localtime())
    rows = count_documents(Document.objects.filter(workspace=workspace))
    row: Figures = next(iter(rows), {})
    now = {name: row.get(name) or 0 for name in ("documents", "chunks", "waiting", "failed")}
    return {
        "range": range,
        "now": now,
        "stock": _stock(workspace, range, now),
        "ingested": _ingested(workspace, range),
        "searched": _searched(workspace, range),
        "quality": _quality(workspace, range),
    }


def _stock(workspace: Workspace, range: Range, now: Figures) -> Figures:
    """Counts at the end of each part, and the highest number waiting within it; None if unknown.
    `since` is the first sample: everything before it was backfilled."""
    fields = ("at", "documents", "chunks", "waiting")
    samples = Sample.objects.filter(workspace=workspace).order_by("at")
    before = samples.filter(at__lt=range.start).order_by("-at").values_list(*fields).first()
    rows = samples.filter(at__gte=range.start, at__lt=range.end).values_list(*fields)
    current = (range.now, now["documents"], now["chunks"], now["waiting"])
    last: dict[int | None, tuple[int, int]] = {}
    most: dict[int | None, int] = {}
    for at, documents, chunks, waiting in (*rows, current):
        place = range.place(at)
        last[place] = (documents, chunks)
        most[place] = max(most.get(place, 0), waiting)
    carried: tuple[int | None, int | None] = before[1:3] if before else (None, None)
    stock: list[tuple[int | None, int | None]] = []
    for place, start in enumerate(range.starts):
        carried = last.get(place, carried)
        stock.append(carried if start <= range.now else (None, None))
    documents_then, chunks_then = zip(*stock, strict=True)
    return {
        "documents": documents_then,
        "chunks": chunks_then,
        "waiting": tuple(most.get(place) for place, _ in enumerate(range.starts)),
        "since": samples.filter(is_estimated=False).values_list("at", flat=True).first(),
    }


def _ingested(workspace: Workspace, range: Range) -> Figures:
    """Files ready and failed and chunks made, in runs that ended in each part; `rate` is chunks a
    second while runs worked, None without any."""
    runs = (
        IngestionRun.objects.filter(workspace=workspace)
        .annotate(ended=Coalesce("finished_at", "updated_at"))
        .filter(ended__gte=range.start, ended__lt=range.end)
    )
    seconds = Cast(Extract(F("ended") - F("started_at"), "epoch"), FloatField())
    figures = _zeroes(
        aggregate_by_part(
            runs,
            "ended",
            range,
            ready=Sum("ready"),
            failed=Sum("failed"),
            chunks=Sum("chunks"),
            seconds=Sum(seconds, filter=Q(chunks__gt=0)),
        )
    )
    worked, chunks = sum(figures.pop("seconds")), sum(figures["chunks"])
    return {**figures, "rate": round(chunks / worked, 1) if worked and chunks else None}


def _zeroes(figures: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """0 in place of None."""
    return {name: tuple(value or 0 for value in values) for name, values in figures.items()}


def _searched(workspace: Workspace, range: Range) -> Figures:
    """Searches of each part: how many, how many found nothing, how many were chat questions and how
    many of these were refused, and from which source; median and 95th percentile in milliseconds,
    of each part and of all."""
    log = SearchLog.objects.filter(
        workspace=workspace, created_at__gte=range.start, created_at__lt=range.end
    )
    of_chats = Q(source=SearchLog.Source.CHAT)
    times = {
        "p50_ms": Percentile("milliseconds", share=0.5),
        "p95_ms": Percentile("milliseconds", share=0.95),
    }
    counts = {
        "count": Count("id"),
        "nothing": Count("id", filter=Q(total=0) | Q(refused=True)),
        "asked": Count("id", filter=of_chats),
        "refused": Count("id", filter=of_chats & Q(refused=True)),
        **{f"by_{each}": Count("id", filter=Q(source=each)) for each in SearchLog.Source.values},
    }
    figures = aggregate_by_part(log, "created_at", range, **counts, **times)
    counted = _zeroes({name: figures[name] for name in counts})
    return {
        **{name: tuple(map(_rounded, figures[name])) for name in times},
        **{f"total_{name}": _rounded(value) for name, value in log.aggregate(**times).items()},
        "doors": [
            {"source": source, "count": counted.pop(f"by_{source}")}
            for source in SearchLog.Source.values
        ],
        **counted,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _quality(workspace: Workspace, range: Range) -> list[Figures]:
    """nDCG@10 of the largest golden sets as last measured in each part; None if it was not."""
    done = Evaluation.objects.filter(workspace=workspace).done()
    latest = done.order_by("collection_id", "-id").distinct("collection_id")
    largest = sorted(latest, key=lambda row: (-row.questions, row.collection_id))[:MAX_COLLECTIONS]
    collections = Collection.objects.in_bulk([row.collection_id for row in largest])
    within = done.filter(created_at__gte=range.start, created_at__lt=range.end).order_by("id")
    values = {
        (collection, range.place(at)): ndcg
        for collection, at, ndcg in within.values_list("collection", "created_at", "ndcg")
        if ndcg is not None
    }
    return [
        {
            "slug": collections[row.collection_id].slug,
            "name": collections[row.collection_id].name,
            "ndcg": [values.get((row.collection_id, at)) for at, _ in enumerate(range.starts)],
            "latest": row.ndcg or 0.0,
            "questions": row.questions,
        }
        for row in largest
        if row.collection_id in collections
    ]


def unanswered_questions(
    *, workspace: Workspace, user: Any, range: Range, most: int = 20
) -> tuple[list[Figures], int]:
    """The most frequent questions that found nothing, and how many different ones there are: how
    often, by how many people, when last, and whether a chat answered that the sources do not say.
    Editors see everybody's questions, others only their own."""
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
    found = [{**row, "question": row["question"].strip()} for row in top_rows]
    return found[:most], len(found) if len(found) <= most else rows.count()

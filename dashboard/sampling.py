"""Samples: counted every five minutes, thinned to one an hour, pruned with the search log."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncHour
from django.utils import timezone

from accounts.models import Workspace
from dashboard.models import Sample
from documents.models import Document

EVERY = timedelta(minutes=5)
#: So long every sample is kept, and then one an hour.
FINE = timedelta(days=2)
#: As far back what was there is counted when a workspace is first looked at.
BACK = timedelta(days=30)

Status = Document.Status
WAITING = Q(status__in=[Status.QUEUED, Status.PROCESSING])


def counted(documents: QuerySet[Any]) -> Any:
    """Rows of how much there is, by workspace: the fields of a sample."""
    return (
        documents.filter(is_current=True)
        .order_by()
        .values("workspace_id")
        .annotate(
            # Those that are found: of a changed one the text before stays until it is read.
            documents=Count("id", filter=Q(chunk_count__gt=0) | Q(status=Status.READY)),
            chunks=Sum("chunk_count"),
            waiting=Count("id", filter=WAITING),
            failed=Count("id", filter=Q(status=Status.FAILED)),
        )
    )


def take_samples(*, now: datetime | None = None) -> int:
    """A sample of each workspace for the five minutes that have begun, if there is none; how many
    were taken. What one cannot know of the time before is counted from what is still there."""
    now = now or timezone.now()
    slot = now - timedelta(seconds=now.timestamp() % EVERY.total_seconds())
    slot = slot.replace(microsecond=0)
    done = set(Sample.objects.filter(at=slot).values_list("workspace", flat=True))
    rows = {row["workspace_id"]: row for row in counted(Document.objects.all())}
    # Those that have become empty are counted too, once.
    emptied = _last_above_nothing(set(_ids()) - rows.keys())
    fresh = (rows.keys() | emptied) - done
    known = set(Sample.objects.filter(workspace__in=fresh).values_list("workspace", flat=True))
    samples = [sample for pk in sorted(fresh - known) for sample in _before(pk, slot)]
    for pk in sorted(fresh):
        figures = {name: value or 0 for name, value in rows.get(pk, {}).items()}
        samples.append(Sample(**{"workspace_id": pk, **figures, "at": slot}))
    Sample.objects.bulk_create(samples, ignore_conflicts=True)
    return len(fresh)


def _ids() -> Iterable[int]:
    return Workspace.objects.values_list("pk", flat=True)


def _last_above_nothing(workspaces: set[int]) -> set[int]:
    last = (
        Sample.objects.filter(workspace__in=workspaces)
        .order_by("workspace_id", "-at")
        .distinct("workspace_id")
    )
    return {row.workspace_id for row in last if row.documents or row.waiting or row.failed}


def _before(workspace_id: int, slot: datetime) -> list[Sample]:
    """Samples for every hour before `slot` since the first document, of what is there now."""
    hours = (
        Document.objects.filter(workspace=workspace_id, is_current=True, indexed_at__lt=slot)
        .order_by()
        .annotate(hour=TruncHour("indexed_at"))
        .values_list("hour")
        .annotate(Count("id"), Sum("chunk_count"))
    )
    documents: Counter[datetime] = Counter()
    chunks: Counter[datetime] = Counter()
    first = slot.replace(minute=0, second=0) - BACK
    for hour, number, passages in hours:
        end = max(hour + timedelta(hours=1), first)
        documents[end] += number
        chunks[end] += passages or 0
    if not documents:
        return []
    begin = max(min(documents) - timedelta(hours=1), first)
    count = max(0, -((begin - slot) // timedelta(hours=1)))
    moments = [begin + timedelta(hours=number) for number in range(count)]
    return [
        Sample(
            workspace_id=workspace_id, at=at, documents=number, chunks=passages, is_estimated=True
        )
        for at, number, passages in zip(
            moments,
            accumulate(documents[at] for at in moments),
            accumulate(chunks[at] for at in moments),
            strict=True,
        )
    ]


def prune_samples(*, now: datetime | None = None) -> int:
    """Keep one an hour of those older than two days, and none older than RAGSITE_SEARCH_LOG_DAYS;
    how many went."""
    now = now or timezone.now()
    old = Q(at__lt=now - timedelta(days=settings.SEARCH_LOG_DAYS))
    fine = Q(at__lt=now - FINE) & ~Q(at__minute=0)
    deleted, _ = Sample.objects.filter(old | fine).delete()
    return deleted

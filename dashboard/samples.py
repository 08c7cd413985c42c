"""Samples of a workspace's counts: taken every five minutes, thinned to one an hour, pruned with
the search log.
"""

from collections import Counter
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

SAMPLE_INTERVAL = timedelta(minutes=5)
#: Every sample is kept this long, then one an hour.
FULL_DETAIL_PERIOD = timedelta(days=2)
#: Period backfilled from existing documents at a workspace's first sample.
BACKFILL_PERIOD = timedelta(days=30)

Status = Document.Status
WAITING = Q(status__in=[Status.QUEUED, Status.PROCESSING])


def count_documents(documents: QuerySet[Any]) -> Any:
    """Counts by workspace: the fields of a sample."""
    return (
        documents.filter(is_current=True)
        .order_by()
        .values("workspace_id")
        .annotate(
            # Searchable ones: a changed document keeps its previous text until it is ingested
            # again.
            documents=Count("id", filter=Q(chunk_count__gt=0) | Q(status=Status.READY)),
            chunks=Sum("chunk_count"),
            waiting=Count("id", filter=WAITING),
            failed=Count("id", filter=Q(status=Status.FAILED)),
        )
    )


def take_samples(*, now: datetime | None = None) -> int:
    """Take a sample of each workspace for the current five minutes, unless there is one; returns
    how many were taken. The time before a workspace's first sample is backfilled from its
    documents."""
    now = now or timezone.now()
    slot = now - timedelta(seconds=now.timestamp() % SAMPLE_INTERVAL.total_seconds())
    slot = slot.replace(microsecond=0)
    done = set(Sample.objects.filter(at=slot).values_list("workspace", flat=True))
    rows = {row["workspace_id"]: row for row in count_documents(Document.objects.all())}
    # Workspaces that became empty get one more sample.
    workspaces = set(Workspace.objects.values_list("pk", flat=True)) - rows.keys()
    last = (
        Sample.objects.filter(workspace__in=workspaces)
        .order_by("workspace_id", "-at")
        .distinct("workspace_id")
    )
    emptied = {row.workspace_id for row in last if row.documents or row.waiting or row.failed}
    fresh = (rows.keys() | emptied) - done
    known = set(Sample.objects.filter(workspace__in=fresh).values_list("workspace", flat=True))
    samples = [sample for pk in sorted(fresh - known) for sample in _backfilled_samples(pk, slot)]
    for pk in sorted(fresh):
        figures = {name: value or 0 for name, value in rows.get(pk, {}).items()}
        samples.append(Sample(**{"workspace_id": pk, **figures, "at": slot}))
    Sample.objects.bulk_create(samples, ignore_conflicts=True)
    return len(fresh)


def _backfilled_samples(workspace_id: int, slot: datetime) -> list[Sample]:
    """Samples for every hour before `slot` since the first document, from documents that still
    exist."""
    hours = (
        Document.objects.filter(workspace=workspace_id, is_current=True, indexed_at__lt=slot)
        .order_by()
        .annotate(hour=TruncHour("indexed_at"))
        .values_list("hour")
        .annotate(Count("id"), Sum("chunk_count"))
    )
    documents: Counter[datetime] = Counter()
    chunks: Counter[datetime] = Counter()
    first = slot.replace(minute=0, second=0) - BACKFILL_PERIOD
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
    """Thin samples older than two days to one an hour, and delete those older than
    RAGSITE_SEARCH_LOG_DAYS; returns how many were deleted."""
    now = now or timezone.now()
    old = Q(at__lt=now - timedelta(days=settings.SEARCH_LOG_DAYS))
    fine = Q(at__lt=now - FULL_DETAIL_PERIOD) & ~Q(at__minute=0)
    deleted, _ = Sample.objects.filter(old | fine).delete()
    return deleted

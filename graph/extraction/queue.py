"""Extraction queue: due documents, leases, retries, and the pause while the chat model cannot be
reached.

The row is authoritative: a worker holds a token on it until its lease ends, attempts are
counted when it is claimed, and results are stored under the token.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from common import leases
from common.leases import database_now, heartbeat, lease_expired
from documents.models import Collection
from graph.models import Extraction

_OUTAGES = leases.CircuitBreaker("graph.extraction")


def is_paused() -> bool:
    """Whether the model was unavailable a moment ago."""
    return _OUTAGES.is_paused()


def record_outage() -> None:
    """Pauses extraction by the model, longer each time."""
    _OUTAGES.record_failure(first=settings.GRAPH_EXTRACTION_RETRY_SECONDS)


def record_answer() -> None:
    """Ends the pause: the model answered."""
    _OUTAGES.record_success()


def retry_delay(failures: int, *, longest: float) -> float:
    """Seconds until the next attempt: doubles with each failure."""
    return leases.backoff_seconds(
        failures, first=settings.GRAPH_EXTRACTION_RETRY_SECONDS, longest=longest
    )


State = Extraction.State
MAX_RETRY_SECONDS = 3600.0
#: Most documents per sweep.
SWEEP_SIZE = 5_000


@dataclass(frozen=True, slots=True)
class DueDocument:
    """A document that can be claimed. `tries`: unfinished attempts so far."""

    document_id: int
    collection_id: int
    mode: str
    chunks: int
    tries: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Documents of one collection that a worker has leased."""

    token: UUID
    workspace_id: int
    collection_id: int
    mode: str
    document_ids: tuple[int, ...]


class Failure(Enum):
    """Why extraction failed: OWN (the document), OUTAGE (no model, retried for much
    longer), FINAL (retrying will not help).
    """

    OWN = "own"
    OUTAGE = "outage"
    FINAL = "final"


def due_documents(document_ids: Sequence[int]) -> list[DueDocument]:
    """Due and unclaimed ones of the documents, in order of ids."""
    rows = _claimable().filter(document_id__in=document_ids).order_by("document_id")
    columns = "document_id", "collection_id", "collection__graph", "document__chunk_count"
    return [DueDocument(*row) for row in rows.values_list(*columns, "attempts")]


@transaction.atomic
def claim(documents: Sequence[DueDocument]) -> Claim | None:
    """Leases these documents of one collection, except those claimed meanwhile.

    A document whose workers died repeatedly is marked dead.
    """
    wanted = [document.document_id for document in documents]
    rows = list(
        _claimable()
        .select_for_update(skip_locked=True, of=("self",))
        .filter(document_id__in=wanted, collection__graph=documents[0].mode)
        .order_by("pk")
    )
    most = settings.GRAPH_EXTRACTION_MAX_ATTEMPTS
    for row in rows:
        if row.attempts >= most:
            died = row.error or "The worker died each time, see its log."
            _mark_dead(Extraction.objects.filter(pk=row.pk), row.attempts, died)
    taken = [row for row in rows if row.attempts < most]
    if not taken:
        return None
    token = uuid4()
    Extraction.objects.filter(pk__in=[row.pk for row in taken]).update(
        state=State.RUNNING, token=token, leased_until=_lease_end(), attempts=F("attempts") + 1
    )
    return Claim(
        token,
        taken[0].workspace_id,
        taken[0].collection_id,
        documents[0].mode,
        tuple(sorted(row.document_id for row in taken)),
    )


def renew_lease(claim: Claim) -> AbstractContextManager[None]:
    """Context manager that renews the lease while a model works, which may take longer."""
    return heartbeat(
        lambda: claimed_rows(claim).update(leased_until=_lease_end()),
        seconds=settings.INGESTION_LEASE_SECONDS / 3,
    )


def claimed_rows(claim: Claim) -> QuerySet[Extraction]:
    """Rows that this claim still holds."""
    return Extraction.objects.filter(token=claim.token, document_id__in=claim.document_ids)


@transaction.atomic
def retry_later(claim: Claim, document_id: int, error: str, *, failure: Failure) -> datetime | None:
    """Schedules another attempt with growing delay; returns when. None if it is dead
    now or no longer held.
    """
    mine = claimed_rows(claim).filter(document_id=document_id)
    row = mine.select_for_update().first()
    if row is None:
        return None
    is_outage = failure is Failure.OUTAGE
    outages = row.outages + 1 if is_outage else 0
    attempts = row.attempts - 1 if is_outage else row.attempts
    failures = outages or attempts
    most = (
        settings.GRAPH_EXTRACTION_MAX_OUTAGES
        if is_outage
        else settings.GRAPH_EXTRACTION_MAX_ATTEMPTS
    )
    if failure is Failure.FINAL or failures >= most:
        _mark_dead(mine, failures, error)
        return None
    when = database_now() + timedelta(seconds=retry_delay(failures, longest=MAX_RETRY_SECONDS))
    mine.update(
        state=State.WAITING,
        attempts=attempts,
        outages=outages,
        error=error,
        due_at=when,
        token=None,
        leased_until=None,
    )
    return when


@transaction.atomic
def requeue(extraction_ids: Sequence[int]) -> list[int]:
    """Requeues dead extractions; returns their document ids."""
    dead = Extraction.objects.select_for_update().filter(pk__in=extraction_ids, state=State.DEAD)
    rows = dict(dead.order_by("pk").values_list("pk", "document_id"))
    Extraction.objects.filter(pk__in=rows).update(
        state=State.WAITING, attempts=0, outages=0, due_at=Now()
    )
    return list(rows.values())


@transaction.atomic
def sweep_due() -> list[int]:
    """Documents due for extraction by rules, also of dead workers; not returned again
    within a lease.
    """
    lost = Extraction.objects.select_for_update(skip_locked=True).filter(
        lease_expired("leased_until", lease=_lease()), state=State.RUNNING
    )
    Extraction.objects.filter(pk__in=list(lost.values_list("pk", flat=True))).update(
        state=State.WAITING, token=None, leased_until=None, due_at=Now()
    )
    waiting = (
        Extraction.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(state=State.WAITING, due_at__lte=Now())
        .filter(Q(leased_until=None) | lease_expired("leased_until", lease=_lease()))
        .filter(collection__graph=Collection.Graph.RULES)
        # Those of one collection are read together.
        .order_by("collection_id", "document_id")
    )
    rows = dict(waiting.values_list("pk", "document_id")[:SWEEP_SIZE])
    Extraction.objects.filter(pk__in=rows).update(leased_until=_lease_end())
    return list(rows.values())


def next_for_model() -> int | None:
    """The next document for the chat model. None if none is due or the maximum is running."""
    by_model = Extraction.objects.filter(collection__graph=Collection.Graph.LLM)
    read_now = by_model.filter(
        ~lease_expired("leased_until", lease=_lease()),
        state=State.RUNNING,
        leased_until__isnull=False,
    )
    if read_now.count() >= settings.GRAPH_EXTRACTION_PARALLEL:
        return None
    rows = _claimable().filter(collection__graph=Collection.Graph.LLM).order_by("due_at", "pk")
    return rows.values_list("document_id", flat=True).first()


def _claimable() -> QuerySet[Extraction]:
    return Extraction.objects.filter(
        Q(state=State.WAITING, due_at__lte=Now())
        | Q(state=State.RUNNING) & lease_expired("leased_until", lease=_lease())
    ).exclude(collection__graph=Collection.Graph.OFF)


def _mark_dead(rows: QuerySet[Extraction], failures: int, error: str) -> None:
    """Marks as dead. Earlier results stay; it can be retried manually."""
    attempts = "one attempt" if failures == 1 else f"{failures} attempts"
    rows.update(
        state=State.DEAD,
        error=f"Given up after {attempts}. {error}",
        due_at=None,
        token=None,
        leased_until=None,
    )


def _lease() -> timedelta:
    return timedelta(seconds=settings.INGESTION_LEASE_SECONDS)


def _lease_end() -> Any:
    return Now() + _lease()

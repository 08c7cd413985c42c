"""The queue of documents: which are due, who has them until when, and how they come back.

The row is the truth: whoever works holds a token on it until a time, attempts are counted when it
is taken, and what is found is stored under the token.
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

from common.clock import database_now, is_over
from common.heartbeat import heartbeat
from documents.models import Collection
from graph.extraction.outages import delay
from graph.models import Extraction

State = Extraction.State
LONGEST_WAIT = 3600.0
#: Documents that one sweep sends to the workers.
SWEEP = 5_000


@dataclass(frozen=True, slots=True)
class Due:
    """A document that can be taken. `tries` are how often it was, to no end."""

    document_id: int
    collection_id: int
    mode: str
    chunks: int
    tries: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Documents of one collection that a worker has."""

    token: UUID
    workspace_id: int
    collection_id: int
    mode: str
    document_ids: tuple[int, ...]


class Failure(Enum):
    """Why a document was not read: because of itself, because there was no model to ask, which is
    no fault of it and borne much longer, or because of what no other try changes."""

    OWN = "own"
    OUTAGE = "outage"
    FINAL = "final"


def due(document_ids: Sequence[int]) -> list[Due]:
    """Those of the documents that are due and that nobody has, in the order of their ids."""
    rows = _free().filter(document_id__in=document_ids).order_by("document_id")
    columns = "document_id", "collection_id", "collection__graph", "document__chunk_count"
    return [Due(*row) for row in rows.values_list(*columns, "attempts")]


@transaction.atomic
def claim(documents: Sequence[Due]) -> Claim | None:
    """Take these documents of one collection, without those that somebody else took meanwhile.

    One whose worker died again and again is given up.
    """
    wanted = [document.document_id for document in documents]
    rows = list(
        _free()
        .select_for_update(skip_locked=True, of=("self",))
        .filter(document_id__in=wanted, collection__graph=documents[0].mode)
        .order_by("pk")
    )
    most = settings.GRAPH_EXTRACTION_MAX_ATTEMPTS
    for row in rows:
        if row.attempts >= most:
            died = row.error or "The worker died each time, see its log."
            _bury(Extraction.objects.filter(pk=row.pk), row.attempts, died)
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


def kept(claim: Claim) -> AbstractContextManager[None]:
    """Renew the lease while the block works: a model may take longer than one."""
    return heartbeat(
        lambda: held(claim).update(leased_until=_lease_end()),
        seconds=settings.INGESTION_LEASE_SECONDS / 3,
    )


def held(claim: Claim) -> QuerySet[Extraction]:
    """The documents that this claim still holds."""
    return Extraction.objects.filter(token=claim.token, document_id__in=claim.document_ids)


@transaction.atomic
def put_back(claim: Claim, document_id: int, error: str, *, failure: Failure) -> datetime | None:
    """Have it tried again later, at growing intervals; when. None where it is given up, or was
    taken away."""
    mine = held(claim).filter(document_id=document_id)
    row = mine.select_for_update().first()
    if row is None:
        return None
    is_outage = failure is Failure.OUTAGE
    outages = row.outages + 1 if is_outage else 0
    attempts = row.attempts - 1 if is_outage else row.attempts
    failures = outages or attempts
    if failure is Failure.FINAL or failures >= _most(failure):
        _bury(mine, failures, error)
        return None
    when = database_now() + timedelta(seconds=delay(failures, longest=LONGEST_WAIT))
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
def revive(extraction_ids: Sequence[int]) -> list[int]:
    """Put documents that were given up back into the queue; which ones were."""
    dead = Extraction.objects.select_for_update().filter(pk__in=extraction_ids, state=State.DEAD)
    rows = dict(dead.order_by("pk").values_list("pk", "document_id"))
    Extraction.objects.filter(pk__in=rows).update(
        state=State.WAITING, attempts=0, outages=0, due_at=Now()
    )
    return list(rows.values())


@transaction.atomic
def sweep() -> list[int]:
    """The documents that are due and read by rules, those of dead workers too; not again within a
    lease."""
    lost = Extraction.objects.select_for_update(skip_locked=True).filter(
        is_over("leased_until", lease=_lease()), state=State.RUNNING
    )
    Extraction.objects.filter(pk__in=list(lost.values_list("pk", flat=True))).update(
        state=State.WAITING, token=None, leased_until=None, due_at=Now()
    )
    waiting = (
        Extraction.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(state=State.WAITING, due_at__lte=Now())
        .filter(Q(leased_until=None) | is_over("leased_until", lease=_lease()))
        .filter(collection__graph=Collection.Graph.RULES)
        # Those of one collection are read together.
        .order_by("collection_id", "document_id")
    )
    rows = dict(waiting.values_list("pk", "document_id")[:SWEEP])
    Extraction.objects.filter(pk__in=rows).update(leased_until=_lease_end())
    return list(rows.values())


def next_for_model() -> int | None:
    """The document that a chat model is to read next. None where none is due, or it reads as many
    at once as it may."""
    by_model = Extraction.objects.filter(collection__graph=Collection.Graph.LLM)
    read_now = by_model.filter(
        ~is_over("leased_until", lease=_lease()), state=State.RUNNING, leased_until__isnull=False
    )
    if read_now.count() >= settings.GRAPH_EXTRACTION_PARALLEL:
        return None
    rows = _free().filter(collection__graph=Collection.Graph.LLM).order_by("due_at", "pk")
    return rows.values_list("document_id", flat=True).first()


def _free() -> QuerySet[Extraction]:
    return Extraction.objects.filter(
        Q(state=State.WAITING, due_at__lte=Now())
        | Q(state=State.RUNNING) & is_over("leased_until", lease=_lease())
    ).exclude(collection__graph=Collection.Graph.OFF)


def _most(failure: Failure) -> int:
    most: int = (
        settings.GRAPH_EXTRACTION_MAX_OUTAGES
        if failure is Failure.OUTAGE
        else settings.GRAPH_EXTRACTION_MAX_ATTEMPTS
    )
    return most


def _bury(rows: QuerySet[Extraction], failures: int, error: str) -> None:
    """What was found before stays, and it can be tried again by hand."""
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

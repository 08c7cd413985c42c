"""The queue of conversations: what is due, who has it until when, and how it comes back.

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
from django.utils.dateparse import parse_datetime

from common.clock import database_now, is_over
from common.heartbeat import heartbeat
from memory.extraction.found import Said
from memory.extraction.outages import delay
from memory.models import ExtractionItem
from memory.scopes import UserScope

State = ExtractionItem.State
LONGEST_WAIT = 3600.0
#: Conversations that one sweep sends to the workers.
SWEEP = 1_000


@dataclass(frozen=True, slots=True)
class Claim:
    """A conversation that a worker has, with the messages that it is to read."""

    item_id: int
    token: UUID
    scope: UserScope
    conversation: str
    messages: tuple[Said, ...]
    waiting: int


def next_due(waiting: int, *, now: datetime) -> datetime | None:
    """When so many messages are to be read: at once if there are many, some time after the last
    one if there are enough, not yet if there are fewer."""
    if waiting >= most_turns():
        return now
    if waiting and waiting >= settings.MEMORY_EXTRACTION_MIN_TURNS:
        return now + timedelta(seconds=settings.MEMORY_EXTRACTION_IDLE_SECONDS)
    return None


def most_turns() -> int:
    """Messages that are read together."""
    return max(1, int(settings.MEMORY_EXTRACTION_MAX_TURNS))


@transaction.atomic
def claim(item_id: int) -> Claim | None:
    """Take a conversation that is due and that nobody has.

    After each failure fewer of its messages are taken, until it is one: an answer may have been
    too long, or one message to blame. One whose worker died again and again is given up.
    """
    now = database_now()
    free = Q(state=State.WAITING, due_at__lte=now) | (
        Q(state=State.RUNNING) & is_over("leased_until", lease=_lease())
    )
    rows = ExtractionItem.objects.select_for_update(skip_locked=True).filter(free, pk=item_id)
    item = rows.first()
    if item is None:
        return None
    if item.attempts >= settings.MEMORY_EXTRACTION_MAX_ATTEMPTS:
        died = item.error or "The worker died each time, see its log."
        _bury(ExtractionItem.objects.filter(pk=item.pk), item.attempts, died)
        return None
    batch = item.messages[: max(1, most_turns() >> item.attempts)]
    token = uuid4()
    ExtractionItem.objects.filter(pk=item.pk).update(
        state=State.RUNNING, token=token, leased_until=_lease_end(), attempts=F("attempts") + 1
    )
    return Claim(
        item.pk,
        token,
        UserScope(item.workspace_id, item.user_id),
        item.key,
        tuple(_said(message, now) for message in batch),
        len(item.messages),
    )


def kept(claim: Claim) -> AbstractContextManager[None]:
    """Renew the lease while the block works: a model may take longer than one."""
    return heartbeat(
        lambda: held(claim).update(leased_until=_lease_end()),
        seconds=settings.INGESTION_LEASE_SECONDS / 3,
    )


def held(claim: Claim) -> QuerySet[ExtractionItem]:
    """The conversation, if this claim still holds it."""
    return ExtractionItem.objects.filter(pk=claim.item_id, token=claim.token)


class Failure(Enum):
    """Why a conversation was not read: because of itself, because there was no model to ask, which
    is no fault of it and borne much longer, or because of what no other try changes."""

    OWN = "own"
    OUTAGE = "outage"
    FINAL = "final"


@transaction.atomic
def put_back(claim: Claim, error: str, *, failure: Failure) -> datetime | None:
    """Have it tried again later, at growing intervals; when. None where it is given up, or was
    taken away."""
    item = held(claim).select_for_update().first()
    if item is None:
        return None
    is_outage = failure is Failure.OUTAGE
    outages = item.outages + 1 if is_outage else 0
    attempts = item.attempts - 1 if is_outage else item.attempts
    failures = outages or attempts
    if failure is Failure.FINAL or failures >= _most(failure):
        _bury(held(claim), failures, error)
        return None
    due = database_now() + timedelta(seconds=delay(failures, longest=LONGEST_WAIT))
    held(claim).update(
        state=State.WAITING,
        attempts=attempts,
        outages=outages,
        error=error,
        due_at=due,
        token=None,
        leased_until=None,
    )
    return due


def _most(failure: Failure) -> int:
    most: int = (
        settings.MEMORY_EXTRACTION_MAX_OUTAGES
        if failure is Failure.OUTAGE
        else settings.MEMORY_EXTRACTION_MAX_ATTEMPTS
    )
    return most


def _bury(rows: QuerySet[ExtractionItem], failures: int, error: str) -> None:
    """The messages stay, so that it can be tried again by hand."""
    attempts = "one attempt" if failures == 1 else f"{failures} attempts"
    rows.update(
        state=State.DEAD,
        error=f"Given up after {attempts}. {error}",
        due_at=None,
        token=None,
        leased_until=None,
    )


@transaction.atomic
def revive(item_ids: Sequence[int]) -> list[int]:
    """Put conversations that were given up back into the queue; which ones were."""
    dead = ExtractionItem.objects.select_for_update().filter(pk__in=item_ids, state=State.DEAD)
    ids = list(dead.order_by("pk").values_list("pk", flat=True))
    ExtractionItem.objects.filter(pk__in=ids).update(
        state=State.WAITING, attempts=0, outages=0, due_at=Now()
    )
    return ids


@transaction.atomic
def sweep() -> list[int]:
    """The conversations that are due, those of dead workers too; not again within a lease."""
    lost = ExtractionItem.objects.select_for_update(skip_locked=True).filter(
        is_over("leased_until", lease=_lease()), state=State.RUNNING
    )
    ExtractionItem.objects.filter(pk__in=list(lost.values_list("pk", flat=True))).update(
        state=State.WAITING, token=None, leased_until=None, due_at=Now()
    )
    due = (
        ExtractionItem.objects.select_for_update(skip_locked=True)
        .filter(state=State.WAITING, due_at__lte=Now())
        .filter(Q(leased_until=None) | is_over("leased_until", lease=_lease()))
    )
    ids = list(due.order_by("due_at", "pk").values_list("pk", flat=True)[:SWEEP])
    ExtractionItem.objects.filter(pk__in=ids).update(leased_until=_lease_end())
    return ids


def _lease() -> timedelta:
    return timedelta(seconds=settings.INGESTION_LEASE_SECONDS)


def _lease_end() -> Any:
    return Now() + _lease()


def _said(message: dict[str, str], now: datetime) -> Said:
    return Said(message["content"], parse_datetime(message["at"]) or now)

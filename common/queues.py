"""Work queues in the database: leases, retries, outages, dead letters. Begin with `WorkQueue`.

The row is the source of truth: a worker holds a token on it until its lease ends, attempts are
counted when it is claimed, and results are stored under the token. Messages only save time.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import models, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from common.leases import (
    CircuitBreaker,
    backoff_seconds,
    database_now,
    heartbeat,
    lease_expired,
)

WAITING, RUNNING, DEAD = "waiting", "running", "dead"
MAX_RETRY_SECONDS = 3600.0


class QueuedWork(models.Model):
    """A row of a queue. Its model has a `state` too: waiting, running, dead and its own others."""

    attempts = models.PositiveSmallIntegerField(default=0)
    outages = models.PositiveSmallIntegerField(
        default=0, help_text="How often in a row there was no model to ask."
    )
    error = models.TextField(blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    token = models.UUIDField(null=True, blank=True, editable=False)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True


class Failure(Enum):
    """Why work failed: OWN (the work itself), OUTAGE (no model, retried for much longer),
    FINAL (no retry can help).
    """

    OWN = "own"
    OUTAGE = "outage"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Work is dead after so many attempts, or outages in a row; the first retry comes after
    `first_seconds`, each later one after longer."""

    attempts: int
    outages: int = 1
    first_seconds: float = 60.0


W = TypeVar("W", bound=QueuedWork)


class WorkQueue(Generic[W]):
    """The rows of `model` as a queue.

    `limits` reads the settings. Messages name the work by the field `work_id`. While a model does
    not answer, its work pauses; processes share the pauses under `name`. `model_id` is that of a
    model that some workspaces have chosen, None of the one that all others use.
    """

    def __init__(
        self, model: type[W], name: str, *, limits: Callable[[], RetryLimits], work_id: str = "pk"
    ) -> None:
        self.model, self.limits, self.work_id = model, limits, work_id
        self.name = name

    @property
    def rows(self) -> QuerySet[W]:
        return self.model._default_manager.all()

    def is_paused(self, model_id: int | None = None) -> bool:
        """Whether the chat model was unreachable a moment ago."""
        return self._breaker(model_id).is_paused()

    def record_outage(self, model_id: int | None = None) -> None:
        """Pause, longer with each outage."""
        self._breaker(model_id).record_failure(first=self.limits().first_seconds)

    def record_answer(self, model_id: int | None = None) -> None:
        """End the pause: the model has answered."""
        self._breaker(model_id).record_success()

    def not_paused(self, chosen: Mapping[int, int]) -> Q:
        """Rows of workspaces whose model answers. `chosen` are ids of models by the id of the
        workspace that has chosen one."""
        paused = {model_id for model_id in {*chosen.values()} if self.is_paused(model_id)}
        waiting = [workspace for workspace, model_id in chosen.items() if model_id in paused]
        if self.is_paused():
            return Q(workspace__in={*chosen}.difference(waiting))
        return ~Q(workspace__in=waiting)

    def _breaker(self, model_id: int | None) -> CircuitBreaker:
        return CircuitBreaker(self.name if model_id is None else f"{self.name}.{model_id}")

    def claimable(self) -> QuerySet[W]:
        """Rows that are due, and running ones whose lease has ended."""
        return self.rows.filter(
            Q(state=WAITING, due_at__lte=Now()) | Q(state=RUNNING) & _lease_expired()
        )

    @transaction.atomic
    def claim(self, rows: QuerySet[W]) -> tuple[UUID, list[W]]:
        """Lease those of the claimable `rows` that no other worker is claiming; returns the token
        and the rows as they were. Those whose workers died each time are marked dead.
        """
        most = self.limits().attempts
        taken = []
        for row in rows.select_for_update(skip_locked=True, of=("self",)).order_by("pk"):
            if row.attempts < most:
                taken.append(row)
            else:
                died = row.error or "The worker died each time, see its log."
                self._mark_dead(self.rows.filter(pk=row.pk), row.attempts, died)
        token = uuid4()
        self.rows.filter(pk__in=[row.pk for row in taken]).update(
            state=RUNNING, token=token, leased_until=_lease_end(), attempts=F("attempts") + 1
        )
        return token, taken

    def renew_lease(self, claimed: QuerySet[W]) -> AbstractContextManager[None]:
        """Renew the lease while the block runs, since a model may take longer."""
        return heartbeat(
            lambda: claimed.update(leased_until=_lease_end()),
            seconds=settings.INGESTION_LEASE_SECONDS / 3,
        )

    @transaction.atomic
    def retry_later(
        self, claimed: QuerySet[W], error: str, *, failure: Failure, wait: float | None = None
    ) -> datetime | None:
        """Schedule a retry of the claimed row with growing delay; returns when. None where it is
        dead now or the claim was lost. With `wait`, seconds until a limit passes, the attempt does
        not count.
        """
        row = claimed.select_for_update().first()
        if row is None:
            return None
        limits = self.limits()
        if wait is not None:
            attempts, outages = row.attempts - 1, row.outages
            seconds = min(wait, MAX_RETRY_SECONDS)
        else:
            if failure is Failure.OUTAGE:
                attempts, outages = row.attempts - 1, row.outages + 1
                failures, most = outages, limits.outages
            else:
                attempts, outages = row.attempts, 0
                failures, most = attempts, limits.attempts
            if failure is Failure.FINAL or failures >= most:
                self._mark_dead(claimed, failures, error)
                return None
            first = limits.first_seconds
            seconds = backoff_seconds(failures, first=first, longest=MAX_RETRY_SECONDS)
        due = database_now() + timedelta(seconds=seconds)
        claimed.update(
            state=WAITING,
            attempts=attempts,
            outages=outages,
            error=error,
            due_at=due,
            token=None,
            leased_until=None,
        )
        return due

    @transaction.atomic
    def requeue(self, pks: Sequence[int]) -> list[int]:
        """Put dead rows back into the queue; returns their work ids."""
        dead = self.rows.select_for_update().filter(pk__in=pks, state=DEAD).order_by("pk")
        found = dict(dead.values_list("pk", self.work_id))
        self.rows.filter(pk__in=found).update(state=WAITING, attempts=0, outages=0, due_at=Now())
        return list(found.values())

    @transaction.atomic
    def sweep(self, *order_by: str, limit: int, where: Q | None = None) -> list[int]:
        """Work ids of due rows that `where` selects, including those of dead workers; each at most
        once in a lease."""
        lost = self.rows.select_for_update(skip_locked=True).filter(_lease_expired(), state=RUNNING)
        self.rows.filter(pk__in=list(lost.values_list("pk", flat=True))).update(
            state=WAITING, token=None, leased_until=None, due_at=Now()
        )
        due = (
            self.rows.select_for_update(skip_locked=True, of=("self",))
            .filter(Q(leased_until=None) | _lease_expired(), state=WAITING, due_at__lte=Now())
            .filter(where or Q())
            .order_by(*order_by)
        )
        found = dict(due.values_list("pk", self.work_id)[:limit])
        self.rows.filter(pk__in=found).update(leased_until=_lease_end())
        return list(found.values())

    def _mark_dead(self, rows: QuerySet[W], failures: int, error: str) -> None:
        """Input and earlier results stay, so that it can be retried by hand."""
        attempts = "one attempt" if failures == 1 else f"{failures} attempts"
        rows.update(
            state=DEAD,
            error=f"Given up after {attempts}. {error}",
            due_at=None,
            token=None,
            leased_until=None,
        )


def lease() -> timedelta:
    return timedelta(seconds=settings.INGESTION_LEASE_SECONDS)


def _lease_expired() -> Q:
    return lease_expired("leased_until", lease=lease())


def _lease_end() -> Any:
    return Now() + lease()

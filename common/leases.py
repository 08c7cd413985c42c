"""Shared by job queues: leases by the database's clock, heartbeats, retries after deadlocks, and a
circuit breaker for servers that are down.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any, TypeVar

import django.db
import psycopg
from django.core.cache import cache
from django.db import DatabaseError, OperationalError, connection
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext
from psycopg.errors import DeadlockDetected

from common.errors import RagsiteError

#: A time further ahead than a lease and this much was written before the clock was set back.
MAX_CLOCK_SKEW = timedelta(minutes=10)


def database_now() -> datetime:
    """PostgreSQL's current time, by a statement of its own. Within a query use `Now()`."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]


def lease_expired(column: str, *, lease: timedelta) -> Q:
    """Condition: the lease ending at `column` has expired. `lease` is its greatest length."""
    return Q(**{f"{column}__lt": Now()}) | Q(**{f"{column}__gt": Now() + lease + MAX_CLOCK_SKEW})


def heartbeat_expired(column: str, *, lease: timedelta) -> Q:
    """Condition: `column` was not updated for `lease`."""
    return Q(**{f"{column}__lt": Now() - lease}) | Q(**{f"{column}__gt": Now() + MAX_CLOCK_SKEW})


logger = logging.getLogger(__name__)


@contextmanager
def heartbeat(beat: Callable[[], Any], *, seconds: float) -> Iterator[None]:
    """Call `beat` every `seconds` in a thread of its own while the block runs. Database errors are
    logged and tried again at the next beat.
    """
    done = Event()

    def keep() -> None:
        try:
            while not done.wait(seconds):
                try:
                    beat()
                except DatabaseError as error:
                    logger.warning("a sign of life could not be given: %s", error)
                    connection.close()
        finally:
            connection.close()

    # in the same context, which holds the visible workspaces
    heart = Thread(target=copy_context().run, args=(keep,), daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()


T = TypeVar("T")

DEADLOCK_TRIES = 5


def retry_on_deadlock(transaction: Callable[[], T], *, savepoint: bool = False) -> T:
    """Run `transaction` again when PostgreSQL aborted it because of a deadlock, up to 5 times.

    Within an outer transaction, which is lost too, the error is raised; unless `savepoint` is set.
    """
    for _ in range(DEADLOCK_TRIES - 1):
        try:
            return transaction()
        except OperationalError as error:
            lost = connection.in_atomic_block and not savepoint
            if lost or not isinstance(error.__cause__, DeadlockDetected):
                raise
    return transaction()


MAX_PAUSE_SECONDS = 300.0
#: Outages further apart are not one.
_FORGET_AFTER_SECONDS = 3600


def backoff_seconds(failures: int, *, first: float, longest: float) -> float:
    """Seconds before the next try after this many failures: doubled each time."""
    return min(longest, first * 2.0 ** min(failures - 1, 30))


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """Circuit breaker of one kind of work, shared by all processes under `name`: while a server is
    down, one process tries and the others wait.
    """

    name: str

    def is_paused(self) -> bool:
        """Whether the server failed a moment ago."""
        return cache.get(f"{self.name}.pause") is not None

    def record_failure(self, *, first: float) -> None:
        """Start a pause of `first` seconds, longer with each failure."""
        in_a_row = cache.get(f"{self.name}.outages", 0) + 1
        cache.set(f"{self.name}.outages", in_a_row, _FORGET_AFTER_SECONDS)
        seconds = backoff_seconds(in_a_row, first=first, longest=MAX_PAUSE_SECONDS)
        cache.set(f"{self.name}.pause", in_a_row, max(1, round(seconds)))

    def record_success(self) -> None:
        """End the pause after a success."""
        cache.delete_many([f"{self.name}.pause", f"{self.name}.outages"])


class DatabaseUnavailable(RagsiteError):
    """PostgreSQL is down: stopped, starting, out of connections, or it closed this one."""

    code = "database_unavailable"
    status = 503
    retry_after = 5
    #: What Django and psycopg raise then; statements sent past Django's cursors raise psycopg's.
    CAUSES = (
        django.db.OperationalError,
        django.db.InterfaceError,
        psycopg.OperationalError,
        psycopg.InterfaceError,
    )

    def __init__(self) -> None:
        super().__init__(
            gettext("The database does not respond at the moment. Try again in a few seconds.")
        )


def is_lost_connection(error: BaseException | None) -> bool:
    """Whether PostgreSQL could not be reached, or ended the connection: not a fault of a statement,
    such as a deadlock or a full disk."""
    while error is not None and not isinstance(error, psycopg.Error):
        error = error.__cause__
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    # Without an SQLSTATE it was the client that noticed. Class 08: connection exception.
    state = error.sqlstate or "08"
    return state.startswith("08") or state in {"57P01", "57P02", "57P03", "53300"}

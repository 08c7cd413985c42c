"""A pause for all, while a server cannot be reached: one tries, the others wait. And the error of a
database that is away."""

from dataclasses import dataclass

import django.db
import psycopg
from django.core.cache import cache

from common.errors import RagsiteError

LONGEST_PAUSE = 300.0
#: Outages further apart are not one.
_FORGOTTEN_AFTER = 3600


def delay(failures: int, *, first: float, longest: float) -> float:
    """Seconds before another try after so many failures: twice as many each time."""
    return min(longest, first * 2.0 ** min(failures - 1, 30))


@dataclass(frozen=True, slots=True)
class Outages:
    """Of one kind of work, known to all processes under its `name`."""

    name: str

    def is_paused(self) -> bool:
        """Whether the server was away a moment ago."""
        return cache.get(f"{self.name}.pause") is not None

    def note_outage(self, *, first: float) -> None:
        """Let nobody ask for a while, `first` seconds and longer each time."""
        in_a_row = cache.get(f"{self.name}.outages", 0) + 1
        cache.set(f"{self.name}.outages", in_a_row, _FORGOTTEN_AFTER)
        seconds = delay(in_a_row, first=first, longest=LONGEST_PAUSE)
        cache.set(f"{self.name}.pause", in_a_row, max(1, round(seconds)))

    def note_answer(self) -> None:
        """The server is there."""
        cache.delete_many([f"{self.name}.pause", f"{self.name}.outages"])


class DatabaseUnavailable(RagsiteError):
    """PostgreSQL is away: stopped, starting up, out of connections, or it cut this one."""

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
        super().__init__("The database does not answer just now. Try again in a few seconds.")


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

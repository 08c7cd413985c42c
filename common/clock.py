"""The time that all processes share: the database's. The clock of a host may be wrong, or jump, and
then its workers would take the work of others, or hold theirs for hours."""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

#: A time further ahead than a lease and this much was written before the clock was set back.
CLOCKS_DIFFER = timedelta(minutes=10)


def database_now() -> datetime:
    """Its time, by a statement of its own. Inside another, `Now()` says the same for nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]


def is_over(column: str, *, lease: timedelta) -> Q:
    """That a lease of at most this length, which ends at the time in `column`, holds no longer."""
    return Q(**{f"{column}__lt": Now()}) | Q(**{f"{column}__gt": Now() + lease + CLOCKS_DIFFER})


def is_silent(column: str, *, lease: timedelta) -> Q:
    """That nobody has written the time of a change into `column` for a lease."""
    return Q(**{f"{column}__lt": Now() - lease}) | Q(**{f"{column}__gt": Now() + CLOCKS_DIFFER})

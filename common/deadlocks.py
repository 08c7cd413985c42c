"""Transactions that PostgreSQL ended because two waited for each other."""

from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected

T = TypeVar("T")

TRIES = 5


def despite_deadlocks(transaction: Callable[[], T], *, savepoint: bool = False) -> T:
    """Do `transaction`, a whole one, again when it was the one to give way.

    Within somebody else's transaction, which is lost with it, the error goes on to that; unless it
    is a `savepoint`, all whose locks are given up with it.
    """
    for _ in range(TRIES - 1):
        try:
            return transaction()
        except OperationalError as error:
            lost = connection.in_atomic_block and not savepoint
            if lost or not isinstance(error.__cause__, DeadlockDetected):
                raise
    return transaction()

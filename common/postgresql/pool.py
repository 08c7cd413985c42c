"""A few database connections that many threads take turns with."""

from collections import deque
from collections.abc import Callable
from threading import BoundedSemaphore
from time import monotonic
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from common import metrics

#: A connection that nobody needed for so many seconds goes.
IDLE_SECONDS = 60.0
#: A thread that waits longer for one gives up.
PATIENCE_SECONDS = 30.0

Connection = psycopg.Connection[Any]


class PoolExhausted(psycopg.OperationalError):
    """All connections are in use, and stay so."""


class Pool:
    """Up to `size` connections, each made by the thread that needs it and given on alive.

    The last one given back is the next one taken, so that few are open while few are needed.
    """

    def __init__(
        self, connect: Callable[[], Connection], *, size: int, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.size = size
        self._connect = connect
        self._patience = patience
        self._free = BoundedSemaphore(size)
        self._idle: deque[tuple[float, Connection]] = deque()
        metrics.POOL_SIZE.inc(size)

    def open(self) -> None:
        """Nothing is made before it is needed."""

    def getconn(self) -> Connection:
        """A connection that works. Raises PoolExhausted, and OperationalError at once where the
        server is away."""
        with metrics.POOL_WAIT_SECONDS.time():
            is_free = self._free.acquire(timeout=self._patience)
        if not is_free:
            metrics.POOL_EXHAUSTED.inc()
            raise PoolExhausted(
                f"All {self.size} database connections of this process were in use for"
                f" {self._patience:.0f} s. Raise RAGSITE_DATABASE_POOL_SIZE, or ask less at once."
            )
        try:
            connection = self._living() or self._connect()
        except BaseException:
            self._free.release()
            raise
        metrics.POOL_IN_USE.inc()
        connection._pool = self  # where Django gives it back
        return connection

    def putconn(self, connection: Connection) -> None:
        """Take one back, without what was left open in it."""
        connection._pool = None
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
            connection.autocommit = True
        except psycopg.Error:
            connection.close()
        finally:
            if not connection.closed:
                self._idle.append((monotonic(), connection))
            metrics.POOL_IN_USE.dec()
            self._free.release()
        self._prune(older_than=monotonic() - IDLE_SECONDS)

    def close(self) -> None:
        """Close those that nobody uses."""
        metrics.POOL_SIZE.dec(self.size)
        self._prune(older_than=float("inf"))

    def _living(self) -> Connection | None:
        while True:
            try:
                _, connection = self._idle.pop()
            except IndexError:
                return None
            try:
                connection.execute("")
            except psycopg.Error:  # the server was restarted, or cut it
                connection.close()
            else:
                return connection

    def _prune(self, *, older_than: float) -> None:
        while self._idle:
            try:
                since, connection = self._idle.popleft()
            except IndexError:
                return
            if since >= older_than:
                self._idle.appendleft((since, connection))
                return
            connection.close()

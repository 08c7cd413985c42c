"""The database backend: Django's PostgreSQL backend with a connection pool that fails at once when
the server is down, and with the row-level security of `common.rls` before each statement.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from time import monotonic
from typing import Any, ClassVar

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.transaction import TransactionManagementError
from django.db.utils import DatabaseErrorWrapper, OperationalError
from django.utils.functional import cached_property
from django.utils.translation import gettext
from psycopg import sql as composing
from psycopg.errors import QueryCanceled
from psycopg.pq import TransactionStatus

from common import metrics, rls
from common.errors import RagsiteError
from common.shards import MAIN, current_shard

#: Idle connections are closed after this time.
IDLE_SECONDS = 60.0
#: Longest wait of a thread for a connection.
PATIENCE_SECONDS = 30.0

Connection = psycopg.Connection[Any]


class PoolExhausted(psycopg.OperationalError):
    """All connections are in use, and none was returned in time."""


class Pool:
    """Up to `size` connections, each opened by the thread that needs it and passed on while alive.

    Last in, first out, so that few are open while few are needed.
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
        """Does nothing: connections are opened when needed."""

    def getconn(self) -> Connection:
        """A working connection. Raises PoolExhausted, and OperationalError at once where the server
        is down.
        """
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
        """Take a connection back, after a rollback of what is still open."""
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
        """Close the idle connections; used ones are closed when they come back."""
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


_CONTROL = ("SAVEPOINT ", "ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT ")


class StatementTimeout(RagsiteError, OperationalError):
    """A statement of a request or a short command exceeded its time limit."""

    code = "statement_timeout"
    status = 503


class _ErrorWrapper(DatabaseErrorWrapper):
    wrapper: Any  # Django's DatabaseWrapper; not in the stubs

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, QueryCanceled) and rls.timeout_prefix():
            self.wrapper.errors_occurred = True
            raise StatementTimeout(
                gettext(
                    "The database query took longer than {limit} seconds and was stopped."
                    " Request less at once, try again later, or raise"
                    " RAGSITE_DATABASE_STATEMENT_SECONDS."
                ).format(limit=format(settings.DATABASE_STATEMENT_SECONDS, "g"))
            ) from error
        super().__exit__(kind, error, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """Borrows a connection from the process's pool until Django closes it; `default` borrows it
    from the pool of the shard that the current work is on.

    `OPTIONS["pool"]` is the number of connections, 0 for one a thread. docs/decisions/0035 explains
    why it is not psycopg's pool.
    """

    _pools: ClassVar[dict[str, Pool]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._execute_with_rls)
        #: The shard that the connection leads to.
        self._shard = MAIN
        #: Whether an earlier statement of the transaction may have set role and workspaces.
        self._is_set = False
        #: Whether one may have set collections.
        self._is_limited = False
        #: Role and workspaces last set in this transaction.
        self._sent = ""

    @cached_property
    def wrap_database_errors(self) -> "_ErrorWrapper":
        """Django's translation of psycopg's errors, with StatementTimeout added."""
        return _ErrorWrapper(self)

    @property
    def pool(self) -> Pool | None:
        """The pool of this process and database."""
        if self._shard:
            shared: Pool | None = connections[self._shard].pool  # type: ignore[attr-defined]
            return shared
        size = self.settings_dict["OPTIONS"].get("pool")
        if not size or self.alias == NO_DB_ALIAS:
            return None
        if self.alias not in self._pools:
            # At worst two threads make one each, and both use the first.
            self._pools.setdefault(self.alias, Pool(self._connect, size=size))
        return self._pools[self.alias]

    @property
    def server_alias(self) -> str:
        """The alias of the server that the current work is on."""
        shard = current_shard() if self.alias == DEFAULT_DB_ALIAS else MAIN
        return shard or self.alias

    def ensure_connection(self) -> None:
        """Connect, as `default` to the shard that the current work is on."""
        if settings.DATABASE_SHARDS and self.alias == DEFAULT_DB_ALIAS:
            shard = current_shard()
            if shard != self._shard:
                if self.in_atomic_block:
                    raise TransactionManagementError(
                        "A transaction cannot go on in another shard: end it before."
                    )
                self.close()
                self._shard = shard
        super().ensure_connection()

    def get_connection_params(self) -> dict[str, Any]:
        """psycopg's parameters, of the shard where the connection is to lead to one."""
        if self._shard:
            return connections[self._shard].get_connection_params()
        return super().get_connection_params()

    def close_pool(self) -> None:
        """Close unused connections; the next request starts a new pool."""
        if pool := self._pools.pop(self.alias, None):
            pool.close()

    def _connect(self) -> Connection:
        connection: Connection = self.Database.connect(
            **self.get_connection_params(), autocommit=True
        )
        self._configure_connection(connection)  # type: ignore[attr-defined]  # not in the stubs
        return connection

    def chunked_cursor(self) -> Any:
        """A server-side cursor within a transaction; else a client-side one, because a cursor that
        outlives its transaction does not work with poolers.
        """
        return super().chunked_cursor() if self.in_atomic_block else self.cursor()

    def _set_autocommit(self, autocommit: bool) -> None:
        # A transaction begins or has ended.
        self._is_set, self._is_limited, self._sent = False, False, ""
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # not in the stubs

    def begin(self, characteristics: str = "", settings: str = "") -> None:
        """Begin the transaction of an atomic block: characteristics, settings and row-level
        security in one message, where psycopg would send a bare BEGIN first.
        """
        if not self.connection.autocommit:
            self.connection.autocommit = True
        prefix = self._prefix()
        with self.wrap_database_errors:
            self.connection.execute(f"BEGIN {characteristics}; {settings}{prefix}", prepare=False)
        self._sent = prefix

    @contextmanager
    def read_only(self, settings: str = "") -> Iterator[None]:
        """A transaction of its own that reads one snapshot. What `atomic` does besides, for hooks
        and savepoints, takes as long as a statement."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        self._is_set, self._is_limited, self._sent = False, False, ""
        self.in_atomic_block = True
        is_done = False
        try:
            self.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", settings)
            yield
            with self.wrap_database_errors:
                self.connection.commit()
            is_done = True
        finally:
            self.in_atomic_block = self.needs_rollback = False
            self._is_set, self._is_limited, self._sent = False, False, ""
            if self.closed_in_transaction:
                self.connection = None
            elif not is_done:
                self.close()  # which undoes what is open in it

    def apply_rls(self) -> None:
        """Apply role and workspaces to the rest of this transaction, for statements such as COPY
        that do not pass through a cursor's `execute`.
        """
        prefix = self._prefix()
        if prefix and prefix != self._sent:
            with self.wrap_database_errors:
                self.connection.execute(prefix)
            self._sent = prefix

    def _prefix(self) -> str:
        """SQL put before a statement; empty in commands and workers, unless settings of an earlier
        statement of the transaction must be reset.
        """
        limit, role = rls.timeout_prefix(), rls.rls_prefix(self)
        if rls.COLLECTIONS_SETTING in role:
            self._is_limited = True
        elif role and self._is_limited and self.in_atomic_block:
            role += rls.RESET_COLLECTIONS
        if self._is_set and self.in_atomic_block:
            limit, role = limit or rls.RESET_TIMEOUT, role or rls.RESET_ROLE
        self._is_set = self._is_set or bool(limit or role)
        return limit + role

    def _execute_with_rls(
        self, execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        """Send role and workspaces in the same message as the statement. PostgreSQL runs both in
        one transaction, so that nothing of them stays on the connection.
        """
        # In a failed transaction only a rollback is accepted, so nothing may precede it.
        is_control = isinstance(sql, str) and sql.startswith(_CONTROL)
        prefix = "" if is_control else self._prefix()
        self._sent = prefix  # a savepoint may have undone it
        if not prefix:
            return execute(sql, params, many, context)
        cursor = context["cursor"].cursor
        if many or getattr(cursor, "name", None):
            # Several messages, or a cursor of the server: within a transaction only.
            if not self.in_atomic_block and not rls.rls_prefix(self):
                return execute(sql, params, many, context)
            if not self.in_atomic_block:
                raise TransactionManagementError(
                    "Several statements at once need a transaction while a request is answered."
                )
            self.connection.execute(prefix)
            return execute(sql, params, many, context)
        statement = prefix + sql if isinstance(sql, str) else composing.SQL(prefix) + sql
        result = execute(statement, params, many, context)
        for _ in range(prefix.count(";")):
            cursor.nextset()
        return result

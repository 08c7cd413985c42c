"""The database backend: Django's own, with a pool that knows at once when the server is away, and
with the fence of `common.fence` around each statement."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.conf import settings
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from django.db.transaction import TransactionManagementError
from django.db.utils import DatabaseErrorWrapper, OperationalError
from django.utils.functional import cached_property
from psycopg import sql as composing
from psycopg.errors import QueryCanceled

from common.errors import RagsiteError
from common.postgresql import fencing
from common.postgresql.pool import Connection, Pool

_CONTROL = ("SAVEPOINT ", "ROLLBACK TO SAVEPOINT ", "RELEASE SAVEPOINT ")


class StatementTimeout(RagsiteError, OperationalError):
    """A statement of a request or of a short command took longer than it may."""

    code = "statement_timeout"
    status = 503


class _ErrorWrapper(DatabaseErrorWrapper):
    wrapper: Any  # Django's DatabaseWrapper; not in the stubs

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, QueryCanceled) and fencing.timeout_prefix():
            self.wrapper.errors_occurred = True
            raise StatementTimeout(
                "The database did not finish this within"
                f" {settings.DATABASE_STATEMENT_SECONDS:g} seconds, and was stopped. Ask for less"
                " at once, try again when it has less to do, or raise"
                " RAGSITE_DATABASE_STATEMENT_SECONDS."
            ) from error
        super().__exit__(kind, error, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection is borrowed from the process's pool until Django closes it.

    `OPTIONS["pool"]` is the number of connections, 0 for one a thread. docs/decisions/0035 tells
    why it is not psycopg's pool.
    """

    _pools: ClassVar[dict[str, Pool]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._execute_fenced)
        #: Whether the transaction may hold the role and the setting of an earlier statement.
        self._is_set = False
        #: What was said last in this transaction of role and workspaces.
        self._sent = ""

    @cached_property
    def wrap_database_errors(self) -> "_ErrorWrapper":
        """Django's translation of psycopg's errors, with one more."""
        return _ErrorWrapper(self)

    @property
    def pool(self) -> Pool | None:
        """The pool of this process and database."""
        size = self.settings_dict["OPTIONS"].get("pool")
        if not size or self.alias == NO_DB_ALIAS:
            return None
        if self.alias not in self._pools:
            # At worst two threads make one each, and both use the first.
            self._pools.setdefault(self.alias, Pool(self._connect, size=size))
        return self._pools[self.alias]

    def close_pool(self) -> None:
        """Close what nobody uses; the next one to ask begins anew."""
        if pool := self._pools.pop(self.alias, None):
            pool.close()

    def _connect(self) -> Connection:
        connection: Connection = self.Database.connect(
            **self.get_connection_params(), autocommit=True
        )
        self._configure_connection(connection)  # type: ignore[attr-defined]  # not in the stubs
        return connection

    # --- the fence ---

    def chunked_cursor(self) -> Any:
        """A cursor of the server within a transaction; else the client takes all rows, because one
        that outlives its transaction is no statement's own (nor a pooler's)."""
        return super().chunked_cursor() if self.in_atomic_block else self.cursor()

    def _set_autocommit(self, autocommit: bool) -> None:
        self._is_set, self._sent = False, ""  # a transaction begins or has ended
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # not in the stubs

    def begin(self, characteristics: str = "", settings: str = "") -> None:
        """Begin the transaction of the atomic block that was just entered: its characteristics,
        settings and the fence in one message, where psycopg would send a bare BEGIN first."""
        if not self.connection.autocommit:
            self.connection.autocommit = True
        prefix = self._prefix()
        self.connection.execute(f"BEGIN {characteristics}; {settings}{prefix}", prepare=False)
        self._sent = prefix

    @contextmanager
    def read_only(self, settings: str = "") -> Iterator[None]:
        """A transaction of its own that reads one snapshot. What `atomic` does besides, for hooks
        and savepoints, takes as long as a statement."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        self._is_set, self._sent = False, ""
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
            self._is_set, self._sent = False, ""
            if self.closed_in_transaction:
                self.connection = None
            elif not is_done:
                self.close()  # which undoes what is open in it

    def fence_transaction(self) -> None:
        """Have what follows in this transaction run within the fence, such as a COPY, which does
        not pass through a cursor's `execute`."""
        prefix = self._prefix()
        if prefix and prefix != self._sent:
            self.connection.execute(prefix)
            self._sent = prefix

    def _prefix(self) -> str:
        """What goes before a statement: nothing in commands and workers that take their time,
        unless it takes back what an earlier statement of the transaction needed."""
        limit, role = fencing.timeout_prefix(), fencing.fence_prefix(self)
        if self._is_set and self.in_atomic_block:
            limit, role = limit or fencing.NO_LIMIT, role or fencing.LIFT
        self._is_set = self._is_set or bool(limit or role)
        return limit + role

    def _execute_fenced(
        self, execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        """Say role and workspaces in the very message that holds the statement. PostgreSQL runs
        both in one transaction, so that nothing of them is left in the connection after it."""
        # What undoes a failure must be the first that a failed transaction is told.
        is_control = isinstance(sql, str) and sql.startswith(_CONTROL)
        prefix = "" if is_control else self._prefix()
        self._sent = prefix  # a savepoint may have undone it
        if not prefix:
            return execute(sql, params, many, context)
        cursor = context["cursor"].cursor
        if many or getattr(cursor, "name", None):
            # Several messages, or a cursor of the server: within a transaction only.
            if not self.in_atomic_block and not fencing.fence_prefix(self):
                return execute(sql, params, many, context)
            self._check_transaction()
            self.connection.execute(prefix)
            return execute(sql, params, many, context)
        statement = prefix + sql if isinstance(sql, str) else composing.SQL(prefix) + sql
        result = execute(statement, params, many, context)
        for _ in range(prefix.count(";")):
            cursor.nextset()
        return result

    def _check_transaction(self) -> None:
        if not self.in_atomic_block:
            raise TransactionManagementError(
                "Several statements at once need a transaction while a request is answered."
            )

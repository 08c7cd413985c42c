"""Hand-written SQL: binary fetches, queries compiled once, bulk COPY. Begin with `fetch_rows`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter
from typing import Any, Generic, TypeVar

import psycopg
from django.db import connection, connections, transaction
from django.db.models import Model, QuerySet

from common.rls import current_context, rls_prefix, timeout_prefix
from common.shards import catalog_connection, is_in_catalog


def fetch_rows(
    connection: Any,
    statement: str,
    parameters: Mapping[str, Any] | Sequence[Any] = (),
    *,
    prepare: bool = False,
) -> list[tuple[Any, ...]]:
    """All rows of one statement in binary format, with row-level security applied.

    With `prepare` the server caches its plan, if connections allow it: for statements that repeat
    and whose parameters all have a type by position or cast. Otherwise parameters are interpolated,
    as Django's cursors do, and the planner sees them.

    Settings cannot go in the same message here, so a statement with row-level security or a time
    limit runs in a transaction, and starts one where there is none.
    """
    connection.ensure_connection()
    if not connection.in_atomic_block and (timeout_prefix() or rls_prefix(connection)):
        with transaction.atomic(using=connection.alias):
            connection.begin()
            return fetch_rows(connection, statement, parameters, prepare=prepare)
    connection.apply_rls()
    started = perf_counter()
    psycopg_connection = connection.connection
    with connection.wrap_database_errors, psycopg.Cursor(psycopg_connection) as cursor:
        if prepare and psycopg_connection.prepare_threshold is not None:
            cursor.execute(statement, parameters, prepare=True, binary=True)
        else:
            # Only a statement without parameters can answer in binary when they are written in.
            bound = _bind(psycopg_connection, statement, parameters)
            cursor.execute(bound, prepare=False, binary=True)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    if connection.queries_logged:
        spent = f"{perf_counter() - started:.3f}"
        bound = _bind(psycopg_connection, statement, parameters)
        connection.queries_log.append({"sql": bound, "time": spent})
    return rows


def _bind(connection: Any, statement: str, parameters: Any) -> str:
    with psycopg.ClientCursor(connection) as cursor:
        return cursor.mogrify(statement, parameters or None)


def one_line(sql: str) -> str:
    """Without comments and indentation. psycopg remembers how a statement of up to 4,096 characters
    is read, and reads a longer one each time."""
    return re.sub(r"\s+", " ", re.sub(r"--.*", "", sql))


def bigint_array(ids: Iterable[int]) -> str:
    """A bigint[] as PostgreSQL text: faster than a list for hundreds of ids."""
    return f"{{{','.join(map(str, ids))}}}"


@contextmanager
def read_snapshot(connection: Any, settings: str = "") -> Iterator[None]:
    """A transaction whose statements all see the same rows; within an outer transaction its
    isolation applies. `settings` are `SET LOCAL` statements, each with its semicolon.
    """
    connection.ensure_connection()
    if connection.in_atomic_block:
        if settings:
            connection.connection.execute(settings, prepare=False)
        yield
        return
    with connection.read_only(settings):
        yield


M = TypeVar("M", bound=Model)
Rows = list[tuple[Any, ...]]


def fetch_prepared(sql: str, parameters: Sequence[Any], *, using: Any = connection) -> Rows:
    """All rows of a statement that is run often, on the connection `using`.

    Without row-level security the server caches its plan; with it, statement and settings go in one
    message.
    """
    if current_context() is None:
        return fetch_rows(using, sql, parameters, prepare=True)
    with using.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: Rows = cursor.fetchall()
    return found


class CompiledQuery(Generic[M]):
    """The query of `make()`, compiled once, with parameters in place of its values.

    Parameters come in the order of the queryset's filters. None of them may be None or a list,
    since the SQL must stay the same; no field may need a conversion, as JSON does.
    """

    def __init__(self, make: Callable[[], QuerySet[M, Any]]) -> None:
        self._make = make

    @cached_property
    def sql(self) -> str:
        """The SQL with a `%s` for each parameter."""
        return str(self._make().query.sql_with_params()[0])

    @cached_property
    def _models(self) -> list[tuple[str, Any, list[str]]]:
        """Model and field names of the row's parts: the model itself, and those of
        `select_related`.
        """
        queryset = self._make()
        model: Any = queryset.model
        related: Any = queryset.query.select_related or ()
        fields = [each for each in model._meta.concrete_fields if each.name in related]
        models = [("", model), *((each.name, each.related_model) for each in fields)]
        return [(name, m, [f.attname for f in m._meta.concrete_fields]) for name, m in models]

    def read(self, *parameters: Any) -> list[M]:
        """The instances, with those of `select_related`."""
        found: list[Any] = []
        using = catalog_connection() if is_in_catalog(self._models[0][1]) else connection
        for row in fetch_prepared(self.sql, parameters, using=using):
            start = 0
            for name, model, fields in self._models:
                values, start = row[start : start + len(fields)], start + len(fields)
                instance = model.from_db(using.alias, fields, values)
                if name:
                    setattr(found[-1], name, instance)
                else:
                    found.append(instance)
        return found


_STAGING_TABLE = "copy_stage"


def copy_rows(
    table: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
) -> None:
    """Load `rows` into `table` with one binary COPY, inside the caller's transaction.

    `columns` are (name, PostgreSQL type) pairs in the order of each row's values. They must be
    named, because a generated column cannot be written, and have the columns' own types, because
    binary COPY does not convert; a `regconfig` is written as its `oid`.
    """
    names = ", ".join(connection.ops.quote_name(name) for name, _ in columns)
    target = connection.ops.quote_name(table)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_security_active(%s)", [target])
        if not cursor.fetchone()[0]:
            _copy_binary(target, names, columns, rows)
            return
        # PostgreSQL copies into no table that has row-level security for the role.
        cursor.execute(
            f"CREATE TEMP TABLE {_STAGING_TABLE} ON COMMIT DROP AS"  # noqa: S608
            f" SELECT {names} FROM {target} LIMIT 0"
        )
        _copy_binary(_STAGING_TABLE, names, columns, rows)
        cursor.execute(f"INSERT INTO {target} ({names}) SELECT {names} FROM {_STAGING_TABLE}")  # noqa: S608
        cursor.execute(f"DROP TABLE {_STAGING_TABLE}")


def _copy_binary(
    target: str, names: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
) -> None:
    statement = f"COPY {target} ({names}) FROM STDIN (FORMAT BINARY)"
    connection.apply_rls()  # type: ignore[attr-defined]  # of common.postgresql
    with (
        # Raw psycopg cursor; callers handle its errors.
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.cursor.copy(statement) as copy,
    ):
        copy.set_types([type_name for _, type_name in columns])
        for row in rows:
            copy.write_row(row)


def release_connection() -> None:
    """Return this thread's connections to the pool before a long wait; the next query takes one
    again.

    Within a transaction they are kept: returning one would roll it back.
    """
    if not connection.in_atomic_block:
        for each in connections.all(initialized_only=True):
            each.close()

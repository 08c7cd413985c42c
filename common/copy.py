"""Bulk load by binary COPY."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

_STAGE = "copy_stage"


def copy_rows(
    table: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
) -> None:
    """Load `rows` into `table` with one binary COPY, inside the caller's transaction.

    `columns` are (name, PostgreSQL type) pairs in the order of each row's values. They must be
    named: a generated column cannot be written. The types must be the columns' own, because
    binary COPY does not convert; a `regconfig` is written as its `oid`.
    """
    names = ", ".join(connection.ops.quote_name(name) for name, _ in columns)
    target = connection.ops.quote_name(table)
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_security_active(%s)", [target])
        if not cursor.fetchone()[0]:
            _copy(target, names, columns, rows)
            return
        # PostgreSQL copies into no table that has row-level security for the role.
        cursor.execute(
            f"CREATE TEMP TABLE {_STAGE} ON COMMIT DROP AS SELECT {names} FROM {target} LIMIT 0"  # noqa: S608
        )
        _copy(_STAGE, names, columns, rows)
        cursor.execute(f"INSERT INTO {target} ({names}) SELECT {names} FROM {_STAGE}")  # noqa: S608
        cursor.execute(f"DROP TABLE {_STAGE}")


def _copy(
    target: str, names: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
) -> None:
    statement = f"COPY {target} ({names}) FROM STDIN (FORMAT BINARY)"
    connection.fence_transaction()  # type: ignore[attr-defined]  # of common.postgresql
    with (
        # Past Django's cursor, whose errors those who call know.
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.cursor.copy(statement) as copy,
    ):
        copy.set_types([type_name for _, type_name in columns])
        for row in rows:
            copy.write_row(row)

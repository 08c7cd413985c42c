"""Bulk load by binary COPY."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection


def copy_rows(
    table: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]
) -> None:
    """Load `rows` into `table` with one binary COPY, inside the caller's transaction.

    `columns` are (name, PostgreSQL type) pairs in the order of each row's values. They must be
    named: a generated column cannot be written. The types must be the columns' own, because
    binary COPY does not convert; a `regconfig` is written as its `oid`.
    """
    names = [connection.ops.quote_name(name) for name, _ in columns]
    statement = (
        f"COPY {connection.ops.quote_name(table)} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    )
    connection.fence_transaction()  # type: ignore[attr-defined]  # of common.postgresql
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        copy.set_types([type_name for _, type_name in columns])
        for row in rows:
            copy.write_row(row)

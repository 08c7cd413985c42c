"""Run a query over a catalogued database: one SELECT, in a transaction that reads, with limits of
time, rows and characters. Begin with `run_query`."""

from dataclasses import dataclass
from time import perf_counter

import psycopg
from django.utils.translation import gettext
from psycopg import sql

from accounts.services import principals
from rag.context import RagContext
from rag.models import DatabaseConnection
from rag.sql.connections import open_connection, read_role, require_reader, server_message

#: Characters of a cell, and of all cells of an answer.
MAX_CELL_CHARACTERS = 1_000
MAX_CHARACTERS = 200_000
MAX_COLUMNS = 50

_NUMBERS = frozenset({20, 21, 23, 26, 700, 701, 790, 1700})  # type oids of pg_catalog


class QueryFailed(Exception):
    """The database refuses the query, or it takes too long; the message is the database's."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The first rows of a query, as text; None is NULL. `is_number` says so of each column,
    `is_cut` that there are more rows."""

    columns: tuple[str, ...]
    is_number: tuple[bool, ...]
    rows: tuple[tuple[str | None, ...], ...]
    is_cut: bool
    milliseconds: int


def connection_for(
    context: RagContext, *, collection_id: int | None, database: str
) -> DatabaseConnection | None:
    """The connection on which the caller may run queries over this database; None where there is
    none, it is switched off, or not open to the caller."""
    row: DatabaseConnection | None = DatabaseConnection.objects.filter(
        workspace=context.workspace,
        collection=collection_id,
        database=database,
        is_enabled=True,
    ).first()
    if row is None or context.user is None or row.access is None:
        return row
    return row if set(row.access) & set(principals(context.user)) else None


def run_query(connection: DatabaseConnection, statement: str) -> QueryResult:
    """Run what `rag.sql.runnable.runnable_sql` wrote. Rights of the role are looked at each time,
    as they may have grown. Raises QueryFailed, and what `open_connection` and `require_reader`
    raise."""
    began = perf_counter()
    with open_connection(connection) as opened:
        try:
            require_reader(connection, read_role(opened))
            # A binary cursor uses the extended protocol, which takes one statement only.
            with opened.cursor(binary=True) as cursor:
                inner = sql.SQL(statement)
                cursor.execute(sql.SQL("SELECT * FROM ({}) AS answer LIMIT 0").format(inner))
                described = cursor.description or []
                if len(described) > MAX_COLUMNS:
                    raise QueryFailed(
                        gettext("The query has more than {limit} columns. Select fewer.").format(
                            limit=MAX_COLUMNS
                        )
                    )
                names = [sql.Identifier(f"c{at}") for at in range(len(described))]
                cells = [
                    sql.SQL("left({}::text, {})").format(name, MAX_CELL_CHARACTERS + 1)
                    for name in names
                ]
                cursor.execute(
                    sql.SQL("SELECT {} FROM ({}) AS answer ({}) LIMIT {}").format(
                        sql.SQL(", ").join(cells),
                        inner,
                        sql.SQL(", ").join(names),
                        connection.max_rows + 1,
                    )
                )
                rows = cursor.fetchall()
        except psycopg.OperationalError as error:
            if not isinstance(error, psycopg.errors.QueryCanceled):
                raise
            raise QueryFailed(server_message(error)) from error
        except psycopg.Error as error:
            raise QueryFailed(server_message(error)) from error
    kept: list[tuple[str | None, ...]] = []
    room = MAX_CHARACTERS
    for row in rows[: connection.max_rows]:
        shown = tuple(None if cell is None else _shortened(cell) for cell in row)
        room -= sum(len(cell or "") for cell in shown)
        if room < 0 and kept:
            break
        kept.append(shown)
    return QueryResult(
        columns=tuple(column.name for column in described),
        is_number=tuple(column.type_code in _NUMBERS for column in described),
        rows=tuple(kept),
        is_cut=len(kept) < len(rows),
        milliseconds=round((perf_counter() - began) * 1000),
    )


def _shortened(cell: str) -> str:
    return cell if len(cell) <= MAX_CELL_CHARACTERS else f"{cell[:MAX_CELL_CHARACTERS]}…"

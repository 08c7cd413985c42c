"""Statements whose rows come in PostgreSQL's binary form: blocks of bytes, arrays of numbers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import psycopg
from django.db import transaction

from common.postgresql.fencing import fence_prefix, timeout_prefix


def fetch(
    connection: Any,
    statement: str,
    parameters: Mapping[str, Any] | Sequence[Any] = (),
    *,
    prepare: bool = False,
) -> list[tuple[Any, ...]]:
    """All rows of one statement, within the fence of the work at hand.

    With `prepare` the server keeps its plan, where connections are set up for that: for a statement
    whose text comes again and again, all of whose parameters have a type by their place or a cast.
    Else parameters are written into the statement, as Django's cursors do, and the planner sees
    them.

    What goes before a statement cannot go with it in one message here, so that one that is fenced
    or limited in time needs a transaction, and makes one where there is none.
    """
    connection.ensure_connection()
    if not connection.in_atomic_block and (timeout_prefix() or fence_prefix(connection)):
        with transaction.atomic(using=connection.alias):
            connection.begin()
            return fetch(connection, statement, parameters, prepare=prepare)
    connection.fence_transaction()
    started = perf_counter()
    psycopg_connection = connection.connection
    with connection.wrap_database_errors, psycopg.Cursor(psycopg_connection) as cursor:
        if prepare and psycopg_connection.prepare_threshold is not None:
            cursor.execute(statement, parameters, prepare=True, binary=True)
        else:
            # Only a statement without parameters can answer in binary when they are written in.
            bound = _bound(psycopg_connection, statement, parameters)
            cursor.execute(bound, prepare=False, binary=True)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    if connection.queries_logged:
        spent = f"{perf_counter() - started:.3f}"
        bound = _bound(psycopg_connection, statement, parameters)
        connection.queries_log.append({"sql": bound, "time": spent})
    return rows


def _bound(connection: Any, statement: str, parameters: Any) -> str:
    with psycopg.ClientCursor(connection) as cursor:
        return cursor.mogrify(statement, parameters or None)


def one_line(sql: str) -> str:
    """Without comments and indentation. psycopg remembers how a statement of up to 4,096 characters
    is read, and reads a longer one each time."""
    return re.sub(r"\s+", " ", re.sub(r"--.*", "", sql))


def array(ids: Iterable[int]) -> str:
    """A bigint[] in PostgreSQL's text form: of hundreds of ids quicker than as a list."""
    return f"{{{','.join(map(str, ids))}}}"


@contextmanager
def snapshot(connection: Any, settings: str = "") -> Iterator[None]:
    """A transaction all of whose statements see the same rows; within somebody else's transaction
    they see what its own isolation shows. `settings` are `SET LOCAL` statements, each with its
    semicolon."""
    connection.ensure_connection()
    if connection.in_atomic_block:
        if settings:
            connection.connection.execute(settings, prepare=False)
        yield
        return
    with connection.read_only(settings):
        yield

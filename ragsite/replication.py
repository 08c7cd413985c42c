"""Statements to servers that replicate to each other: connections by shard, subscriptions, and
changes of tables that hold nobody up. For `ragsite.shards` and `ragsite.workspace_moves`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql
from psycopg.conninfo import make_conninfo

from common.errors import ExplainedError
from common.shards import CATALOG_ALIAS

#: Seconds that the last changes, and the end of a replication, may take.
ARRIVAL_SECONDS = 120.0
POLL_SECONDS = 0.2
_LOCK_SECONDS = 2
_LOCK_TRIES = 30


class ShardError(ExplainedError):
    """A shard cannot be used as it is; the message says the cure."""


def replication_url(shard: str) -> str:
    """How other servers reach `shard`: as this process does, unless DATABASE_REPLICATION_URLS says
    another way, past a PgBouncer for instance."""
    given: dict[str, str] = settings.DATABASE_REPLICATION_URLS
    if url := given.get(shard or "main"):
        return make_conninfo(url)
    parameters = server_of(shard).get_connection_params()
    wanted = ("host", "port", "user", "password", "dbname", "sslmode", "sslrootcert")
    return make_conninfo(**{name: parameters[name] for name in wanted if parameters.get(name)})


def main_database() -> BaseDatabaseWrapper:
    return connections[CATALOG_ALIAS]


def server_of(shard: str) -> BaseDatabaseWrapper:
    return connections[shard] if shard else main_database()


def drop_subscription(here: BaseDatabaseWrapper, name: str) -> None:
    """Drop it, if it is there, whether or not its publisher answers; `drop_slot` is left to do."""
    if value(here, "SELECT EXISTS (SELECT FROM pg_subscription WHERE subname = %s)", [name]):
        for change in ("DISABLE", "SET (slot_name = NONE)"):
            execute(here, sql.SQL(f"ALTER SUBSCRIPTION {{}} {change}").format(sql.Identifier(name)))
        execute(here, sql.SQL("DROP SUBSCRIPTION {}").format(sql.Identifier(name)))


def drop_slot(publisher: BaseDatabaseWrapper, name: str) -> None:
    """Drop the slot of a subscription that was dropped, if there is one. Raises ShardError."""
    deadline = monotonic() + ARRIVAL_SECONDS
    while True:
        slots = rows(
            publisher,
            "SELECT slot_name, active_pid FROM pg_replication_slots"
            " WHERE slot_name = %s AND database = current_database()",
            [name],
        )
        if not slots:
            return
        if slots[0][1] is None:
            execute(publisher, sql.SQL("SELECT pg_drop_replication_slot({})").format(name))
            return
        if monotonic() > deadline:
            raise ShardError(f"The replication slot {name} is still in use. Try again.")
        sleep(POLL_SECONDS)


def with_lock(server: BaseDatabaseWrapper, statement: sql.Composable) -> None:
    """Run a change of a table, in tries that hold others up for two seconds at most."""
    for attempt in range(_LOCK_TRIES):
        try:
            with transaction(server):
                execute(server, sql.SQL(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
                execute(server, statement)
        except OperationalError:
            if attempt == _LOCK_TRIES - 1:
                raise
            sleep(POLL_SECONDS)
        else:
            return


@contextmanager
def transaction(server: BaseDatabaseWrapper) -> Iterator[None]:
    server.ensure_connection()
    with server.wrap_database_errors, server.connection.transaction():
        yield


def execute(server: BaseDatabaseWrapper, statement: sql.Composable) -> int:
    with server.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.rowcount)


def run_with(server: BaseDatabaseWrapper, statement: sql.SQL, *values: Any) -> None:
    """Run the statement with literals in its places."""
    execute(server, statement.format(*map(sql.Literal, values)))


def rows(
    server: BaseDatabaseWrapper, statement: str | sql.Composable, values: Iterable[Any] = ()
) -> list[tuple[Any, ...]]:
    with server.cursor() as cursor:
        cursor.execute(statement, list(values) or None)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def value(
    server: BaseDatabaseWrapper, statement: str | sql.Composable, values: Iterable[Any] = ()
) -> Any:
    found = rows(server, statement, values)
    return found[0][0] if found else None

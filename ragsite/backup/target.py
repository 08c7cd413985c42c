"""The database that is restored into: empty or in use, and setting aside what it holds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import sql

from common.wording import counted
from ragsite.backup.contents import OURS
from ragsite.backup.errors import BackupError
from ragsite.backup.server import Connection
from ragsite.database import MIGRATION_LOCK

#: Where the tables are that a restore takes the place of, until it is known to be whole.
ASIDE = "before_restore"

_RELATIONS = sql.SQL("""
    SELECT n.nspname, c.relname, relkind
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND {ours}
    ORDER BY 1, 2
""").format(ours=OURS)
# What has tables takes their indexes, triggers, policies and own sequences along.
_MOVABLE = """
    SELECT 'TABLE', quote_ident(relname) FROM pg_class c
    WHERE relnamespace = {schema}::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                      AND objid = c.oid AND deptype = 'e')
    UNION ALL
    SELECT 'SEQUENCE', quote_ident(relname) FROM pg_class c
    WHERE relnamespace = {schema}::regnamespace AND relkind = 'S'
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                      AND objid = c.oid AND deptype IN ('e', 'a', 'i'))
    UNION ALL
    SELECT 'ROUTINE',
           quote_ident(proname) || '(' || pg_get_function_identity_arguments(p.oid) || ')'
    FROM pg_proc p
    WHERE pronamespace = {schema}::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass
                      AND objid = p.oid AND deptype = 'e')
"""
_OTHERS = """
    SELECT count(*), string_agg(DISTINCT application_name, ', ')
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND backend_type = 'client backend' AND application_name LIKE 'ragsite%'
"""


_LOOKS = 10
_BETWEEN_LOOKS = 0.1


def check(connection: Connection, *, replace: bool) -> None:
    """Raise BackupError unless this database can be restored into."""
    if others := _others(connection):
        count, names = others
        raise BackupError(
            f"The site is running: {counted(count, 'connection')} ({names}). Stop it first, its"
            " workers too."
        )
    found = connection.execute(_RELATIONS).fetchall()
    foreign = sorted({schema for schema, _, _ in found} - {"public", ASIDE})
    if foreign:
        raise BackupError(
            f"The database {connection.info.dbname} has tables of something else in schema"
            f" {foreign[0]}. Restore into a database of the site's own: DATABASE_URL names it."
        )
    if found and not replace:
        tables = sum(kind == "r" for _, _, kind in found)
        raise BackupError(
            f"The database {connection.info.dbname} is not empty: it has"
            f" {counted(tables, 'table')}. Name an"
            " empty one by DATABASE_URL, or put the backup in their place with --replace."
        )


def _others(connection: Connection) -> tuple[int, str] | None:
    """How many connections the site has and what they call themselves. Those that this process
    has just closed may take a moment to go."""
    for _ in range(_LOOKS):
        ((count, names),) = connection.execute(_OTHERS).fetchall()
        if not count:
            return None
        time.sleep(_BETWEEN_LOOKS)
    return count, names


@contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """Keep other commands from migrating the database meanwhile: they wait."""
    connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
    try:
        yield
    finally:
        connection.close()  # gives the lock back


@contextmanager
def set_aside(connection: Connection) -> Iterator[None]:
    """Make the schema `public` empty; what it held is dropped at the end, or put back where the
    work within fails.

    Where a restore was cut off, what that one had set aside is kept and its half is dropped.
    """
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '10s'")
            if _has(connection, ASIDE):
                _drop_contents(connection)
            else:
                connection.execute(f"CREATE SCHEMA {ASIDE}")
                _move(connection, "public", ASIDE)
    except psycopg.Error as error:
        said = str(error).strip().splitlines()[0]
        raise BackupError(
            f"The tables of {connection.info.dbname} cannot be set aside: {said}. Nothing was"
            " changed."
        ) from error
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error), connection.transaction():
            _drop_contents(connection)
            _move(connection, ASIDE, "public")
            connection.execute(f"DROP SCHEMA {ASIDE}")
        raise
    with connection.transaction():
        connection.execute(f"DROP SCHEMA {ASIDE} CASCADE")


def _has(connection: Connection, schema: str) -> bool:
    return bool(connection.execute("SELECT to_regnamespace(%s)", [schema]).fetchall()[0][0])


def _movable(connection: Connection, schema: str) -> list[tuple[str, str]]:
    found = connection.execute(
        sql.SQL(_MOVABLE).format(schema=sql.Literal(schema)), prepare=False
    ).fetchall()
    return [(kind, name) for kind, name in found]


def _move(connection: Connection, source: str, target: str) -> None:
    for kind, name in _movable(connection, source):
        connection.execute(f"ALTER {kind} {source}.{name} SET SCHEMA {target}")


def _drop_contents(connection: Connection) -> None:
    for kind, name in _movable(connection, "public"):
        connection.execute(f"DROP {kind} IF EXISTS public.{name} CASCADE")

"""The database of a backup: connection, table hashes, pg_dump and pg_restore, setting
tables aside.
"""

import errno
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql
from psycopg.conninfo import make_conninfo

from common.errors import RagsiteError
from common.text import pluralized
from ragsite.bootstrap import take_migration_lock
from ragsite.embedded import postgres
from ragsite.embedded.service import ServiceError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class BackupError(RagsiteError):
    """A backup cannot be made or restored; nothing was changed, and the message names the cure."""

    code = "backup_failed"


@contextmanager
def backup_errors(where: Path) -> Iterator[None]:
    """Raise BackupError for an OSError within the block, with a hint where the disk is full."""
    try:
        yield
    except OSError as error:
        path = error.filename or where
        if error.errno in _FULL:
            raise BackupError(
                f"No room for {path}: {error.strerror}. Free some, or name a folder on another"
                " disk; nothing half-written was left."
            ) from error
        raise BackupError(f"{path}: {error.strerror or error}.") from error


Connection = psycopg.Connection[tuple[Any, ...]]

_OPTIONS = frozenset(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults())
#: So that values have the same text everywhere, and no policy hides rows: with `row_security` off
#: PostgreSQL raises an error instead.
_SETTINGS = (
    "SET search_path = public",
    "SET timezone = 'UTC'",
    "SET datestyle = 'ISO, YMD'",
    "SET intervalstyle = 'iso_8601'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 1",
    "SET row_security = off",
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET idle_session_timeout = 0",
)


@dataclass(frozen=True, slots=True)
class Server:
    """A database, as libpq options. The password is passed in the environment, which is not visible
    in process lists.
    """

    options: Mapping[str, str]

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> "Server":
        """The database of a Django connection."""
        given = connection.get_connection_params()
        options = {name: str(given[name]) for name in sorted(_OPTIONS.intersection(given))}
        return cls({**options, "application_name": "ragsite backup"})

    @property
    def name(self) -> str:
        return self.options.get("dbname", "")

    @property
    def address(self) -> str:
        """The value of `--dbname`, without the password."""
        return make_conninfo(**{k: v for k, v in self.options.items() if k != "password"})

    def environment(self) -> dict[str, str]:
        """Environment of the programs: English messages, and the password."""
        ours = {**os.environ, "LC_ALL": "C.UTF-8"}
        if password := self.options.get("password"):
            ours["PGPASSWORD"] = password
        return ours

    def connect(self) -> Connection:
        """A separate autocommit connection. Raises BackupError."""
        try:
            connection = psycopg.connect(make_conninfo(**self.options), autocommit=True)
            for statement in _SETTINGS:
                connection.execute(statement)
        except psycopg.Error as error:
            said = str(error).strip().splitlines()[0]
            raise BackupError(f"The database cannot be reached: {said}") from error
        return connection


#: Excludes the tables of extensions: pg_dump leaves them to `CREATE EXTENSION`.
NOT_OF_EXTENSIONS = sql.SQL("""
    n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                    AND objid = c.oid AND deptype = 'e')
""")
# Generated columns are made anew from the others, by the text search of that server.
_COLUMNS_QUERY = sql.SQL("""
    SELECT n.nspname, c.relname, attname, typname, typsend::regproc::text
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = relnamespace
    JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
      AND attgenerated = ''
    JOIN pg_type ON pg_type.oid = atttypid
    WHERE relkind = 'r' AND {ours}
    ORDER BY n.nspname, c.relname, attname
""").format(ours=NOT_OF_EXTENSIONS)
#: Their binary form is the same everywhere, and less than half of the text's work.
_VECTOR_TYPES = frozenset({"vector", "halfvec", "sparsevec"})
# A sum does not depend on the order of rows, and distinguishes two equal rows from none.
_HASH_QUERY = sql.SQL("""
    SELECT count(*), coalesce(sum(('x' || left(hash, 16))::bit(64)::bigint), 0),
           coalesce(sum(('x' || right(hash, 16))::bit(64)::bigint), 0)
    FROM (SELECT md5(ROW({columns})::text) AS hash FROM {table}) AS hashed
""")


@dataclass(frozen=True, slots=True)
class TableState:
    """Number of rows, and a hash of all of them in any order: 32 hexadecimal digits."""

    rows: int
    hash: str


def read_tables(connection: Connection, *, excluded_schema: str = "") -> dict[str, TableState]:
    """Every table by name, or by `schema.name` outside `public`; without `excluded_schema`. Reads
    all rows.
    """
    found: dict[tuple[str, str], list[sql.Composable]] = {}
    for schema, table, column, kind, send in connection.execute(_COLUMNS_QUERY).fetchall():
        if schema == excluded_schema:
            continue
        value: sql.Composable = sql.Identifier(column)
        if kind in _VECTOR_TYPES:
            value = sql.SQL("md5({send}({value}))").format(send=sql.SQL(send), value=value)
        found.setdefault((schema, table), []).append(value)
    states = {}
    for (schema, table), columns in found.items():
        statement = _HASH_QUERY.format(
            columns=sql.SQL(", ").join(columns), table=sql.Identifier(schema, table)
        )
        (read,) = connection.execute(statement).fetchall()
        rows, first, second = (int(number) for number in read)
        name = table if schema == "public" else f"{schema}.{table}"
        states[name] = TableState(rows, f"{first % 2**64:016x}{second % 2**64:016x}")
    return states


def table_differences(there: dict[str, TableState], here: dict[str, TableState]) -> list[str]:
    """Differences between tables of the backup (`there`) and of this database (`here`), in
    words.
    """
    return [
        f"{name}: {_table_summary(there.get(name))} in the backup,"
        f" {_table_summary(here.get(name))} here"
        for name in sorted(there.keys() | here.keys())
        if there.get(name) != here.get(name)
    ]


def _table_summary(table: TableState | None) -> str:
    return (
        "no such table"
        if table is None
        else f"{pluralized(table.rows, 'row')} with hash {table.hash[:8]}…"
    )


_DEBIAN = Path("/usr/lib/postgresql")
_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)\S*)")
_LINES = 8


def find_program(name: str, *, major: int) -> tuple[Path, str]:
    """Path and version of the program `name`: that of the server's major version, else the next
    newer one, since an older one cannot read the server. Raises BackupError.
    """
    candidates = []
    with suppress(ServiceError):  # the wheel is for who has no server
        candidates.append(postgres.postgres_software() / "bin" / name)
    if on_path := shutil.which(name):
        candidates.append(Path(on_path))
    candidates += sorted(_DEBIAN.glob(f"*/bin/{name}"))
    found: dict[int, tuple[Path, str]] = {}
    for path in candidates:
        with suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(  # noqa: S603 - PostgreSQL's own
                [path, "--version"], capture_output=True, text=True, check=False, timeout=30
            )
            if version := _VERSION.search(done.stdout):
                found.setdefault(int(version[2]), (path, version[1]))
    if fitting := [version for version in found if version >= major]:
        return found[min(fitting)]
    newest = f"the newest here is {found[max(found)][1]}" if found else "none is here"
    raise BackupError(
        f"The server is PostgreSQL {major}, and {name} {major} or newer is wanted: {newest}."
        f" Install the client programs of PostgreSQL {major} (Debian: postgresql-client-{major})"
        " and have them on PATH."
    )


@contextmanager
def run_program(program: Path, words: Sequence[str | Path], server: Server) -> Iterator[None]:
    """Run the program on the server's database while the block runs, and wait for its end. It is
    terminated if the block fails. Raises BackupError with its output.
    """
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - PostgreSQL's own
            [program, "--no-password", f"--dbname={server.address}", *words],
            env=server.environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            umask=0o077,
            # Else a file that may not grow would kill it before it can say so.
            restore_signals=False,
        )
        try:
            yield
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if code:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            # The error message without the failed statement.
            errors = [n for n, line in enumerate(lines) if "error:" in line]
            last = (lines[errors[0] :] if errors else lines[-_LINES:])[:_LINES]
            kept = takewhile(lambda line: not line.startswith("Command was:"), last)
            reason = "\n  ".join(kept)
            raise BackupError(f"{program.name} failed ({code}): {reason}")


#: Schema of the tables that a restore replaces, until it is complete.
ASIDE_SCHEMA = "before_restore"

_RELATIONS = sql.SQL("""
    SELECT n.nspname, c.relname, relkind
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND {ours}
    ORDER BY 1, 2
""").format(ours=NOT_OF_EXTENSIONS)
# Tables take their indexes, triggers, policies and own sequences along.
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
#: Number and names of the connections of the site's processes, without the one that asks.
SITE_CONNECTIONS = """
    SELECT count(*), string_agg(DISTINCT application_name, ', ')
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND backend_type = 'client backend' AND application_name LIKE 'ragsite%'
"""


_CONNECTION_CHECKS = 10
_BETWEEN_LOOKS = 0.1


def check_database(connection: Connection, *, replace: bool) -> None:
    """Raise BackupError unless this database can be restored into."""
    for _ in range(_CONNECTION_CHECKS):
        ((count, names),) = connection.execute(SITE_CONNECTIONS).fetchall()
        if not count:
            break
        time.sleep(_BETWEEN_LOOKS)  # those that this process has just closed take a moment
    else:
        raise BackupError(
            f"The site is running: {pluralized(count, 'connection')} ({names}). Stop it first, its"
            " workers too."
        )
    found = connection.execute(_RELATIONS).fetchall()
    foreign = sorted({schema for schema, _, _ in found} - {"public", ASIDE_SCHEMA})
    if foreign:
        raise BackupError(
            f"The database {connection.info.dbname} has tables of something else in schema"
            f" {foreign[0]}. Restore into a database of the site's own: DATABASE_URL names it."
        )
    if found and not replace:
        tables = sum(kind == "r" for _, _, kind in found)
        raise BackupError(
            f"The database {connection.info.dbname} is not empty: it has"
            f" {pluralized(tables, 'table')}. Name an"
            " empty one by DATABASE_URL, or put the backup in their place with --replace."
        )


@contextmanager
def migrations_locked(connection: Connection) -> Iterator[None]:
    """Hold the migration lock, so that other commands wait before migrating."""
    take_migration_lock(connection.cursor())
    try:
        yield
    finally:
        connection.close()  # gives the lock back


@contextmanager
def tables_set_aside(connection: Connection) -> Iterator[None]:
    """Empty the schema `public` within the block; its former content is dropped at the end, or put
    back on failure.

    After an interrupted restore, the content set aside by that one is kept and its half is dropped.
    """
    try:
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '10s'")
            aside = connection.execute("SELECT to_regnamespace(%s)", [ASIDE_SCHEMA])
            if aside.fetchall()[0][0]:
                _drop_contents(connection)
            else:
                connection.execute(f"CREATE SCHEMA {ASIDE_SCHEMA}")
                _move(connection, "public", ASIDE_SCHEMA)
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
            _move(connection, ASIDE_SCHEMA, "public")
            connection.execute(f"DROP SCHEMA {ASIDE_SCHEMA}")
        raise
    with connection.transaction():
        connection.execute(f"DROP SCHEMA {ASIDE_SCHEMA} CASCADE")


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

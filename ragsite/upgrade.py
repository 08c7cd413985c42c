"""From the database of an earlier release to that of this one: looked at before and after, migrated
in steps while people search. Begin with `upgrade` and `report`.

Migrations that the release before can live with are applied while it works. Those that say
`needs_stopped_site` take something away from it; they come last, once none of its processes is
connected. A statement that waits for a lock for two seconds gives up, because whoever comes after
it waits too, and its migration is tried again. Whatever is killed goes on where it was: a migration
is committed whole, or made of steps that know what is done (`common.migration_operations`).
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from redis.exceptions import RedisError

from common.checks import MINIMUM_PGVECTOR, MINIMUM_POSTGRESQL
from common.errors import RagsiteError
from common.rls import bypass_rls
from common.text import pluralized
from common.valkey import broker_client
from documents import lexical_index
from documents.ingestion.vector_indexes import build_index
from documents.models import Chunk, PendingChunk
from documents.validation import Scope, ValidationReport, validate
from documents.validation.chunk_checks import spaces_without_index
from ragsite import presence
from ragsite.backup import BackupError
from ragsite.backup.database import SITE_CONNECTIONS
from ragsite.backup.manifest import Manifest
from ragsite.bootstrap import MIGRATION_LOCK, migration_lock
from search.query_options import site_scope
from search.services import search

Say = Callable[[str], None]

PYTHON = (3, 11)
#: Of Redis' protocol and commands; Valkey began with 7.2.
MINIMUM_BROKER = (6, 2)
#: A statement that waits longer for a lock gives up, so that nobody waits behind it.
LOCK_SECONDS = 2
#: Attempts at a migration whose locks others hold, with pauses between.
LOCK_ATTEMPTS = 60
LOCK_PAUSE_SECONDS = 3.0
#: A backup older than this is worth a warning.
BACKUP_HOURS = 24
#: What an upgrade may write at most, as a share of the tables it changes: rows and indexes once
#: more, beside the old ones.
DISK_SHARE = 2.0


class UpgradeError(RagsiteError):
    """The upgrade cannot go on; the message names the cure. What was done stays."""

    code = "upgrade_failed"


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a report. What is `blocked` prevents the upgrade."""

    subject: str
    state: Literal["ok", "warning", "blocked"]
    detail: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Migrations to apply: while the site works, and then while it is stopped."""

    working: tuple[Migration, ...]
    stopped: tuple[Migration, ...]

    @property
    def all(self) -> tuple[Migration, ...]:
        return (*self.working, *self.stopped)


@dataclass(frozen=True, slots=True)
class Result:
    """What `upgrade` did. `running` are the processes of the site that must be stopped first: then
    the migrations of `Plan.stopped` are left to the next call."""

    applied: int
    left: int
    running: tuple[str, ...]
    seconds: float


def upgrade_plan() -> Plan:
    """The migrations that this release has and the database has not."""
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    working: list[Migration] = []
    stopped: list[Migration] = []
    late: set[tuple[str, str]] = set()
    for migration, _ in executor.migration_plan(graph.leaf_nodes()):
        key = (migration.app_label, migration.name)
        if getattr(migration, "needs_stopped_site", False) or late & set(graph.forwards_plan(key)):
            late.add(key)
            stopped.append(migration)
        else:
            working.append(migration)
    return Plan(tuple(working), tuple(stopped))


# --- reports --------------------------------------------------------------------------------------


def report(*, backup: Path | None = None) -> list[Item]:
    """Whether the site can be upgraded; where nothing is left to migrate, whether it is whole."""
    plan = upgrade_plan()
    items = [*_versions(), *_migrations(plan)]
    if plan.all:
        return [*items, *_disk(plan), _processes(plan), _backup(backup)]
    with bypass_rls():
        return [*items, *_indexes(), _validation(validate()), _search()]


def _versions() -> Iterator[Item]:
    yield _version("Python", sys.version_info[:2], PYTHON, exactly=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int,"
            " (SELECT extversion FROM pg_extension WHERE extname = 'vector')"
        )
        server, vector = cursor.fetchone()
    found = (server // 10000, server % 10000)
    yield _version("PostgreSQL", found, (MINIMUM_POSTGRESQL // 10000, 0))
    if vector is None:
        yield Item("pgvector", "warning", "not installed in this database; migrations do it")
    else:
        yield _version("pgvector", _numbers(vector), MINIMUM_PGVECTOR)
    try:
        with broker_client() as client:
            told = client.info("server")
    except RedisError as error:
        yield Item("Valkey or Redis", "warning", f"does not answer: {error}")
        return
    name = "Valkey" if "valkey_version" in told else "Redis"
    version = str(told.get("valkey_version") or told["redis_version"])
    yield _version(name, _numbers(version), MINIMUM_BROKER)


def _version(
    name: str, found: tuple[int, ...], least: tuple[int, ...], *, exactly: bool = False
) -> Item:
    version, wanted = (".".join(map(str, numbers)) for numbers in (found, least))
    if found == least if exactly else found >= least:
        return Item(name, "ok", version)
    rule = wanted if exactly else f"{wanted} or later"
    return Item(name, "blocked", f"{version}; this release needs {rule}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _migrations(plan: Plan) -> Iterator[Item]:
    if not plan.all:
        yield Item("migrations", "ok", f"all of ragsite {settings.RAGSITE_VERSION} are applied")
        return
    yield Item(
        "migrations",
        "ok",
        f"{pluralized(len(plan.working), 'migration')} while the site works,"
        f" {len(plan.stopped)} while it is stopped",
    )
    for migration in plan.all:
        for table, speed in _speeds(migration).items():
            rows, _ = _size(table)
            if rows > speed:
                yield Item(
                    f"{migration.app_label}.{migration.name}",
                    "ok",
                    f"changes {pluralized(rows, 'row')} of {table} in steps: about"
                    f" {_duration(rows / speed)}",
                )


def _speeds(migration: Migration) -> dict[str, int]:
    """Rows a second that the migration changes, by table, where it changes all of them."""
    return getattr(migration, "rows_per_second", {})


def _size(table: str) -> tuple[int, int]:
    """Rows (estimated) and bytes; 0 of a table that is not there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT greatest(reltuples, 0)::bigint, pg_total_relation_size(oid)"
            " FROM pg_class WHERE oid = to_regclass(%s)",
            [table],
        )
        return cursor.fetchone() or (0, 0)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return pluralized(max(1, round(seconds)), "second")
    return pluralized(round(seconds / 60), "minute")


def _disk(plan: Plan) -> Iterator[Item]:
    tables = {table for migration in plan.all for table in _speeds(migration)}
    needed = round(DISK_SHARE * sum(_size(table)[1] for table in tables))
    if not needed:
        return
    said = f"up to {needed / 1024**2:,.0f} MiB more are written"
    if not settings.EMBEDDED_DATABASE:
        yield Item("disk", "warning", f"{said}: see that the database server has them")
        return
    free = shutil.disk_usage(settings.VAR_DIR).free
    state: Literal["ok", "blocked"] = "ok" if free > needed else "blocked"
    yield Item("disk", state, f"{said}, {free / 1024**2:,.0f} MiB are free")


def running_processes() -> list[str]:
    """Processes of the site that use this database or its queues, this one left out."""
    with connection.cursor() as cursor:
        cursor.execute(SITE_CONNECTIONS)
        count, names = cursor.fetchone()
    found = [f"{pluralized(count, 'connection')} ({names})"] if count else []
    try:
        with broker_client() as client:
            return [*found, *presence.describe_workers(client)]
    except RedisError:
        return found


def _processes(plan: Plan) -> Item:
    running = running_processes()
    if not running:
        return Item("processes", "ok", "the site does not run")
    said = "; ".join(running)
    if plan.stopped:
        return Item("processes", "ok", f"{said}: to be stopped when `manage.py upgrade` says so")
    return Item("processes", "ok", f"{said}: to be started again after the upgrade")


def _backup(path: Path | None) -> Item:
    if path is None:
        said = "none is named: there is no way back but a backup. Name it with --backup"
        return Item("backup", "warning", said)
    try:
        made_at = datetime.fromisoformat(Manifest.read(path).made_at)
    except (BackupError, ValueError) as error:
        return Item("backup", "blocked", str(error))
    hours = (datetime.now(UTC) - made_at).total_seconds() / 3600
    if hours > BACKUP_HOURS:
        return Item("backup", "warning", f"{path} is {hours:.0f} hours old")
    return Item("backup", "ok", f"{path}, made {made_at:%Y-%m-%d %H:%M} UTC")


def _indexes() -> Iterator[Item]:
    missing = [space.name for space in spaces_without_index(Scope())]
    if missing:
        said = f"not built: {', '.join(missing)}. `manage.py upgrade` builds them"
        yield Item("vector indexes", "warning", said)
    else:
        yield Item("vector indexes", "ok", "built where there are many vectors")
    pending = PendingChunk.objects.count()
    state: Literal["ok", "warning"] = (
        "warning" if pending > lexical_index.SEGMENT_MAX_CHUNKS else "ok"
    )
    yield Item("word index", state, f"{pluralized(pending, 'passage')} not in it yet")


def _validation(checked: ValidationReport) -> Item:
    if checked.is_clean:
        return Item("validation", "ok", f"{len(checked.checks)} checks, clean")
    said = "; ".join(map(str, checked.findings))
    return Item("validation", "warning", f"{said}. See `manage.py validate`")


def _search() -> Item:
    """A passage is found by its own words."""
    chunk = Chunk.objects.filter(is_current=True).select_related("collection").last()
    if chunk is None:
        return Item("search", "ok", "there is no document yet")
    words = " ".join(f"{chunk.context} {chunk.text}".split()[:12])
    scope = site_scope(workspace=chunk.collection.workspace, collections=[chunk.collection.slug])
    result = search(words, scope=scope, mode="lexical")
    if not result.hits:
        said = f"nothing is found with the words of passage {chunk.pk}"
        return Item("search", "blocked", said)
    took = sum(result.timings.values())
    return Item("search", "ok", f"passages of “{chunk.collection}” are found, {took:.0f} ms")


# --- upgrading ------------------------------------------------------------------------------------


def upgrade(*, say: Say) -> Result:
    """Apply what the database lacks and build the indexes that are missing. May be called again
    after whatever stopped it. Raises UpgradeError."""
    started = monotonic()
    with _alone(say):
        plan = upgrade_plan()
        loader = MigrationExecutor(connection).loader
        there = [key for key in loader.applied_migrations if key in loader.graph.nodes]
        state = loader.project_state(there)
        running: list[str] = []
        applied = 0
        for migration in plan.all:
            if migration in plan.stopped and (running := running_processes()):
                break
            state = _apply(migration, state, say)
            applied += 1
        if running:
            left = len(plan.all) - applied
            return Result(applied, left, tuple(running), round(monotonic() - started, 1))
        # Permissions, content types, row-level security of new tables.
        _retried(lambda: call_command("migrate", interactive=False, verbosity=0), "grants", say)
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 0")  # what follows holds up nobody
        with bypass_rls():
            for space in spaces_without_index(Scope()):
                build_index(space)
                say(f"built the vector index of “{space.name}”")
            if moved := lexical_index.index_all_pending():
                say(f"indexed the words of {pluralized(moved, 'passage')}")
        if applied:
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
    return Result(applied, 0, (), round(monotonic() - started, 1))


@contextmanager
def _alone(say: Say) -> Iterator[None]:
    """As the only process that migrates."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK])
        if not cursor.fetchone()[0]:
            say("another process migrates this database; waiting for it")
    with migration_lock():
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            # A statement whose process was killed ends soon, and does not hold its locks for hours.
            cursor.execute("SET client_connection_check_interval = '2s'")
            cursor.execute("SET statement_timeout = 0")
        yield


def _apply(migration: Migration, state: Any, say: Say) -> Any:
    """The state of the models after the migration."""
    name = f"{migration.app_label}.{migration.name}"
    started = monotonic()
    say(name)
    executor = MigrationExecutor(connection)
    # A failed attempt may have changed the state it was given.
    after = _retried(lambda: executor.apply_migration(state.clone(), migration), name, say)
    if (seconds := monotonic() - started) > 1:
        say(f"{name}: {seconds:.1f} s")
    return after


def _retried(act: Callable[[], Any], name: str, say: Say) -> Any:
    """The result of `act`, which is tried again where somebody holds a lock that it needs."""
    for attempt in range(LOCK_ATTEMPTS):
        try:
            return act()
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise UpgradeError(
                    f"{name} was cut off: {str(error).strip().splitlines()[0]}. Run"
                    " `manage.py upgrade` again; it goes on from there."
                ) from error
            if attempt == 0:
                say(f"{name}: waiting for {_lock_holders()}")
        sleep(LOCK_PAUSE_SECONDS)
    raise UpgradeError(
        f"{name} could not get its locks in {LOCK_ATTEMPTS} attempts: {_lock_holders()}. End that"
        " transaction or wait for it, and run `manage.py upgrade` again; it goes on from there."
    )


def _lock_holders() -> str:
    """The longest transactions of others, which are the likely holders of a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, application_name, extract(epoch FROM now() - xact_start)::int"
            " FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 3"
        )
        rows = cursor.fetchall()
    said = [
        f"process {pid} ({name}), {seconds} s in its transaction" for pid, name, seconds in rows
    ]
    return ", ".join(said) or "a lock"

"""Probes of health: database, replicas, broker, workers, models, storage. `register` adds more."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader

from common.replicas import ReplicaState, replica_state
from common.rls import bypass_rls
from common.sql import release_connection
from common.valkey import broker_client
from documents.services import live_embedders
from inference import query_cache
from inference.model_registry import embedders
from ragsite import presence


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a probe: `detail` is for operators and contains no secret."""

    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Probe:
    """`look` runs in a thread, at most one at a time, and must close what it opens; an exception is
    a failure. If a probe that `is_required` fails, this process is not ready; otherwise it is
    degraded.
    """

    name: str
    look: Callable[[], Outcome]
    is_required: bool = False


_probes: dict[str, Probe] = {}


def register(probe: Probe) -> None:
    """Add a probe, replacing one of the same name."""
    _probes[probe.name] = probe


def registered_probes() -> list[Probe]:
    """The default probes and the registered ones, which replace those of the same name."""
    return list(({probe.name: probe for probe in default_probes()} | _probes).values())


EXTENSIONS = ("vector", "pg_trgm")
_SECONDS = 2


@contextmanager
def probe_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """A cursor on a new connection, closed afterwards: pooled ones may all be in use."""
    given = connection.get_connection_params()
    parameters = {
        key: value for key, value in given.items() if key not in ("context", "cursor_factory")
    }
    parameters |= {"connect_timeout": _SECONDS, "application_name": "ragsite-health"}
    # Without the settings of a session: a pooler in between need not know them.
    with psycopg.connect(**parameters) as own, own.cursor() as cursor:
        yield cursor


def check_server() -> Outcome:
    """Probe: the database accepts a connection and answers."""
    with probe_cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version')")
        (version,) = cursor.fetchone() or ("",)
    return Outcome(ok=True, detail=f"PostgreSQL {str(version).partition(' ')[0]}")


def check_extensions() -> Outcome:
    """Probe: the required extensions are installed."""
    with probe_cursor() as cursor:
        cursor.execute("SELECT extname, extversion FROM pg_extension")
        there = dict(cursor.fetchall())
    missing = [name for name in EXTENSIONS if name not in there]
    if missing:
        return Outcome(ok=False, detail=f"missing: {', '.join(missing)}; run `manage.py migrate`")
    return Outcome(ok=True, detail=", ".join(f"{name} {there[name]}" for name in EXTENSIONS))


def check_migrations() -> Outcome:
    """Probe: all migrations are applied."""
    with probe_cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        applied = {(app, name) for app, name in cursor.fetchall()}
    pending = known_migrations() - applied
    if pending:
        return Outcome(ok=False, detail=f"{len(pending)} to apply; run `manage.py migrate`")
    return Outcome(ok=True, detail=f"{len(applied)} applied")


@lru_cache(maxsize=1)
def known_migrations() -> frozenset[tuple[str, str]]:
    """Migrations of this code, read once."""
    return frozenset(MigrationLoader(None).graph.nodes)


def check_replicas() -> Outcome:
    """Probe: each replica streams, and this process reads from it."""
    try:
        return replicas_outcome(replica_state())
    finally:
        connections.close_all()  # of the probe's thread


def replicas_outcome(states: Sequence[ReplicaState]) -> Outcome:
    """One outcome for all replicas."""
    said = [
        f"{state.alias}: {state.detail}"
        + (f", {state.behind:,} bytes behind" if state.behind else "")
        for state in states
    ]
    return Outcome(ok=all(state.ok for state in states), detail="; ".join(said))


def check_broker() -> Outcome:
    """Probe: Valkey or Redis answers."""
    with broker_client() as client:
        told = client.info("server")
    name = "Valkey" if "valkey_version" in told else "Redis"
    return Outcome(
        ok=True, detail=f"{name} {told.get('valkey_version') or told.get('redis_version')}"
    )


def check_queue(queue: str) -> Outcome:
    """Probe: a worker consumes the queue."""
    with broker_client() as client:
        workers = presence.live_workers(client, queue)
    detail = f"{len(workers)} at work" if workers else "no worker consumes it"
    return Outcome(ok=bool(workers), detail=detail)


def check_models() -> Outcome:
    """Probe: the last use of each embedder succeeded. Loads no model and sends no request."""
    try:
        with bypass_rls():  # of the whole site, and nothing of it is shown
            aliases = live_embedders()
    finally:
        release_connection()
    broken = []
    for alias in aliases:
        _ = embedders[alias]  # raises what is wrong with its configuration
        if problem := query_cache.last_failure(alias):
            broken.append(f"{alias}: {problem}")
    if broken:
        return Outcome(ok=False, detail="; ".join(broken))
    unasked = [alias for alias in aliases if not query_cache.has_succeeded(alias)]
    said = [f"{alias} (not asked yet)" if alias in unasked else alias for alias in aliases]
    return Outcome(ok=True, detail=", ".join(said))


def check_storage() -> Outcome:
    """Probe: uploads can be written, even one of the largest size."""
    top = Path(settings.MEDIA_ROOT)
    place = next(each for each in (top, *top.parents) if each.exists())  # it is made when needed
    if not os.access(place, os.W_OK | os.X_OK):
        return Outcome(ok=False, detail="MEDIA_ROOT cannot be written")
    free = shutil.disk_usage(place).free
    detail = f"{free / 1024**3:.1f} GiB free"
    if free < settings.MAX_UPLOAD_BYTES:
        return Outcome(ok=False, detail=f"{detail}: less than one upload may have")
    return Outcome(ok=True, detail=detail)


def default_probes() -> list[Probe]:
    """The default probes. Without Valkey, workers, a model or storage people can still search and
    read, so these are not required: a load balancer must not take that away too.
    """
    return [
        Probe("database", check_server, is_required=True),
        Probe("extensions", check_extensions, is_required=True),
        Probe("migrations", check_migrations, is_required=True),
        *([Probe("replicas", check_replicas)] if settings.DATABASE_REPLICAS else []),
        Probe("broker", check_broker),
        *(Probe(f"queue_{name}", partial(check_queue, name)) for name in presence.QUEUES),
        Probe("model", check_models),
        Probe("storage", check_storage),
    ]

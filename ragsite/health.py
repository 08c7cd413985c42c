"""Health of the site: probes of the database, broker, workers, models and storage, run at once with
a time limit and a short cache, and the endpoints for load balancers and operators.

Begin with `default_probes` and `HealthMonitor`; `register` adds a probe.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from secrets import compare_digest
from threading import Lock, Thread
from time import monotonic
from typing import Any, Literal

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.authentication import bearer
from common import features
from common.logs import redact
from common.replicas import ReplicaState, replica_state
from common.rls import bypass_rls
from common.sql import release_connection
from common.valkey import broker_client
from documents.services import live_embedders
from inference import query_cache
from inference.model_registry import embedders
from ragsite import presence
from ragsite.new_database import migrations_on_disk
from ragsite.shards import shard_states


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
def probe_cursor(alias: str = DEFAULT_DB_ALIAS) -> Iterator[psycopg.Cursor[Any]]:
    """A cursor on a new connection, closed afterwards: pooled ones may all be in use."""
    given = connections[alias].get_connection_params()
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
    return frozenset(migrations_on_disk())


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


def check_shards() -> Outcome:
    """Probe: each shard answers and gets the changes of accounts."""
    try:
        with bypass_rls():
            states = shard_states()
    finally:
        connections.close_all()  # of the probe's thread
    said = "; ".join(f"{state.name}: {state.detail}" for state in states)
    return Outcome(ok=all(state.ok for state in states), detail=said)


def check_broker() -> Outcome:
    """Probe: Valkey or Redis answers."""
    with broker_client() as client:
        told = client.info("server")
    name = "Valkey" if "valkey_version" in told else "Redis"
    return Outcome(
        ok=True, detail=f"{name} {told.get('valkey_version') or told.get('redis_version')}"
    )


def check_queue(queue: str) -> Outcome:
    """Probe: a worker consumes the queue, unless it embeds on a site without vectors."""
    with broker_client() as client:
        workers = presence.live_workers(client, queue)
    detail = f"{len(workers)} at work" if workers else "no worker consumes it"
    is_needed = queue != "embed" or features.is_on("vectors")
    return Outcome(ok=bool(workers) or not is_needed, detail=detail)


def check_models() -> Outcome:
    """Probe: the last use of each embedder succeeded. Loads no model and sends no request."""
    if not features.is_on("vectors"):
        return Outcome(ok=True, detail="vectors are switched off")
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
        *([Probe("shards", check_shards)] if settings.DATABASE_SHARDS else []),
        Probe("broker", check_broker),
        *(Probe(f"queue_{name}", partial(check_queue, name)) for name in presence.QUEUES),
        Probe("model", check_models),
        Probe("storage", check_storage),
    ]


logger = logging.getLogger("ragsite.health")

State = Literal["ok", "degraded", "unready"]

#: Timeout of a probe; one that has not answered by then has failed.
PROBE_TIMEOUT_SECONDS = 2.0
#: How long a report is cached.
CACHE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes by name, and the overall state."""

    state: State
    outcomes: dict[str, Outcome]

    @property
    def is_ready(self) -> bool:
        """Whether requests should be sent to this process."""
        return self.state != "unready"


class HealthMonitor:
    """Runs the probes that `listed` returns; shared by all threads of a process."""

    def __init__(self, listed: Callable[[], Sequence[Probe]]) -> None:
        self._listed = listed
        self._looking = Lock()
        self._running: dict[str, Future[Outcome]] = {}
        self._last: tuple[float, Report] | None = None

    def report(self) -> Report:
        """A report at most two seconds old. Concurrent callers wait for the same one."""
        with self._looking:
            if self._last is None or monotonic() - self._last[0] > CACHE_SECONDS:
                probes = self._listed()
                for probe in probes:
                    # One that still hangs is not started again: nothing piles up.
                    if probe.name not in self._running:
                        begun: Future[Outcome] = Future()
                        self._running[probe.name] = begun
                        name = f"probe-{probe.name}"
                        Thread(
                            target=_run_probe, args=[probe, begun], name=name, daemon=True
                        ).start()
                wait(self._running.values(), timeout=PROBE_TIMEOUT_SECONDS)
                late = f"no answer within {PROBE_TIMEOUT_SECONDS:.0f} s"
                outcomes = {
                    probe.name: self._running.pop(probe.name).result()
                    if self._running[probe.name].done()
                    else Outcome(ok=False, detail=late)
                    for probe in probes
                }
                broken = [probe for probe in probes if not outcomes[probe.name].ok]
                state: State = "degraded" if broken else "ok"
                if any(probe.is_required for probe in broken):
                    state = "unready"
                # Log each probe that has failed or recovered since the last report.
                before = self._last[1].outcomes if self._last else {}
                for name, outcome in outcomes.items():
                    was_ok = before[name].ok if name in before else True
                    if outcome.ok and not was_ok:
                        logger.info("%s is well again: %s", name, outcome.detail)
                    elif was_ok and not outcome.ok:
                        logger.warning("%s is not well: %s", name, outcome.detail)
                self._last = monotonic(), Report(state, outcomes)
            return self._last[1]


def _run_probe(probe: Probe, begun: Future[Outcome]) -> None:
    """In a thread of its own, so that a hanging one blocks no other."""
    try:
        begun.set_result(probe.look())
    except Exception as error:  # that is what it looks for
        said = str(error).strip().partition("\n")[0]
        begun.set_result(Outcome(ok=False, detail=redact(said) or type(error).__name__))


def is_operator(request: HttpRequest, *, by_session: bool = True) -> bool:
    """Whether staff or a program with RAGSITE_METRICS_TOKEN asks. `by_session=False` where the
    database cannot be asked.
    """
    token, shown = settings.METRICS_TOKEN, bearer(request)
    if token and shown is not None:
        return compare_digest(shown.encode(), token.encode())
    if not by_session or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return False
    user = request.user
    return bool(user.is_authenticated and user.is_active and user.is_staff)


monitor = HealthMonitor(registered_probes)


@never_cache
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The process answers. No probe is run: a process must not be killed because of its
    database.
    """
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """200 where requests can be sent here, 503 where not; details for operators."""
    report = monitor.report()
    # Sessions are in the database: without it no user can be identified.
    may_ask = report.outcomes["database"].ok if "database" in report.outcomes else True
    shows = is_operator(request, by_session=may_ask)
    data = {
        "status": report.state,
        **({"version": settings.RAGSITE_VERSION} if shows else {}),
        "probes": {
            name: {"ok": each.ok, **({"detail": each.detail} if shows else {})}
            for name, each in report.outcomes.items()
        },
    }
    answer = JsonResponse(data, status=200 if report.is_ready else 503)
    # Django would log an error for each 503; the monitor logs changes once.
    answer._has_been_logged = True  # type: ignore[attr-defined]
    return answer

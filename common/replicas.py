"""Reading from replicas: routing, freshness, and fallback to the primary after failures."""

import logging
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from itertools import count
from time import monotonic, sleep
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from common.postgresql.base import StatementTimeout
from common.shards import current_shard

logger = logging.getLogger("ragsite.replicas")

P = ParamSpec("P")
T = TypeVar("T")

#: Pause after a failure of a replica, doubled each time.
FAILED_PAUSE_SECONDS = 5.0
MAX_FAILED_PAUSE_SECONDS = 60.0
#: Pause of a replica that is only lagging.
LAGGING_PAUSE_SECONDS = 1.0
#: Poll interval while waiting for a replica, growing to the second value.
POLL_SECONDS = (0.001, 0.01)

# Until a commit is flushed nobody sees it, unless commits do not wait for that.
_POSITION = """
    SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
           ELSE pg_current_wal_flush_lsn() END::text
"""
_REPLAYED = """
    SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= %s::pg_lsn,
           pg_wal_lsn_diff(%s::pg_lsn, pg_last_wal_replay_lsn())::bigint
"""
_IDENTITY = """
    SELECT current_database() || ' ' || (SELECT system_identifier FROM pg_control_system())
"""

_reading: ContextVar[str] = ContextVar("reading", default=DEFAULT_DB_ALIAS)
_turns = count()


class NotAReplica(OperationalError):
    """The server at `DATABASE_REPLICA_URL` does not replicate the primary."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """`alias` is a name in DATABASES; `behind` in bytes of write-ahead log, None where unknown."""

    alias: str
    ok: bool
    detail: str
    behind: int | None = None


@dataclass(slots=True)
class _Health:
    """State of one replica as this process knows it."""

    retry_at: float = 0.0
    failures: int = 0
    reason: str = ""


_health: dict[str, _Health] = {}
#: Which database of which cluster a connection leads to. It reads a file: asked once of each.
_identities: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class ReplicaRouter:
    """Reads go to the alias of the running function; writes and migrations to the primary."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return read_alias()

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, first: Any, second: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if db in settings.DATABASE_REPLICAS else None


def read_alias() -> str:
    """The alias to read from now. Within a transaction the one that it writes to."""
    return DEFAULT_DB_ALIAS if connections[DEFAULT_DB_ALIAS].in_atomic_block else _reading.get()


def read_connection() -> BaseDatabaseWrapper:
    """`django.db.connection` for hand-written statements that may use a replica."""
    return connections[read_alias()]


def reads_from_replica(function: Callable[P, T]) -> Callable[P, T]:
    """Let `function`, which writes nothing, read from a replica that has replayed everything
    committed before the call. Without one, on a shard, or after a failure there, it reads from the
    primary.
    """

    @wraps(function)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        alias = _current_replica()
        if alias is None:
            return function(*args, **kwargs)
        token = _reading.set(alias)
        try:
            return function(*args, **kwargs)
        except StatementTimeout:
            raise  # the primary would be no quicker
        except Error as error:
            _failed(alias, error)
        finally:
            _reading.reset(token)
        return function(*args, **kwargs)

    return reading


def replica_state() -> tuple[ReplicaState, ...]:
    """The current state of every replica, without waiting for a lagging one."""
    aliases = settings.DATABASE_REPLICAS
    if not aliases:
        return ()
    position = _position()
    states = []
    for alias in aliases:
        try:
            reached, behind = _replication_state(alias, position)
        except Error as error:
            states.append(ReplicaState(alias, ok=False, detail=_first_line(error)))
            continue
        health = _health.get(alias)
        ok = health is None or health.retry_at <= monotonic()
        detail = "streaming" if reached else "behind"
        if health is not None and not ok:
            detail = health.reason
        states.append(ReplicaState(alias, ok=ok, detail=detail, behind=behind))
    return tuple(states)


def _current_replica() -> str | None:
    """An up-to-date replica; None where the primary must be read."""
    if (
        not settings.DATABASE_REPLICAS
        or current_shard()
        or _reading.get() != DEFAULT_DB_ALIAS
        or connections[DEFAULT_DB_ALIAS].in_atomic_block
    ):
        return None
    now = monotonic()
    aliases: tuple[str, ...] = settings.DATABASE_REPLICAS
    first = next(_turns) % len(aliases)
    in_turn = aliases[first:] + aliases[:first]
    usable = [alias for alias in in_turn if _health_of(alias).retry_at <= now]
    if not usable:
        return None
    position = _position()
    deadline = now + settings.REPLICA_MAX_LAG_SECONDS
    for alias in usable:
        try:
            reached = _waits_for(alias, position, deadline)
        except Error as error:
            _failed(alias, error)
            continue
        if reached:
            _health[alias] = _Health()
            return alias
        _health[alias] = _Health(
            retry_at=monotonic() + LAGGING_PAUSE_SECONDS, reason="too far behind"
        )
    return None


def _health_of(alias: str) -> _Health:
    return _health.setdefault(alias, _Health())


def _position() -> str:
    """The primary's current WAL position."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_POSITION)
        position: str = cursor.fetchone()[0]
    return position


def _identity(alias: str) -> str:
    connection = connections[alias]
    connection.ensure_connection()
    if connection.connection not in _identities:
        with connection.cursor() as cursor:
            cursor.execute(_IDENTITY)
            _identities[connection.connection] = cursor.fetchone()[0]
    return _identities[connection.connection]


def _waits_for(alias: str, position: str, deadline: float) -> bool:
    """Whether the replica reaches `position` before the deadline."""
    pause, longest = POLL_SECONDS
    while True:
        try:
            reached, _ = _replication_state(alias, position)
        except (InterfaceError, OperationalError):
            # A connection cut by a restart of the replica does not mean that it is down.
            _close(alias)
            reached, _ = _replication_state(alias, position)
        if reached or monotonic() + pause > deadline:
            return reached
        sleep(pause)
        pause = min(2 * pause, longest)


def _replication_state(alias: str, position: str) -> tuple[bool, int]:
    """Whether it has replayed up to `position`, and how many bytes are missing."""
    if _identity(alias) != _identity(DEFAULT_DB_ALIAS):
        raise NotAReplica("DATABASE_REPLICA_URL names a replica of another database.")
    with connections[alias].cursor() as cursor:
        cursor.execute(_REPLAYED, [position, position])
        recovering, reached, behind = cursor.fetchone()
    if not recovering:
        raise NotAReplica("DATABASE_REPLICA_URL names no replica: the server takes writes.")
    return bool(reached), max(0, behind or 0)


def _failed(alias: str, error: Error) -> None:
    """Pause the replica, unless the statement itself was at fault."""
    _close(alias)
    if not isinstance(error, (InterfaceError, OperationalError)):
        return
    failures = _health_of(alias).failures + 1
    pause = min(MAX_FAILED_PAUSE_SECONDS, FAILED_PAUSE_SECONDS * 2 ** (failures - 1))
    _health[alias] = _Health(monotonic() + pause, failures, _first_line(error))
    logger.warning("%s is not read from for %.0f s: %s", alias, pause, _first_line(error))


def _close(alias: str) -> None:
    with suppress(Error):
        connections[alias].close()


def _first_line(error: Error) -> str:
    """The error's first line, without the address that libpq includes."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__

"""Reading from replicas: who may, when it is safe, and what becomes of a read that fails there."""

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

logger = logging.getLogger("ragsite.replicas")

P = ParamSpec("P")
T = TypeVar("T")

#: A replica that failed is left alone for so long, each further time twice as long.
AWAY_SECONDS = 5.0
LONGEST_AWAY_SECONDS = 60.0
#: The same where it only was too far behind.
BEHIND_SECONDS = 1.0
#: Between two looks at how far it is, growing to the second.
LOOKS_SECONDS = (0.001, 0.01)

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
    """The server at `DATABASE_REPLICA_URL` does not repeat what the primary does."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """`alias` is a name in DATABASES; `behind` in bytes of write-ahead log, None where unknown."""

    alias: str
    ok: bool
    detail: str
    behind: int | None = None


@dataclass(slots=True)
class _Health:
    """What this process knows of one replica."""

    retry_at: float = 0.0
    failures: int = 0
    reason: str = ""


_health: dict[str, _Health] = {}
#: Which database of which cluster a connection leads to. It reads a file: asked once of each.
_identities: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class ReplicaRouter:
    """Reads go where the running function may read; writes and migrations to the primary."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return read_alias()

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, first: Any, second: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if db in settings.DATABASE_REPLICAS else None


def read_alias() -> str:
    """The database to read from now. Within a transaction that is the one that it writes to."""
    return DEFAULT_DB_ALIAS if connections[DEFAULT_DB_ALIAS].in_atomic_block else _reading.get()


def read_connection() -> BaseDatabaseWrapper:
    """What `django.db.connection` is to statements by hand that may go to a replica."""
    return connections[read_alias()]


def reads_from_replica(function: Callable[P, T]) -> Callable[P, T]:
    """Let `function`, which writes nothing, read from a replica that has replayed all that was
    committed when it was called. Where there is none, or it fails there, the primary is read."""

    @wraps(function)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        alias = _replica_now()
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
    """How every replica is, asked anew and without waiting for one that is behind."""
    aliases = settings.DATABASE_REPLICAS
    if not aliases:
        return ()
    position = _position()
    return tuple(_state(alias, position) for alias in aliases)


def _state(alias: str, position: str) -> ReplicaState:
    try:
        reached, behind = _look(alias, position)
    except Error as error:
        return ReplicaState(alias, ok=False, detail=_said(error))
    health = _health.get(alias)
    if health is not None and health.retry_at > monotonic():
        return ReplicaState(alias, ok=False, detail=health.reason, behind=behind)
    return ReplicaState(alias, ok=True, detail="streaming" if reached else "behind", behind=behind)


def _replica_now() -> str | None:
    """One that is up to date; None where the primary must be read."""
    if (
        not settings.DATABASE_REPLICAS
        or _reading.get() != DEFAULT_DB_ALIAS
        or connections[DEFAULT_DB_ALIAS].in_atomic_block
    ):
        return None
    now = monotonic()
    usable = [alias for alias in _in_turn() if _of(alias).retry_at <= now]
    if not usable:
        return None
    position = _position()
    deadline = now + settings.REPLICA_MAX_LAG_SECONDS
    for alias in usable:
        try:
            reached = _reaches(alias, position, deadline)
        except Error as error:
            _failed(alias, error)
            continue
        if reached:
            _health[alias] = _Health()
            return alias
        _health[alias] = _Health(retry_at=monotonic() + BEHIND_SECONDS, reason="too far behind")
    return None


def _in_turn() -> tuple[str, ...]:
    aliases: tuple[str, ...] = settings.DATABASE_REPLICAS
    first = next(_turns) % len(aliases)
    return aliases[first:] + aliases[:first]


def _of(alias: str) -> _Health:
    return _health.setdefault(alias, _Health())


def _position() -> str:
    """How far the primary's log is."""
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


def _reaches(alias: str, position: str, deadline: float) -> bool:
    """Whether the replica is at `position` before the deadline."""
    pause, longest = LOOKS_SECONDS
    while True:
        try:
            reached, _ = _look(alias, position)
        except (InterfaceError, OperationalError):
            # A connection that a restart of the replica cut says nothing of the replica.
            _close(alias)
            reached, _ = _look(alias, position)
        if reached or monotonic() + pause > deadline:
            return reached
        sleep(pause)
        pause = min(2 * pause, longest)


def _look(alias: str, position: str) -> tuple[bool, int]:
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
    """Leave the replica alone for a while, unless it was the statement's own fault."""
    _close(alias)
    if not isinstance(error, (InterfaceError, OperationalError)):
        return
    failures = _of(alias).failures + 1
    pause = min(LONGEST_AWAY_SECONDS, AWAY_SECONDS * 2 ** (failures - 1))
    _health[alias] = _Health(monotonic() + pause, failures, _said(error))
    logger.warning("%s is not read from for %.0f s: %s", alias, pause, _said(error))


def _close(alias: str) -> None:
    with suppress(Error):
        connections[alias].close()


def _said(error: Error) -> str:
    """In one line, without the address that libpq tells."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__

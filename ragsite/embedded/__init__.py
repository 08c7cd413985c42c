"""PostgreSQL and Valkey from their wheels, on private unix sockets under one directory: started,
stopped and described, one caller at a time. Begin with `start`.

Importing this package is cheap and starts nothing; settings take the URLs from it.
"""

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from ragsite.embedded.postgres import Postgres
from ragsite.embedded.service import (
    Service,
    ServiceError,
    ServiceStatus,
    broker_url,
    database_url,
    failure,
    libpq_url,
    redis_url,
    server_user,
    socket_dir,
)
from ragsite.embedded.valkey import Valkey

__all__ = [
    "ServiceError",
    "ServiceStatus",
    "answering",
    "broker_url",
    "database_url",
    "libpq_url",
    "redis_url",
    "socket_dir",
    "start",
    "status",
    "stop",
]

SERVICES: tuple[type[Service], ...] = (Postgres, Valkey)
ALL_SERVICES = tuple(service.name for service in SERVICES)


def start(
    var_dir: Path,
    *,
    durable: bool = True,
    only: Collection[str] = ALL_SERVICES,
    chmod_parents: bool = False,
) -> list[ServiceStatus]:
    """Start what does not answer yet and wait until it does; idempotent.

    The servers outlive the caller. `durable=False` trades durability for speed, for tests. `only`
    names the services. With `chmod_parents` root lets the servers' account pass through closed
    directories outside of the project and of `var_dir`. Raises ServiceError.
    """
    with _services_lock(var_dir):
        user = server_user(var_dir, chmod_parents=chmod_parents)
        return [service.start(user, durable=durable) for service in _services(var_dir, only)]


def stop(var_dir: Path, *, only: Collection[str] = ALL_SERVICES) -> list[ServiceStatus]:
    """Stop the services under `var_dir`, and no others. Raises ServiceError."""
    if not var_dir.exists():
        return status(var_dir, only=only)
    with _services_lock(var_dir):
        return [service.stop() for service in _services(var_dir, only)]


def status(var_dir: Path, *, only: Collection[str] = ALL_SERVICES) -> list[ServiceStatus]:
    """Status of the services; changes nothing."""
    return [service.status() for service in _services(var_dir, only)]


def answering(var_dir: Path, *, only: Collection[str] = ALL_SERVICES) -> bool:
    """Whether all named services answer: takes milliseconds and no lock."""
    return all(service.answer().serving for service in _services(var_dir, only))


def _services(var_dir: Path, only: Collection[str]) -> list[Service]:
    return [service(var_dir) for service in SERVICES if service.name in only]


@contextmanager
def _services_lock(var_dir: Path) -> Iterator[None]:
    try:
        var_dir.mkdir(parents=True, exist_ok=True)
        lock = os.open(var_dir / "services.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ServiceError(
            f"Cannot write to {var_dir}: {error.strerror}. Run as the user who owns it, "
            "or set RAGSITE_VAR_DIR to a directory of your own."
        ) from error
    try:
        if os.geteuid() == 0:
            # Else the owner of the directory could never start what root started once.
            owner = var_dir.stat()
            os.fchown(lock, owner.st_uid, owner.st_gid)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    except OSError as error:
        raise failure(f"The embedded services cannot be used: {error}", home=var_dir) from error
    finally:
        os.close(lock)

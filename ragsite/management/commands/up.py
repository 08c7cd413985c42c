"""`manage.py up`: the whole site in the foreground, as `make run` starts it."""

import http.client
import os
import socket
import sys
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.checks import SETTINGS
from inference.interfaces import InferenceError
from inference.model_registry import embedders
from ragsite import bootstrap, embedded
from ragsite.embedded.service import wait_until
from ragsite.supervisor import Supervisor

_WEB_SECONDS = 120.0
_MODEL_SECONDS = 30.0
# In a container root is who one is; Celery would tell so in eight lines for each worker.
_ROOT_WARNING = "ignore:You're running the worker with superuser privileges"
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # nosec B104  # noqa: S104 - only read


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = "Run the web server and the workers until Ctrl-C. Exit code: 0 stopped, 2 not begun."

    def add_arguments(self, parser: CommandParser) -> None:
        port, bind = os.environ.get("PORT") or "8000", os.environ.get("BIND") or "127.0.0.1"
        parser.add_argument("--port", type=int, default=port, help="PORT, or else 8000")
        parser.add_argument("--bind", default=bind, help="address: BIND, or else 127.0.0.1")

    def handle(self, *, port: int, bind: str, **options: Any) -> None:
        check_free(bind, port)
        # The others ask the embedding worker, which begins at the same time and has to load first.
        os.environ.setdefault("RAGSITE_WORKER_PATIENCE_SECONDS", f"{_MODEL_SECONDS:.0f}")
        supervisor = Supervisor(
            programs(bind, port),
            cwd=settings.BASE_DIR,
            say=self._say,
            on_tick=self._revive_services,
        )
        threading.Thread(target=self._announce, args=[bind, port], daemon=True).start()
        supervisor.run()
        self._say("stopped; the database and the broker stay until `manage.py services stop`")

    def _announce(self, bind: str, port: int) -> None:
        host = "localhost" if bind in _EVERY_ADDRESS else bind
        if wait_until(lambda: _answers(host, port), _WEB_SECONDS):
            wait_until(_models_are_ready, _MODEL_SECONDS)  # words find without them
            self._say(f"\n  ragsite is ready at http://{_bracketed(host)}:{port}/")
            self._say("  Log in as `manage.py demo` printed, or after `manage.py createsuperuser`.")
            self._say(f"  The documentation is at http://{_bracketed(host)}:{port}/docs/")
            self._say("  Ctrl-C stops it.\n")

    def _revive_services(self) -> None:
        try:
            bootstrap.ensure_services()
        except embedded.ServiceError as error:
            self._say(f"ragsite: {error}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def programs(bind: str, port: int) -> dict[str, list[str]]:
    """The site's processes. Embedding has its own: torch does not work with Celery's forks."""
    python = [sys.executable, "-W", _ROOT_WARNING, "-m"]
    app = [*python, "celery", "--quiet", "-A", "ragsite"]
    celery = [*app, "worker", "--without-gossip", "--without-mingle"]
    web = [*python, "gunicorn", "ragsite.wsgi:application", "--config=python:ragsite.gunicorn"]
    web += [f"--bind={_bracketed(bind)}:{port}"]
    ingest = ["--queues=ingest,default", "--pool=threads", "--concurrency=2", "-n", "ingest@%h"]
    # The only scheduler of the site needs no process of its own, which would hold 90 MB.
    ingest += ["--scheduler-thread", f"--schedule={settings.VAR_DIR / 'celerybeat-schedule'}"]
    return {
        "web": web,
        "ingest": [*celery, *ingest],
        "embed": [*celery, "--queues=embed", "--pool=solo", "-n", "embed@%h"],
    }


def check_free(bind: str, port: int) -> None:
    """Raise CommandError where the web server could not listen."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"Cannot listen on {bind} port {port}: {error}. "
            f"Choose another port: `make run PORT={port + 1}` or `manage.py up --port {port + 1}`.",
            returncode=2,
        ) from error


def _answers(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("HEAD", "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _models_are_ready() -> bool:
    """Whether the embedding worker has loaded its models."""
    from inference.shared import SharedEmbedder  # noqa: PLC0415 (loads numpy)

    try:
        models = [embedders[alias] for alias in embedders]
        return all(model.is_ready for model in models if isinstance(model, SharedEmbedder))
    except InferenceError:
        return True  # the worker's log tells what is wrong


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

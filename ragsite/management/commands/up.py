"""`manage.py up`: the whole site in the foreground, as `make run` starts it."""

import http.client
import os
import socket
import sys
import threading
from collections.abc import Callable
from time import sleep
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection

from common.checks import SETTINGS
from common.listening import bracketed, listen_defaults, reachable_host, site_url
from common.text import pluralized
from documents.models import IngestionItem, IngestionRun
from inference.interfaces import InferenceError
from inference.model_registry import embedders
from ragsite import bootstrap, embedded
from ragsite.embedded.service import wait_until
from ragsite.supervisor import Supervisor

_WEB_SECONDS = 120.0
_MODEL_SECONDS = 30.0
# In a container root is who one is; Celery would tell so in eight lines for each worker.
_ROOT_WARNING = "ignore:You're running the worker with superuser privileges"
#: Between two lines about what the workers still read.
PROGRESS_SECONDS = 3.0


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = "Run the web server and the workers until Ctrl-C. Exit code: 0 stopped, 2 not begun."

    def add_arguments(self, parser: CommandParser) -> None:
        bind, port = listen_defaults()
        parser.add_argument("--port", type=int, default=port, help="PORT, or else 8000")
        parser.add_argument("--bind", default=bind, help="address: BIND, or else 127.0.0.1")
        parser.add_argument(
            "--stop-services",
            action="store_true",
            help="at the end stop the embedded PostgreSQL and Valkey too, which a container kills",
        )

    def handle(self, *, port: int, bind: str, stop_services: bool, **options: Any) -> None:
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
        if stop_services:
            embedded.stop(settings.VAR_DIR)
            self._say("stopped, with the database and the broker")
        else:
            self._say("stopped; the database and the broker stay until `manage.py services stop`")

    def _announce(self, bind: str, port: int) -> None:
        url = site_url(bind, port)
        if wait_until(lambda: _answers(reachable_host(bind), port), _WEB_SECONDS):
            self._say(f"\n  ragsite answers at {url}/")
            self._say("  Log in as `manage.py demo` printed, or after `manage.py createsuperuser`.")
            self._say(f"  The documentation is at {url}/docs/")
            self._say("  Ctrl-C stops it.\n")
            follow_demo(self._say)
            wait_until(_models_are_ready, _MODEL_SECONDS)  # words find without them
            self._say(f"ragsite is ready at {url}/")

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
    web += [f"--bind={bracketed(bind)}:{port}"]
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


def follow_demo(say: Callable[[str], None], *, pause: float = PROGRESS_SECONDS) -> None:
    """Say how far the workers are with the demo's documents, and at the end which could not be
    read; returns at once where none waits."""
    from documents.demo_corpus import DOCS_COLLECTION, FIRM_COLLECTION  # noqa: PLC0415

    own = IngestionRun.objects.filter(collection__slug__in=(FIRM_COLLECTION, DOCS_COLLECTION))
    ids: list[int] = []
    said = ""
    while True:
        try:
            runs = list(own.filter(pk__in=ids) if ids else own.filter(finished_at=None))
            ids = [run.pk for run in runs]
            failed = IngestionItem.objects.filter(run__in=ids, state=IngestionItem.State.FAILED)
            problems = list(failed.order_by("pk").values_list("name", "error"))
        except DatabaseError:  # it is started again by the supervisor
            sleep(pause)
            continue
        finally:
            if not connection.in_atomic_block:  # as in a test
                connection.close()
        total = pluralized(sum(run.total for run in runs), "document")
        line = f"reading the demo: {sum(run.settled for run in runs)} of {total}"
        if runs and line != said:
            say(line)
        said = line
        if all(run.is_finished for run in runs):
            break
        sleep(pause)
    for name, error in problems:
        say(f"failed: {name}: {error}")


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
        models = [embedders[alias] for alias in embedders.configured()]
        return all(model.is_ready for model in models if isinstance(model, SharedEmbedder))
    except InferenceError:
        return True  # the worker's log tells what is wrong

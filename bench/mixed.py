"""A whole site under mixed load: does it answer everything, does it grow, does it get slower?

    python -m bench.mixed [--minutes 3] [--clients 2] [--cores 0,1]

Starts `manage.py up` in a folder of its own, with the hashing embedder, and so many clients of each
kind, which search, ask, bring documents, remember, and write and walk the graph, at moderate rates.
Prints the answers by status, milliseconds in the first and last fifth, and how much memory each
process holds. Ends with 1 where an answer was an error or a process grows without bound.
"""

import argparse
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

import psutil
from rich.console import Console

from tests.instances import instance_dir

if TYPE_CHECKING:
    from tests.load.clients import Client

_ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "ragsite.settings",
    "EMBEDDER_BACKEND": "inference.backends.hashing.HashingEmbedder",
    "RAGSITE_REDIS_DB": "0",
    "RAGSITE_API_RATE": "0",
    "RAGSITE_API_MODEL_RATE": "0",
    "LOG_LEVEL": "WARNING",
}
_UNSET = "DATABASE_URL", "REDIS_URL", "EMBEDDERS", "EMBEDDER_OPTIONS"
START_SECONDS = 120.0
#: How often every client asks before anything counts: each web process has then imported all.
WARMING = 4
SCOPES = "read", "write", "memory", "chat"


def main() -> int:
    options = _options()
    with nullcontext(options.var) if options.var else instance_dir() as var:
        key = set_up(var)
        with running_site(var) as (pid, port):
            return _measure(options, pid, port, key)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--clients", type=int, default=2, help="of each kind")
    parser.add_argument("--cores", default="", help="for the site, such as 0,1; else all")
    parser.add_argument("--var", type=Path, help="a folder whose servers have a database already")
    return parser.parse_args()


def set_up(var: Path) -> str:
    """Servers, tables, a user with a collection; the secret of a key."""
    os.environ.update(ENVIRONMENT, RAGSITE_VAR_DIR=str(var), MEDIA_ROOT=str(var / "media"))
    for variable in _UNSET:
        os.environ[variable] = ""
    os.environ.pop("RAGSITE_DATABASE_POOL_SIZE", None)
    from ragsite import bootstrap

    bootstrap.prepare(["manage.py", "evaluate"])
    from django.contrib.auth import get_user_model
    from django.db import connections

    from accounts.api_keys import create_key
    from accounts.models import Membership, Role
    from accounts.services import get_or_create_workspace
    from documents.models import Collection
    from documents.services import default_space

    workspace = get_or_create_workspace(slug="load")
    user = get_user_model().objects.create_user(username="load")
    Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
    graph = Collection.Graph.RULES
    Collection.objects.create(
        workspace=workspace, slug="notes", name="Notes", space=default_space(), graph=graph
    )
    _, secret = create_key(user=user, workspace=workspace, name="load", scopes=SCOPES)
    connections.close_all()
    return secret


@contextmanager
def running_site(var: Path) -> Iterator[tuple[int, int]]:
    """`manage.py up`: its process id and its port."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = trial.getsockname()[1]
    command = [sys.executable, "manage.py", "up", "--port", str(port)]
    with (var / "up.log").open("wb") as log:
        site = subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield site.pid, port
    finally:
        site.send_signal(signal.SIGINT)
        site.wait(timeout=60)
        lines = (var / "up.log").read_text(errors="replace").splitlines()
        for line in [line for line in lines if "Traceback" in line or "ended with" in line][:20]:
            print(line)


def _measure(options: argparse.Namespace, pid: int, port: int, key: str) -> int:
    from tests.load.clients import all_nodes
    from tests.load.processes import Watch
    from tests.load.report import faults, memory, speeds

    wait_for_site(port, pid)
    _clients(options, port, key, Event(), monotonic())[0].ask_once(all_nodes())
    for _ in range(WARMING):
        for client in _clients(options, port, key, Event(), monotonic()):
            client.ask_once()
    if options.cores:
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            process.cpu_affinity([int(core) for core in options.cores.split(",")])
    enough, began, seconds = Event(), monotonic(), options.minutes * 60
    watch = Watch(pid, enough=enough, began=began)
    clients = _clients(options, port, key, enough, began)
    threads = [watch, *clients]
    for thread in threads:
        thread.start()
    enough.wait(seconds)
    enough.set()
    for thread in threads:
        thread.join(timeout=90)
    answers = [answer for client in clients for answer in client.answers]
    held = list(watch.held.values())
    console = Console(width=120)
    console.print(speeds(answers, seconds), memory(held, seconds))
    wrong = faults(answers, held, seconds)
    console.print("\n".join(wrong) or "Every answer was given, and nothing grows.", highlight=False)
    return 1 if wrong else 0


def _clients(
    options: argparse.Namespace, port: int, key: str, enough: Event, began: float
) -> list["Client"]:
    from tests.load.clients import RATES, Client

    return [
        Client(make, rate=rate, seed=seed, port=port, key=key, enough=enough, began=began)
        for seed in range(options.clients)
        for make, rate in RATES.items()
    ]


def wait_for_site(port: int, pid: int) -> None:
    """Until it answers."""
    deadline = monotonic() + START_SECONDS
    while monotonic() < deadline and psutil.pid_exists(pid):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
        try:
            connection.request("HEAD", "/")
            connection.getresponse()
            return
        except (OSError, http.client.HTTPException):
            Event().wait(0.2)
        finally:
            connection.close()
    raise SystemExit("the site did not start: see what `manage.py up` prints")


if __name__ == "__main__":
    sys.exit(main())

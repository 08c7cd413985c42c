"""A site in a process of its own, for tests that come to it as other software does."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import urlopen
from uuid import uuid4

import pytest

from accounts import rate_limits
from inference.tests.stub_server import StubServer
from rag.context import RagContext
from rag.tests.asking import chat_server, reader
from tests.plugin import database_url_of_tests, empty_tables, free_port, wait_until

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent.parent


class SiteProcess:
    """gunicorn as `manage.py up` starts it, on the tests' database."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.environment = environment
        self.log = log
        self.url = f"http://127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it answers."""
        command = [sys.executable, "-m", "gunicorn", "ragsite.wsgi:application", "--workers=1"]
        command += [
            "--config=python:ragsite.gunicorn",
            f"--bind={self.url.removeprefix('http://')}",
        ]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(self._answers, what=f"the site answers; see {self.log}")

    def stop(self) -> None:
        """As an operator does; returns when it has ended."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/login/", timeout=5):
                return True
        except HTTPError:
            return True
        except OSError:
            return False


def commit(write: Callable[[], T]) -> T:
    """Do it in a thread, whose connection is in no transaction of a test: others see what it
    wrote."""
    from django.db import connection

    def run() -> T:
        try:
            return write()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


@pytest.fixture(scope="module")
def committed(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """What fixtures of a module write, and `commit`, is there for other processes until the module
    ends. Its tests are marked `django_db`."""
    from django.db import connection

    with django_db_blocker.unblock():
        yield
        empty_tables()
        connection.close()


@pytest.fixture(scope="module")
def world(committed: None) -> Any:
    """Who and what the tests of other programs meet: `rag.tests.mcp_world.World`."""
    from rag.tests.mcp_world import make_world

    return make_world()


@pytest.fixture(scope="module")
def secret(world: Any) -> str:
    """Of a key of Alice's that may do anything."""
    from rag.tests.mcp_world import secret_of

    return secret_of(world.alice)


@pytest.fixture(scope="session")
def site_environment(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """Environment of a process that works on the tests' database."""
    return {
        **os.environ,
        "DATABASE_URL": database_url_of_tests(),
        "MEDIA_ROOT": str(tmp_path_factory.mktemp("media")),
    }


@pytest.fixture(scope="session")
def site(
    site_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SiteProcess]:
    """A site that answers, with what is `committed`; one for all modules, because it takes seconds
    to start."""
    process = SiteProcess(site_environment, tmp_path_factory.mktemp("site") / "log")
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def context(db: None) -> RagContext:
    """A member whose workspace has a collection of two documents."""
    return reader()[0]


@pytest.fixture
def server(settings: Any) -> Iterator[StubServer]:
    """The server of the site's chat model."""
    with chat_server(settings) as server:
        yield server


@pytest.fixture
def fresh_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody has used anything up: Valkey keeps its counts from test to test. It is waited for,
    where a site would go on without it."""
    monkeypatch.setattr(rate_limits, "TIMEOUT_SECONDS", 30)
    rate_limits._client.cache_clear()
    rate_limits._Outage.asleep_until = 0.0
    for name in ("WORKSPACE", "USER"):
        monkeypatch.setattr(f"model_servers.token_limits.{name}", f"{name.lower()}-{uuid4().hex}")
    yield
    rate_limits._client.cache_clear()

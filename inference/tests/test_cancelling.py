"""Ending requests midway: the thread is free soon, and the model server sees its client go."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf

import pytest

from inference.cancellation import Cancelled, cancellation, check_cancelled, pause
from inference.interfaces import BackendUnavailable, InferenceError
from inference.remote.client import JsonClient
from inference.remote.retry import RetryPolicy, run_parallel
from inference.tests.stub_server import Reply, Silence, Stream, event, self_signed, stub_server

PATIENCE = RetryPolicy(attempts=3, timeout=30, first_wait=0.01, longest_wait=30)
LARGE = {"text": "x" * 32 * 1024 * 1024}  # more than the system's buffers hold


@contextmanager
def asked(work):
    """`work` begun by another thread, with the event that cancels it."""
    cancelled = threading.Event()

    def run():
        with cancellation(cancelled):
            return work()

    with ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(run), cancelled
        finally:
            cancelled.set()


def cancel(future, cancelled):
    cancelled.set()
    with pytest.raises(Cancelled, match="cancelled: ask again"):
        future.result(10)  # where the timeouts are 30


def post(stub, payload=None, **options):
    client = JsonClient(stub.url, **options)
    return lambda: client.post("/x", payload or {}, patience=PATIENCE)


def stream(stub):
    client = JsonClient(stub.url)
    return lambda: list(client.stream("/x", {}, last="END".__eq__, patience=PATIENCE))


@pytest.mark.parametrize("ask", [post, stream])
def test_a_thread_that_waits_for_a_silent_server_is_freed_and_the_server_sees_it_go(stub, ask):
    silence = Silence()
    stub.first(silence)
    with asked(ask(stub)) as (future, cancelled):
        assert silence.heard.wait(5)
        cancel(future, cancelled)
    assert silence.gone.wait(5)


@pytest.mark.parametrize("after", ["silence", "pings"])
def test_a_stream_is_ended_midway(stub, after):
    begun = threading.Event()
    halting = Stream(event("a"), after=after)
    stub.first(halting)
    client = JsonClient(stub.url)

    def read():
        for _ in client.stream("/x", {}, last="END".__eq__, patience=PATIENCE):
            begun.set()

    with asked(read) as (future, cancelled):
        assert begun.wait(5)
        cancel(future, cancelled)
    assert halting.gone.wait(5)


def test_a_request_over_tls_is_ended_too(stub, tmp_path, monkeypatch):
    certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with stub_server(certificate=certificate) as secure:
        silence = Silence()
        secure.first(silence)
        with asked(post(secure)) as (future, cancelled):
            assert silence.heard.wait(5)
            cancel(future, cancelled)
        assert silence.gone.wait(5)


class Slowly:
    """Some milliseconds between any two bytes."""

    def send(self, handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        for byte in b"1234":
            handler.stub.over.wait(0.02)
            handler.wfile.write(bytes([byte]))


def test_a_server_slower_than_the_looks_at_the_event_still_answers(stub, monkeypatch):
    monkeypatch.setattr("inference.cancellation.POLL_SECONDS", 0.001)
    stub.first(Slowly())
    with asked(post(stub)) as (future, _):
        assert future.result(10) == 1234


def test_a_deadline_holds_within_a_cancellation(stub):
    stub.always(lambda _: Silence())
    hasty = RetryPolicy(attempts=1, timeout=0.3, first_wait=0.01, longest_wait=1)
    client = JsonClient(stub.url)
    with (
        cancellation(threading.Event()),
        pytest.raises(BackendUnavailable, match=r"did not answer within 0\.[34] s"),
    ):
        client.post("/x", {}, patience=hasty)


@contextmanager
def listening(backlog):
    """An address whose server takes no connection beyond the backlog."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as server:
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_thread_that_cannot_get_through_is_freed():
    with listening(0) as (server, url):
        held = [socket.socket() for _ in range(4)]
        for each in held:  # the queue is full then, and the next one is not answered at all
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        with asked(lambda: JsonClient(url).post("/x", {}, patience=PATIENCE)) as (
            future,
            cancelled,
        ):
            cancel(future, cancelled)
        for each in held:
            each.close()


def test_a_thread_whose_request_is_not_read_is_freed_and_the_server_sees_it_go():
    with listening(1) as (server, url):
        client = JsonClient(url)
        with asked(lambda: client.post("/x", LARGE, patience=PATIENCE)) as (future, cancelled):
            connection, _ = server.accept()
            assert connection.recv(100)
            cancel(future, cancelled)
            with connection:
                connection.settimeout(5)
                while connection.recv(1024 * 1024):
                    pass


def test_a_large_request_arrives_whole(stub):
    stub.always(lambda payload: Reply({"length": len(payload["text"])}))
    with cancellation(threading.Event()):
        assert post(stub, LARGE)() == {"length": len(LARGE["text"])}


def test_a_wait_between_tries_is_ended(stub):
    refused = threading.Event()

    def refuse(_payload):
        refused.set()
        return Reply({}, 503, {"Retry-After": "20"})

    stub.always(refuse)
    with asked(post(stub)) as (future, cancelled):
        assert refused.wait(5)
        cancel(future, cancelled)
    assert len(stub.requests) == 1


def test_who_is_cancelled_already_asks_nobody(stub):
    cancelled = threading.Event()
    cancelled.set()
    with cancellation(cancelled), pytest.raises(Cancelled):
        post(stub)()
    assert stub.requests == []


def test_what_is_asked_in_several_threads_for_one_ends_with_it(stub):
    silences = [Silence(), Silence()]
    stub.first(*silences)
    client = JsonClient(stub.url)

    def ask(_batch, _cancelled):
        return client.post("/x", {}, patience=PATIENCE)

    with asked(lambda: run_parallel(ask, [1, 2], parallel=2)) as (future, cancelled):
        assert all(silence.heard.wait(5) for silence in silences)
        cancel(future, cancelled)
    assert all(silence.gone.wait(5) for silence in silences)


def test_each_event_of_nested_blocks_counts_and_only_within_them():
    outer, inner = threading.Event(), threading.Event()
    with cancellation(outer):
        with cancellation(inner):
            inner.set()
            with pytest.raises(Cancelled):
                check_cancelled()
        check_cancelled()
        outer.set()
        with pytest.raises(Cancelled), cancellation(threading.Event()):
            check_cancelled()
    check_cancelled()


def test_another_thread_is_not_touched():
    cancelled = threading.Event()
    cancelled.set()
    with cancellation(cancelled), ThreadPoolExecutor(1) as thread:
        assert thread.submit(check_cancelled).result() is None


def test_a_pause_ends_early_when_it_is_told_to():
    until = threading.Event()
    until.set()
    pause(inf, until=until)


def test_it_is_an_error_of_inference():
    assert issubclass(Cancelled, InferenceError)

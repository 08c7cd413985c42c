"""Reading a server's events as they come, from servers that break off, drip, or never stream."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference.interfaces import BackendUnavailable, MalformedAnswer
from inference.remote.client import JsonClient
from inference.remote.retry import RetryPolicy
from inference.tests.stub_server import Reply, Stream, event

KEY = "sk-never-to-be-seen-0123456789"
PATIENCE = RetryPolicy(attempts=3, timeout=5, first_wait=0.01, longest_wait=1)
HASTY = RetryPolicy(attempts=1, timeout=0.15, first_wait=0.01, longest_wait=1)


def stream(stub, *, patience=PATIENCE, deadline=float("inf"), **options):
    client = JsonClient(stub.url, api_key=KEY, **options)
    return client.stream(
        "/x", {"asked": "ü"}, last="END".__eq__, patience=patience, deadline=deadline
    )


@pytest.mark.parametrize("after", ["cut", "silence", "pings"])
def test_after_the_last_event_a_stream_may_end_as_it_likes(stub, after):
    stub.first(Stream(event("a"), event("END"), after=after))
    events = stream(stub)
    assert [next(events), next(events)] == ["a", "END"]


def test_nothing_is_asked_before_the_first_event_is_wanted(stub):
    stream(stub)
    assert stub.requests == []


def test_events_may_be_cut_anywhere_on_their_way(stub):
    whole = "data: grün 🌿\r\n\r\n: a ping\n\nevent: message\ndata: two\ndata: lines\n\n".encode()
    stub.first(Stream(*(whole[at : at + 1] for at in range(len(whole)))))
    assert list(stream(stub)) == ["grün 🌿", "two\nlines"]


def test_a_stream_without_events_ends_at_once(stub):
    stub.first(Stream())
    assert list(stream(stub)) == []


def test_each_event_may_be_read_by_another_thread(stub):
    stub.first(Stream(event("a"), event("b"), after="silence"))
    events = stream(stub, patience=HASTY)
    for expected in ("a", "b"):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(next, events).result() == expected
    with ThreadPoolExecutor(1) as thread, pytest.raises(BackendUnavailable, match="did not answer"):
        thread.submit(next, events).result()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(b"<html><title>Welcome</title>"), "a web page “Welcome”"),
        (Reply({"choices": []}, headers={"Content-Type": "application/json"}), "choices"),
        (Stream(b"data: x\n\n", kind="text/plain"), "data: x"),
    ],
)
def test_what_is_no_stream_is_malformed_and_not_asked_for_again(stub, reply, said):
    stub.always(lambda _: reply)
    with pytest.raises(MalformedAnswer, match=f"no stream: {said}|no stream: .*{said}"):
        next(stream(stub))
    assert len(stub.requests) == 1


def test_a_huge_stream_is_not_read_to_its_end(stub):
    stub.first(Stream(*[event("x" * 1000)] * 200, after="pings"))
    with pytest.raises(MalformedAnswer, match="more than 100,000 bytes"):
        list(stream(stub, largest_answer=100_000))


def test_a_huge_event_is_not_read_to_its_end(stub):
    stub.first(Stream(*[b"data: " + b"x" * 100_000] * 50, after="pings"))
    with pytest.raises(MalformedAnswer, match="cannot be read"):
        list(stream(stub))


def test_a_fork_in_the_middle_of_a_stream_disturbs_it_not(stub):
    forked = threading.Event()
    stub.first(Stream(event("a"), forked, event("b")), Stream(event("childs")))
    client = JsonClient(stub.url)
    events = client.stream("/x", {}, last="END".__eq__, patience=PATIENCE)
    assert next(events) == "a"
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            code = int(
                list(client.stream("/child", {}, last="END".__eq__, patience=PATIENCE))
                != ["childs"]
            )
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    forked.set()
    assert os.waitstatus_to_exitcode(status) == 0
    assert list(events) == ["b"]
    assert [request.path for request in stub.requests] == ["/x", "/child"]

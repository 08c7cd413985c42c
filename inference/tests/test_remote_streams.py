"""Reading a server's events as they come, from servers that break off, drip, or never stream."""

import os
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference.interfaces import BackendUnavailable, MalformedAnswer
from inference.remote.client import JsonClient
from inference.remote.retry import RetryPolicy, ServerRefused
from inference.tests.stub_server import (
    Reply,
    Silence,
    Stream,
    event,
    stub_server,
)

KEY = "sk-never-to-be-seen-0123456789"
PATIENCE = RetryPolicy(attempts=3, timeout=5, first_wait=0.01, longest_wait=1)
HASTY = RetryPolicy(attempts=1, timeout=0.15, first_wait=0.01, longest_wait=1)


@pytest.fixture
def stub():
    with stub_server() as server:
        yield server


def stream(stub, *, patience=PATIENCE, deadline=float("inf"), **options):
    client = JsonClient(stub.url, api_key=KEY, **options)
    return client.stream(
        "/x", {"asked": "ü"}, last="END".__eq__, patience=patience, deadline=deadline
    )


def test_events_come_in_order_and_the_request_is_an_ordinary_one(stub):
    stub.first(Stream(event("a"), event("b")))
    assert list(stream(stub)) == ["a", "b"]
    request = stub.requests[0]
    assert (request.path, request.json) == ("/x", {"asked": "ü"})
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_a_connection_whose_stream_has_ended_is_kept_for_the_next(stub):
    stub.always(lambda _: Stream(event("a"), event("END")))
    client = JsonClient(stub.url)
    for _ in range(3):
        events = client.stream("/x", {}, last="END".__eq__, patience=PATIENCE)
        assert [next(events), next(events)] == ["a", "END"]
        events.close()
    assert len({request.port for request in stub.requests}) == 1


@pytest.mark.parametrize("after", ["cut", "silence", "pings"])
def test_after_the_last_event_a_stream_may_end_as_it_likes(stub, after):
    stub.first(Stream(event("a"), event("END"), after=after))
    events = stream(stub)
    assert [next(events), next(events)] == ["a", "END"]


def test_nothing_is_asked_before_the_first_event_is_wanted(stub):
    stream(stub)
    assert stub.requests == []


def test_an_event_is_there_before_the_next_one_is_made(stub):
    seen = threading.Event()
    stub.first(Stream(event("a"), seen, event("b")))
    events = stream(stub)
    assert next(events) == "a"
    seen.set()
    assert list(events) == ["b"]


def test_events_may_be_cut_anywhere_on_their_way(stub):
    whole = "data: grün 🌿\r\n\r\n: a ping\n\nevent: message\ndata: two\ndata: lines\n\n".encode()
    stub.first(Stream(*(whole[at : at + 1] for at in range(len(whole)))))
    assert list(stream(stub)) == ["grün 🌿", "two\nlines"]


def test_a_stream_without_events_ends_at_once(stub):
    stub.first(Stream())
    assert list(stream(stub)) == []


@pytest.mark.parametrize(
    "fault", [Reply({"error": "busy"}, 503), Reply({}, 429), Stream(after="cut")]
)
def test_what_fails_before_the_first_event_is_tried_again(stub, fault):
    stub.first(fault, Stream(event("a")))
    assert list(stream(stub)) == ["a"]
    assert len(stub.requests) == 2


def test_what_fails_after_the_first_event_is_not_tried_again(stub):
    stub.first(Stream(event("a"), after="cut"), Stream(event("a"), event("b")))
    events = stream(stub)
    assert next(events) == "a"
    with pytest.raises(BackendUnavailable, match="broke off"):
        next(events)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("after", ["silence", "pings"])
@pytest.mark.parametrize("parts", [(), (event("a"),)], ids=["at once", "after an event"])
def test_a_stream_ends_at_its_deadline_whatever_the_server_does(stub, parts, after):
    stub.first(Stream(*parts, after=after))
    with pytest.raises(BackendUnavailable, match=r"did not answer within 0\.\d s"):
        list(stream(stub, patience=HASTY))


def test_each_event_may_be_read_by_another_thread(stub):
    stub.first(Stream(event("a"), event("b"), after="silence"))
    events = stream(stub, patience=HASTY)
    for expected in ("a", "b"):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(next, events).result() == expected
    with ThreadPoolExecutor(1) as thread, pytest.raises(BackendUnavailable, match="did not answer"):
        thread.submit(next, events).result()


def test_a_server_that_keeps_failing_is_given_up(stub):
    stub.always(lambda _: Reply({"error": "overloaded"}, 500))
    with pytest.raises(BackendUnavailable, match=r"overloaded.*Tried 3 times"):
        next(stream(stub))


def test_a_lasting_refusal_is_not_tried_again(stub):
    stub.first(Reply({"error": "no such model"}, 404))
    with pytest.raises(ServerRefused, match="404: no such model"):
        next(stream(stub))
    assert len(stub.requests) == 1


def test_closing_it_hangs_up_on_the_server(stub):
    endless = Stream(event("a"), after="pings")
    stub.first(endless)
    events = stream(stub)
    next(events)
    events.close()
    assert endless.gone.wait(5)


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


def test_a_redirect_is_not_followed(stub):
    with stub_server() as thief:
        stub.first(Reply(b"", 307, {"Location": thief.url}))
        with pytest.raises(ServerRefused, match="redirects elsewhere"):
            next(stream(stub))
        assert thief.requests == []


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401),
        Reply(f"no stream but {KEY}".encode()),
        Reply(b"", 302, {"Location": f"http://127.0.0.1:9/{KEY}"}),
        Silence(),
        Stream(event("a"), after="cut"),
        Stream(event("a"), after="silence"),
    ],
)
def test_the_key_is_in_no_message_traceback_or_log(stub, reply, caplog):
    caplog.set_level("INFO")
    stub.first(reply)
    with pytest.raises((BackendUnavailable, MalformedAnswer)) as failed:
        list(stream(stub, patience=HASTY))
    told = "".join(traceback.format_exception(failed.value)) + repr(failed.value) + caplog.text
    assert KEY not in told


def test_streams_at_once_over_one_client_are_not_mixed(stub):
    together = threading.Barrier(16)

    def answer(payload):
        together.wait(10)
        return Stream(*(event(f"{payload['number']}-{at}") for at in range(50)))

    stub.always(answer)
    client = JsonClient(stub.url)

    def read(number):
        return list(client.stream("/x", {"number": number}, last="END".__eq__, patience=PATIENCE))

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(read, range(16)))
    assert answers == [[f"{number}-{at}" for at in range(50)] for number in range(16)]


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


def test_a_wait_beyond_the_deadline_fails_at_once(stub):
    stub.first(Reply({}, 503, {"Retry-After": "0.9"}))
    with pytest.raises(BackendUnavailable, match="asks to wait"):
        next(stream(stub, deadline=time.monotonic() + 0.5))

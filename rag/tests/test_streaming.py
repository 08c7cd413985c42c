"""Events of an answer on their way to a client: in order, whole, and not longer than it listens."""

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.test import RequestFactory

from common import sse
from common.errors import InvalidInput
from common.sse import ClientGone
from inference.cancellation import Cancelled
from inference.interfaces import AnswerRefused, BackendUnavailable
from rag import answer_stream
from rag.answer_stream import AnswerFailed, ServerStopping, collect_events, stream_response
from rag.errors import ModelFailed
from rag.events import Done, Event, Failed, Token
from tests.plugin import wait_until

DONE = Done(elapsed_ms=1.0)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_stream, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(
        answer_stream, "slots", sse.StreamSlots(2, refusal=answer_stream.TOO_MANY_ANSWERS)
    )
    monkeypatch.setattr(sse, "shutting_down", threading.Event())


class Listener:
    """A client's end of a connection, and the request that came over it."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.request = RequestFactory().post("/")
        self.request.META["gunicorn.socket"] = self.ours
        self.cancelled = threading.Event()

    def asks(self, events: Iterator[Event], **how: Any) -> Any:
        self.cancelled = threading.Event()
        return stream_response(events, request=self.request, cancelled=self.cancelled, **how)

    def gathers(self, events: Iterator[Event]) -> list[Event]:
        self.cancelled = threading.Event()
        return collect_events(events, request=self.request, cancelled=self.cancelled)

    def is_sent(self, answer: Any) -> None:
        """As the web server does."""
        for chunk in answer:
            self.ours.sendall(chunk)


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.ours.close()
    listener.theirs.close()


def parsed(chunks: Any) -> list[tuple[str, str, Any]]:
    """(name, id, data) of each event; comments are passed over."""
    found = []
    for block in b"".join(chunks).decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines())
        if "event" in fields:
            found.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return found


def until(flag: threading.Event) -> None:
    assert flag.wait(30)


def free_slots() -> int:
    slots = answer_stream.slots
    taken = 0
    try:
        while True:
            slots.take()
            taken += 1
    except sse.TooManyStreams:
        for _ in range(taken):
            slots.give_back()
    return taken


# --- what is told --------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [1, 256])
def test_events_come_whole_and_in_order_under_numbered_ids(
    listener: Listener, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_stream, "MAX_QUEUED_EVENTS", room)
    words = [f"word {number}\n\ndata: x" for number in range(300)]
    answer = listener.asks(iter([*map(Token, words), DONE]))
    told = parsed(answer)
    answer.close()
    assert [data["text"] for name, _, data in told if name == "token"] == words
    assert told[-1][0] == "done"
    stream_ids, numbers = zip(*(id.split("-") for _, id, _ in told), strict=True)
    assert len(set(stream_ids)) == 1
    assert list(map(int, numbers)) == list(range(1, 302))
    assert answer["Content-Type"] == "text/event-stream"
    assert answer["Cache-Control"] == "no-store"


def test_two_streams_have_ids_of_their_own(listener: Listener) -> None:
    ids = set()
    for _ in range(2):
        answer = listener.asks(iter([DONE]))
        ids |= {id for _, id, _ in parsed(answer)}
        answer.close()
    assert len(ids) == 2


def test_another_encoding_may_pass_events_over(listener: Listener) -> None:
    def encode(event: Event) -> bytes:
        return event.text.encode() if isinstance(event, Token) else b""

    answer = listener.asks(iter([Token("a"), DONE]), encode=encode)
    assert b"".join(answer).replace(sse.HEARTBEAT, b"") == b"a"
    answer.close()


def test_silence_is_filled_with_signs_of_life(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_stream, "HEARTBEAT_SECONDS", 0.0)
    heard = threading.Event()

    def events() -> Iterator[Event]:
        yield Token("a")
        until(heard)
        yield DONE

    chunks = iter(listener.asks(events()))
    next(chunks)
    assert next(chunks) == sse.HEARTBEAT
    heard.set()
    assert parsed(chunks)[-1][0] == "done"


# --- who works on it -----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_one_thread_makes_an_answer_to_its_end_and_gives_its_connection_back(
    listener: Listener,
) -> None:
    threads: list[threading.Thread] = []
    held: list[Any] = []

    def events() -> Iterator[Event]:
        try:
            threads.append(threading.current_thread())
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            held.append(connections["default"])
            yield Token("a")
            yield DONE
        finally:
            threads.append(threading.current_thread())
            connection.ensure_connection()

    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    answer = listener.asks(events())
    assert connection.connection is None  # of the thread that asks
    b"".join(answer)
    answer.close()
    assert threads[0] is threads[1] is not threading.current_thread()
    assert not threads[0].is_alive()
    assert held[0].connection is None


def test_a_client_that_goes_ends_the_work(listener: Listener) -> None:
    ended = threading.Event()

    def events() -> Iterator[Event]:
        try:
            yield Token("a")
            until(listener.cancelled)
            yield Token("nobody reads this")
        finally:
            ended.set()

    answer = listener.asks(events())
    chunks = iter(answer)
    next(chunks)
    listener.theirs.close()
    assert list(chunks) == []
    answer.close()
    assert ended.is_set()
    assert free_slots() == 2


def test_a_client_that_goes_before_the_first_word_ends_it_too(listener: Listener) -> None:
    def events() -> Iterator[Event]:
        until(listener.cancelled)
        yield Token("nobody reads this")

    listener.theirs.close()
    assert listener.asks(events()).status_code == 499
    assert free_slots() == 2


def test_an_answer_that_is_never_begun_to_be_sent_ends_too(listener: Listener) -> None:
    answer = listener.asks(iter([Token("a"), DONE]))
    answer.close()
    assert listener.cancelled.is_set()
    assert free_slots() == 2


def test_a_model_is_not_read_faster_than_the_client_takes_it(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_stream, "MAX_QUEUED_EVENTS", 5)
    made: list[int] = []

    def events() -> Iterator[Event]:
        for number in range(1000):
            made.append(number)
            yield Token(str(number))

    answer = listener.asks(events())
    wait_until(lambda: len(made) >= 5, what="there is no room for more")
    assert len(made) < 20
    answer.close()
    assert len(made) < 20


def test_a_client_that_reads_nothing_is_left(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_stream, "STALLED_SECONDS", 0.05)
    ended = threading.Event()

    def events() -> Iterator[Event]:
        try:
            while True:
                yield Token("x" * 1000)
        finally:
            ended.set()

    answer = listener.asks(events())
    with pytest.raises(BrokenPipeError):
        listener.is_sent(answer)
    answer.close()
    until(ended)
    assert free_slots() == 2


def test_one_that_stops_reading_after_the_last_word_is_left_too(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_stream, "STALLED_SECONDS", 0.05)
    answer = listener.asks(iter([Token("x" * 10_000_000), DONE]))
    with pytest.raises(BrokenPipeError):
        listener.is_sent(answer)
    answer.close()


def test_a_process_that_is_to_end_says_so_and_ends_its_streams(listener: Listener) -> None:
    def events() -> Iterator[Event]:
        yield Token("a")
        until(listener.cancelled)
        raise Cancelled

    answer = listener.asks(events())
    chunks = iter(answer)
    next(chunks)
    sse.shutting_down.set()
    ((name, _, data),) = parsed(chunks)
    assert (name, data["code"]) == ("error", "server_stopping")
    answer.close()
    with pytest.raises(ServerStopping):
        listener.asks(iter([DONE]))
    assert free_slots() == 2


# --- what goes wrong -----------------------------------------------------------------------------


def failing(error: Exception, *before: Event) -> Iterator[Event]:
    yield from before
    raise error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BackendUnavailable("http://model is away: start it."), "model_unavailable"),
        (AnswerRefused("the model declines: ask otherwise."), "model_refused"),
        (InvalidInput("no such thing"), "invalid"),
        (ZeroDivisionError("secret of ours"), "internal_error"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_goes_wrong_midway_is_the_last_event(
    listener: Listener, error: Exception, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = listener.asks(failing(error, Token("a")))
    told = parsed(answer)
    answer.close()
    assert [name for name, _, _ in told] == ["token", "error"]
    assert told[-1][2]["code"] == code
    assert "secret" not in told[-1][2]["detail"]
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert bool(logged) == (code == "internal_error")


def test_what_goes_wrong_before_the_first_event_is_an_error_of_the_request(
    listener: Listener,
) -> None:
    raised: list[tuple[Exception, type[Exception]]] = [
        (InvalidInput("no such thing"), InvalidInput),
        (BackendUnavailable("away"), ModelFailed),
        (OperationalError("the server closed the connection"), AnswerFailed),
        (ZeroDivisionError("a bug"), ZeroDivisionError),
    ]
    asks: list[Callable[[Iterator[Event]], Any]] = [listener.asks, listener.gathers]
    for error, expected in raised:
        for ask in asks:
            with pytest.raises(expected):
                ask(failing(error))
    with pytest.raises(RuntimeError, match="without a single event"):
        listener.asks(iter([]))
    assert free_slots() == 2


def test_an_answer_that_fails_at_once_has_the_status_of_its_failure(listener: Listener) -> None:
    failed = Failed("model_unavailable", "It is away.", 503)
    for ask in (listener.asks, listener.gathers):
        with pytest.raises(AnswerFailed, match="It is away") as caught:
            ask(iter([failed]))
        assert (caught.value.code, caught.value.status) == ("model_unavailable", 503)
        assert caught.value.retry_after
    assert free_slots() == 2


def test_more_answers_than_may_be_made_at_once_are_refused(listener: Listener) -> None:
    held = [listener.asks(iter([DONE])) for _ in range(2)]
    for ask in (listener.asks, listener.gathers):
        with pytest.raises(sse.TooManyStreams, match="Ask again") as refused:
            ask(iter([DONE]))
        assert refused.value.retry_after
    for answer in held:
        answer.close()
    listener.asks(iter([DONE])).close()


# --- whole answers -------------------------------------------------------------------------------


def test_a_whole_answer_is_all_of_its_events(listener: Listener) -> None:
    events = [Token("a"), Token("b"), DONE]
    assert listener.gathers(iter(events)) == events


def test_a_whole_answer_that_fails_midway_is_an_error(listener: Listener) -> None:
    with pytest.raises(AnswerFailed, match="no more"):
        listener.gathers(iter([Token("a"), Failed("model_empty", "no more", 502)]))


def test_a_client_that_does_not_wait_for_a_whole_answer_ends_the_work(listener: Listener) -> None:
    def events() -> Iterator[Event]:
        yield Token("a")
        listener.theirs.close()
        until(listener.cancelled)

    with pytest.raises(ClientGone):
        listener.gathers(events())
    assert free_slots() == 2

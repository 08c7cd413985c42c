"""Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

import json
from collections.abc import Iterable, Iterator
from threading import BoundedSemaphore, Event
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse

from common.errors import RagsiteError

#: Set when the process is asked to end: streams end at once instead of holding it up.
closing = Event()


RUNS_FOLLOWED = (
    "Too many pages follow their run live just now. Ask the run itself for its progress, or try"
    " again in a moment."
)


class TooManyStreams(RagsiteError):
    """As many streams are open as this process may hold."""

    code = "too_many_streams"
    status = 503
    retry_after = 15


class Slots:
    """How many streams a process may hold: each takes a thread from those that answer pages."""

    def __init__(self, number: int, *, refusal: str = RUNS_FOLLOWED) -> None:
        self._free = BoundedSemaphore(number) if number else None
        self._refusal = refusal

    def take(self) -> None:
        """Raise TooManyStreams where none is free."""
        if self._free is None or not self._free.acquire(blocking=False):
            raise TooManyStreams(self._refusal)

    def give_back(self) -> None:
        """Let the next one in."""
        if self._free is not None:
            self._free.release()


slots = Slots(settings.EVENT_STREAMS)


class Stream:
    """Events on their way to one client, who holds a slot until it is closed."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._slots = slots
        self._slots.take()
        self._events = events
        self._is_open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._events)

    def close(self) -> None:
        """Called by the server when the client has gone, or everything was sent."""
        if self._is_open:
            self._is_open = False
            self._slots.give_back()


def stream(events: Iterator[bytes]) -> StreamingHttpResponse:
    """Answer with events as they come. Raises TooManyStreams."""
    return response(Stream(events))


def response(chunks: Iterable[bytes]) -> StreamingHttpResponse:
    """Events as an answer; `chunks.close()` is called at its end, however it comes."""
    return StreamingHttpResponse(
        chunks,
        content_type="text/event-stream",
        # the latter for a proxy, which would wait for the end
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def event(name: str, data: Any, *, id: str = "") -> bytes:
    """One event, with its data as JSON."""
    lines = [f"event: {name}", *([f"id: {id}"] if id else []), f"data: {json.dumps(data)}"]
    return ("\n".join(lines) + "\n\n").encode()


def retry(milliseconds: int) -> bytes:
    """How long the client is to wait before it connects again."""
    return f"retry: {milliseconds}\n\n".encode()


#: Shows a client that the connection lives, and this process when the client does not.
HEARTBEAT = b": still here\n\n"

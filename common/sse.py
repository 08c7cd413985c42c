"""Server-sent events and the client's connection.
https://html.spec.whatwg.org/multipage/server-sent-events.html. Begin with `stream_response`.
"""

import json
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from threading import BoundedSemaphore, Event
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse

from common.errors import RagsiteError

#: The status for a client that did not wait for it, as in nginx's log.
CLIENT_CLOSED_REQUEST = 499


class ClientGone(Exception):
    """The client closed the connection."""


class ClientConnection:
    """The connection of a request, where the web server exposes it (gunicorn does).

    A half-closed connection counts as closed, as proxies treat it.
    """

    def __init__(self, environment: Mapping[str, Any]) -> None:
        """`environment` is WSGI's, a request's `META`."""
        shown = environment.get("gunicorn.socket")
        # A TLS connection of gunicorn can only be tested by writing.
        self._socket: socket.socket | None = None if isinstance(shown, ssl.SSLSocket) else shown

    def is_gone(self) -> bool:
        """Whether the client has closed the connection; False where that is unknown."""
        if self._socket is None:
            return False
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def hang_up(self) -> None:
        """Close the connection, which also ends a blocked write."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


#: Set when the process is to stop: open streams end at once.
shutting_down = Event()


TOO_MANY_STREAMS = (
    "Too many pages follow their run live just now. Ask the run itself for its progress, or try"
    " again in a moment."
)


class TooManyStreams(RagsiteError):
    """This process has as many streams open as it may."""

    code = "too_many_streams"
    status = 503
    retry_after = 15


class StreamSlots:
    """Limit of open streams in this process: each takes a thread."""

    def __init__(self, number: int, *, refusal: str = TOO_MANY_STREAMS) -> None:
        self._free = BoundedSemaphore(number) if number else None
        self._refusal = refusal

    def take(self) -> None:
        """Raise TooManyStreams where no slot is free."""
        if self._free is None or not self._free.acquire(blocking=False):
            raise TooManyStreams(self._refusal)

    def give_back(self) -> None:
        if self._free is not None:
            self._free.release()


stream_slots = StreamSlots(settings.EVENT_STREAMS)


class EventStream:
    """Events for one client; holds a slot until it is closed."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._slots = stream_slots
        self._slots.take()
        self._events = events
        self._is_open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._events)

    def close(self) -> None:
        """Called by the server when the client has disconnected or everything was sent."""
        if self._is_open:
            self._is_open = False
            self._slots.give_back()


def stream_response(events: Iterator[bytes]) -> StreamingHttpResponse:
    """A streaming response of the events. Raises TooManyStreams."""
    return event_response(EventStream(events))


def event_response(chunks: Iterable[bytes]) -> StreamingHttpResponse:
    """A streaming response; `chunks.close()` is called at its end."""
    return StreamingHttpResponse(
        chunks,
        content_type="text/event-stream",
        # the latter for a proxy, which would wait for the end
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def format_event(name: str, data: Any, *, id: str = "") -> bytes:
    """One event with `data` as JSON, all in ASCII: some clients end lines at U+0085 and U+2028."""
    lines = [*([f"event: {name}"] if name else []), *([f"id: {id}"] if id else [])]
    return ("\n".join([*lines, f"data: {json.dumps(data)}"]) + "\n\n").encode()


def format_retry(milliseconds: int) -> bytes:
    """The reconnection delay for the client."""
    return f"retry: {milliseconds}\n\n".encode()


#: Shows a client that the connection lives, and this process when the client does not.
HEARTBEAT = b": still here\n\n"

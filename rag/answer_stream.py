"""An answer on its way to the client: made in a thread of its own (`AnswerThread`), sent as
server-sent events or as one object. Begin with `answer_response`.
"""

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix, set_script_prefix
from django.utils.translation import gettext
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ApiKey
from accounts.services import rights_of
from common import sse
from common.errors import RagsiteError
from common.sql import release_connection
from common.sse import CLIENT_CLOSED_REQUEST, ClientConnection, ClientGone
from inference.cancellation import Cancelled, cancellation
from inference.interfaces import InferenceError
from rag.errors import ModelFailed, failure_event
from rag.events import Event, Failed, without_withdrawn

logger = logging.getLogger(__name__)

#: Interval in seconds at which a waiting thread checks whether to go on.
POLL_SECONDS = 0.5
#: Seconds of silence after which a heartbeat is sent.
HEARTBEAT_SECONDS = 5.0
#: Seconds after which a client that reads nothing is disconnected.
STALLED_SECONDS = 60.0
#: Seconds to wait for a cancelled answer to end. Model calls are abandoned within half a second.
JOIN_SECONDS = 5.0
#: Interval in seconds at which it is looked whether who asks may still see what they did.
RIGHTS_SECONDS = 1.0
#: Events that may wait for a client; beyond that the model's stream is not read.
MAX_QUEUED_EVENTS = 256

TOO_MANY_ANSWERS = "Too many answers are being made just now. Ask again in a moment."
slots = sse.StreamSlots(settings.CHAT_STREAMS, refusal=TOO_MANY_ANSWERS)


class ServerStopping(RagsiteError):
    """This process is shutting down."""

    code = "server_stopping"
    status = 503
    retry_after = 5

    def __init__(self) -> None:
        super().__init__("The server is being restarted. Ask again in a moment.")


class RightsLost(RagsiteError):
    """Who asks has left the workspace or a group, or the API key was revoked, meanwhile."""

    code = "rights_lost"
    status = 403

    def __init__(self) -> None:
        super().__init__(gettext("Your access has changed, so the answer ends here. Ask again."))


class AnswerThread:
    """The events of one answer, consumed from their iterator in a thread of its own. Iterating
    returns what has arrived since the last time, in order; an empty list after HEARTBEAT_SECONDS of
    silence. It raises what the iterator raises, ClientGone and ServerStopping, and RightsLost where
    `rights()` lose any. `close()` must be called; it sets `cancelled`, which ends the work."""

    def __init__(
        self,
        events: Iterator[Event],
        *,
        cancelled: Flag,
        client: ClientConnection,
        rights: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """Take a slot, or raise TooManyStreams."""
        slots.take()
        self._events = events
        self._cancelled = cancelled
        self._client = client
        self._rights = rights
        self._waiting: SimpleQueue[Event | None] = SimpleQueue()  # None marks the end
        self._error: BaseException | None = None
        self._is_over = False
        self._sending_since: float | None = (
            None  # start of the current write to the client, else None
        )
        self._closed = Flag()
        self._prefix = get_script_prefix()  # of URLs; Django stores it per thread
        # In the context variables of the request: its user, and its row-level security.
        work = copy_context().run
        self._thread = Thread(target=work, args=(self._run,), name="answer", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be started
            slots.give_back()
            raise

    def __iter__(self) -> Iterator[list[Event]]:
        return self

    def __next__(self) -> list[Event]:
        self._sending_since = None
        if self._is_over:
            raise StopIteration
        came = self._next_events()
        self._sending_since = monotonic()
        return came

    def close(self) -> None:
        """Stop the work, wait for its end, and release the slot."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._cancelled.set()
        self._thread.join(JOIN_SECONDS)
        if self._thread.is_alive():
            logger.warning("an answer goes on for a while although nobody waits for it")
        slots.give_back()

    # --- the thread of the request ---

    def _next_events(self) -> list[Event]:
        silent_since = monotonic()
        while not sse.shutting_down.is_set():
            try:
                came = [self._waiting.get(timeout=POLL_SECONDS)]
            except Empty:
                if self._client.is_gone():
                    raise ClientGone from None
                if monotonic() - silent_since >= HEARTBEAT_SECONDS:
                    return []
                continue
            with suppress(Empty):
                while came[-1] is not None:
                    came.append(self._waiting.get_nowait())
            # Remove the end marker; after the last events an error is raised if there was one.
            events = [event for event in came if event is not None]
            self._is_over = len(events) < len(came)
            if self._is_over and self._error is not None:
                if not events:
                    raise self._error
                self._is_over = False
                self._waiting.put(None)
            if self._is_over and not events:
                raise StopIteration
            return events
        raise ServerStopping

    # --- the thread of the answer ---

    def _run(self) -> None:
        set_script_prefix(self._prefix)
        try:
            with cancellation(self._cancelled):
                try:
                    rights, checked_at = self._rights(), monotonic()
                    for event in self._events:
                        if monotonic() - checked_at > RIGHTS_SECONDS:
                            if not rights <= self._rights():
                                raise RightsLost
                            release_connection()
                            checked_at = monotonic()
                        while (
                            self._waiting.qsize() >= MAX_QUEUED_EVENTS
                            and not self._cancelled.is_set()
                        ):
                            self._hang_up_if_stalled()
                            self._closed.wait(POLL_SECONDS / 10)
                        if self._cancelled.is_set():
                            raise Cancelled
                        self._waiting.put(event)
                finally:
                    # Close it in this thread, whose database connection its `finally` blocks use.
                    if close := getattr(self._events, "close", None):
                        close()
        except BaseException as error:
            self._error = error
        try:
            release_connection()
        finally:
            self._waiting.put(None)
        while not self._closed.wait(POLL_SECONDS):
            self._hang_up_if_stalled()

    def _hang_up_if_stalled(self) -> None:
        """Close the connection of a client that does not read."""
        since = self._sending_since
        if since is not None and monotonic() - since > STALLED_SECONDS:
            self._cancelled.set()
            self._client.hang_up()


Encode = Callable[[Event], bytes]


class AnswerFailed(RagsiteError):
    """An answer that failed before any of it was sent, with the HTTP status of its error, and what
    was tried, if it is of use."""

    def __init__(self, event: Failed) -> None:
        super().__init__("\n\n".join(filter(None, [event.detail, event.attempt])))
        self.code, self.status = event.code, event.status
        self.retry_after = 15 if event.status == 503 else None


class _EventStream:
    """An answer as chunks of an event stream. It waits for the first event before the response
    begins, so that an early failure has its own HTTP status."""

    def __init__(self, answering: AnswerThread, encode: Encode, heartbeat: bytes) -> None:
        self._answering = answering
        self._encode = encode
        self._heartbeat = heartbeat
        self._first: list[Event] | None = first_events(answering)
        self._has_failed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._has_failed:
            raise StopIteration
        if self._first is not None:
            release_connection()  # the connection used for authentication
            came, self._first = self._first, None
            return self._encoded(came)
        try:
            return self._encoded(next(self._answering))
        except (ClientGone, Cancelled):
            raise StopIteration from None
        except StopIteration:
            raise
        except Exception as error:
            self._has_failed = True
            return self._encode(failure_event(error))

    def close(self) -> None:
        """Called by the server when the client has gone or everything was sent."""
        self._answering.close()

    def _encoded(self, events: list[Event]) -> bytes:
        # An empty chunk would end the response.
        return b"".join(map(self._encode, events)) or self._heartbeat


def stream_response(
    events: Iterator[Event],
    *,
    request: HttpRequest | Request,
    cancelled: Flag,
    encode: Encode | None = None,
    heartbeat: bytes = sse.HEARTBEAT,
) -> HttpResponseBase:
    """Respond with the events of an answer as they come, each written by `encode`. `cancelled` is
    the flag of the context that `events` use: it is set when the client goes, stops reading, or the
    process shuts down. `encode` gets every event, Done or Failed last, and may return nothing for
    one; then, and in times of silence, `heartbeat` is sent. Raises TooManyStreams, and errors
    before the first event."""
    answering = start_answer(events, request=request, cancelled=cancelled)
    try:
        return sse.event_response(_EventStream(answering, encode or sse_encoder(), heartbeat))
    except ClientGone:
        answering.close()
        return HttpResponse(status=CLIENT_CLOSED_REQUEST)
    except BaseException:
        answering.close()
        raise


def collect_events(
    events: Iterator[Event], *, request: HttpRequest | Request, cancelled: Flag
) -> list[Event]:
    """All events of an answer but withdrawn ones, for a client that does not stream. Takes a slot
    as a stream does. Raises AnswerFailed, TooManyStreams, ClientGone, and errors before the first
    event."""
    answering = start_answer(events, request=request, cancelled=cancelled)
    try:
        collected = first_events(answering)
        for came in answering:
            collected += came
    except Cancelled as error:
        raise ClientGone from error
    finally:
        answering.close()
    if isinstance(collected[-1], Failed):
        raise AnswerFailed(collected[-1])
    return without_withdrawn(collected)


def answer_response(
    events: Iterator[Event],
    *,
    request: HttpRequest | Request,
    cancelled: Flag,
    streams: bool,
    make_body: Callable[[list[Event]], Any],
    encode: Encode | None = None,
    heartbeat: bytes = sse.HEARTBEAT,
) -> HttpResponseBase:
    """Respond with a stream, or else with what `make_body` makes of all events. Raises as
    `stream_response` and `collect_events` do, except ClientGone."""
    if streams:
        return stream_response(
            events, request=request, cancelled=cancelled, encode=encode, heartbeat=heartbeat
        )
    try:
        collected = collect_events(events, request=request, cancelled=cancelled)
    except ClientGone:
        return HttpResponse(status=CLIENT_CLOSED_REQUEST)
    return Response(make_body(collected))


def start_answer(
    events: Iterator[Event], *, request: HttpRequest | Request, cancelled: Flag
) -> AnswerThread:
    """Start consuming `events`; releases this thread's database connection."""
    release_connection()
    user, auth = getattr(request, "user", None), getattr(request, "auth", None)
    key = auth if isinstance(auth, ApiKey) else None
    return AnswerThread(
        events,
        cancelled=cancelled,
        client=ClientConnection(request.META),
        rights=frozenset if user is None else partial(rights_of, user, key=key),
    )


def first_events(answering: AnswerThread) -> list[Event]:
    """Wait for the first events. Raises RagsiteError for failures before them."""
    came: list[Event] = []
    try:
        while not came:
            came = next(answering)
    except StopIteration:
        raise RuntimeError("an answer without a single event") from None
    except Cancelled as error:
        raise ClientGone from error
    except InferenceError as error:
        raise ModelFailed(error) from error
    except DatabaseError as error:
        raise AnswerFailed(failure_event(error)) from error
    if isinstance(came[0], Failed):
        raise AnswerFailed(came[0])
    return came


def sse_encoder() -> Encode:
    """Encode as server-sent events whose ids are a stream name, a hyphen and a number from 1."""
    name, numbers = secrets.token_hex(4), count(1)
    return lambda event: sse.format_event(event.name, event.data(), id=f"{name}-{next(numbers)}")

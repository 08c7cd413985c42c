"""An answer made in a thread of its own, as long as somebody waits for it."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread
from time import monotonic

from django.conf import settings
from django.urls import get_script_prefix, set_script_prefix

from common import events as sse
from common.clients import Client
from common.connections import give_back
from common.errors import RagsiteError
from inference.cancelling import Cancelled, cancellation
from rag.events import Event

logger = logging.getLogger(__name__)

#: How often a thread that waits looks whether there is still a reason to, in seconds.
LOOK_SECONDS = 0.5
#: Silence after which a client is shown that the connection lives.
HEARTBEAT_SECONDS = 5.0
#: A client that takes nothing for so long does not keep a model and two threads any longer.
STALLED_SECONDS = 60.0
#: How long the end of a cancelled answer is waited for. Models are left within half a second.
END_SECONDS = 5.0
#: Events that may wait for a client; the model is not read any further while they do.
ROOM = 256

REFUSAL = "Too many answers are being made just now. Ask again in a moment."
slots = sse.Slots(settings.CHAT_STREAMS, refusal=REFUSAL)


class ClientGone(Exception):
    """Nobody is there to be told."""


class ServerStopping(RagsiteError):
    """This process was told to end."""

    code = "server_stopping"
    status = 503
    retry_after = 5

    def __init__(self) -> None:
        super().__init__("The server is being restarted. Ask again in a moment.")


class Answering:
    """Events of one answer as they come, drawn from their iterator by a thread of its own.

    Iterating gives what has come since the last time, in order; nothing after HEARTBEAT_SECONDS of
    silence. It raises what the iterator raises, ClientGone and ServerStopping. `close()` ends the
    work, which `cancelled` tells, and must be called.
    """

    def __init__(self, events: Iterator[Event], *, cancelled: Flag, client: Client) -> None:
        """Takes a slot, or raises TooManyStreams."""
        slots.take()
        self._events = events
        self._cancelled = cancelled
        self._client = client
        self._waiting: SimpleQueue[Event | None] = SimpleQueue()  # None is the end
        self._error: BaseException | None = None
        self._is_over = False
        self._told_at: float | None = None  # while the client is sent something, since when
        self._closed = Flag()
        self._prefix = get_script_prefix()  # of addresses; Django keeps it for each thread
        # In the context of the request: whose it is, and what the database shows to it.
        work = copy_context().run
        self._thread = Thread(target=work, args=(self._make,), name="answer", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no more threads
            slots.give_back()
            raise

    def __iter__(self) -> Iterator[list[Event]]:
        return self

    def __next__(self) -> list[Event]:
        self._told_at = None
        if self._is_over:
            raise StopIteration
        came = self._next_events()
        self._told_at = monotonic()
        return came

    def close(self) -> None:
        """Stop the work, wait for its end, and let the next one in."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._cancelled.set()
        self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            logger.warning("an answer goes on for a while although nobody waits for it")
        slots.give_back()

    # --- the thread of the request ---

    def _next_events(self) -> list[Event]:
        silent_since = monotonic()
        while not sse.closing.is_set():
            try:
                came = [self._waiting.get(timeout=LOOK_SECONDS)]
            except Empty:
                if self._client.is_gone():
                    raise ClientGone from None
                if monotonic() - silent_since >= HEARTBEAT_SECONDS:
                    return []
                continue
            with suppress(Empty):
                while came[-1] is not None:
                    came.append(self._waiting.get_nowait())
            return self._settled(came)
        raise ServerStopping

    def _settled(self, came: list[Event | None]) -> list[Event]:
        """Without the mark of the end; after the last events comes what went wrong, if it did."""
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

    # --- the thread of the answer ---

    def _make(self) -> None:
        set_script_prefix(self._prefix)
        try:
            with cancellation(self._cancelled):
                self._draw()
        except BaseException as error:
            self._error = error
        try:
            give_back()
        finally:
            self._waiting.put(None)
        while not self._closed.wait(LOOK_SECONDS):
            self._watch()

    def _draw(self) -> None:
        try:
            for event in self._events:
                while self._waiting.qsize() >= ROOM and not self._cancelled.is_set():
                    self._watch()
                    self._closed.wait(LOOK_SECONDS / 10)
                if self._cancelled.is_set():
                    raise Cancelled
                self._waiting.put(event)
        finally:
            # In this thread, which has the database connection that its `finally` blocks use.
            if close := getattr(self._events, "close", None):
                close()

    def _watch(self) -> None:
        """Hang up on a client that reads nothing of what it is sent."""
        since = self._told_at
        if since is not None and monotonic() - since > STALLED_SECONDS:
            self._cancelled.set()
            self._client.hang_up()

"""Cancellation of requests to model servers: from another thread, before the answer or the
timeout.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from typing import TypeVar

from inference.interfaces import InferenceError

T = TypeVar("T")
POLL_SECONDS = 0.2  # seconds after which a thread that waits looks at its events again

_events: ContextVar[tuple[Event, ...]] = ContextVar("cancelling", default=())


class Cancelled(InferenceError):
    """The answer is no longer wanted."""

    def __init__(self) -> None:
        super().__init__("cancelled: ask again if the answer is still wanted.")


@contextmanager
def cancellation(event: Event) -> Iterator[None]:
    """Within the block, requests of this thread to model servers, and the waits between their
    tries, end with Cancelled within half a second after `event` is set, and their connections are
    closed.

    Blocks may be nested: each event counts. The block belongs to the thread: no `yield` in it.
    """
    token = _events.set((*_events.get(), event))
    try:
        yield
    finally:
        _events.reset(token)


def check_cancelled() -> None:
    """Raise Cancelled where an event of this thread is set."""
    if any(event.is_set() for event in _events.get()):
        raise Cancelled


def is_cancellable() -> bool:
    """Whether this thread is within a `cancellation` block."""
    return bool(_events.get())


def pause(seconds: float, *, until: Event) -> None:
    """Wait for `seconds` or until `until` is set. Raises Cancelled."""
    end = time.monotonic() + seconds
    check_cancelled()
    while (left := end - time.monotonic()) > 0:
        if until.wait(min(left, POLL_SECONDS) if is_cancellable() else left):
            return
        check_cancelled()


def run_cancellable(work: Callable[[], T], *, abandon: Callable[[Future[T]], None]) -> T:
    """The result of `work`, which blocks in the operating system and cannot be interrupted.

    Where this thread may be cancelled, another thread runs it. On Cancelled that thread is
    abandoned, and `abandon` is called with its future when it is done.
    """
    check_cancelled()
    if not is_cancellable():
        return work()
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # whatever it is, it belongs to who waits
            future.set_exception(error)

    Thread(target=run, name="beside", daemon=True).start()
    while not wait([future], POLL_SECONDS).done:
        try:
            check_cancelled()
        except Cancelled:
            future.add_done_callback(abandon)
            raise
    return future.result()

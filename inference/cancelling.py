"""Ending what a thread asks of model servers, before the answer is there or the time is up."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from typing import TypeVar

from inference.base import InferenceError

T = TypeVar("T")
SLICE = 0.2  # seconds after which a thread that waits looks at its events again

_events: ContextVar[tuple[Event, ...]] = ContextVar("cancelling", default=())


class Cancelled(InferenceError):
    """Nobody waits for the answer any more."""

    def __init__(self) -> None:
        super().__init__("cancelled: ask again if the answer is still wanted.")


@contextmanager
def cancellation(event: Event) -> Iterator[None]:
    """Within it, requests of this thread to model servers, and the waits between their tries, end
    with Cancelled within half a second after `event` is set, and their connections are closed.

    Blocks may be nested: each event counts. The block belongs to the thread: no `yield` in it.
    """
    token = _events.set((*_events.get(), event))
    try:
        yield
    finally:
        _events.reset(token)


def check() -> None:
    """Raises Cancelled where an event of this thread is set."""
    if any(event.is_set() for event in _events.get()):
        raise Cancelled


def cancellable() -> bool:
    """Whether this thread is within a `cancellation`."""
    return bool(_events.get())


def pause(seconds: float, *, until: Event) -> None:
    """Wait for `seconds` or `until` is set. Raises Cancelled."""
    end = time.monotonic() + seconds
    check()
    while (left := end - time.monotonic()) > 0:
        if until.wait(min(left, SLICE) if cancellable() else left):
            return
        check()


def beside(work: Callable[[], T], *, abandon: Callable[[Future[T]], None]) -> T:
    """What `work` gives, which blocks in the operating system and cannot be told to stop.

    Where this thread may be cancelled, another does it. On Cancelled that one is left to itself,
    and `abandon` is called with its future when it is done.
    """
    check()
    if not cancellable():
        return work()
    future: Future[T] = Future()
    Thread(target=_fulfil, args=(future, work), name="beside", daemon=True).start()
    while not wait([future], SLICE).done:
        try:
            check()
        except Cancelled:
            future.add_done_callback(abandon)
            raise
    return future.result()


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # whatever it is, it belongs to who waits
        future.set_exception(error)

"""Work that blocks, done in threads beside an event loop."""

from collections.abc import Callable
from threading import Event
from typing import TypeVar

from anyio import CapacityLimiter, get_cancelled_exc_class, to_thread
from anyio.lowlevel import RunVar

from common.connections import give_back
from inference.cancelling import cancellation

T = TypeVar("T")


class Lane:
    """Lets `at_a_time` pieces of work of an event loop run; further ones wait."""

    def __init__(self, name: str, *, at_a_time: int) -> None:
        self.at_a_time = at_a_time
        self._limiter: RunVar[CapacityLimiter] = RunVar(name)

    async def run(self, work: Callable[[Event], T]) -> T:
        """What `work(cancelled)` gives. Its database connection is given back at the end.

        Where the task is cancelled this returns at once and the event is set: the work ends when it
        next looks, or within half a second where it waits for a model.
        """
        cancelled = Event()

        def run() -> T:
            try:
                with cancellation(cancelled):
                    return work(cancelled)
            finally:
                give_back()

        try:
            return await to_thread.run_sync(run, abandon_on_cancel=True, limiter=self._shared())
        except get_cancelled_exc_class():
            cancelled.set()
            raise

    def _shared(self) -> CapacityLimiter:
        """A limiter belongs to one event loop."""
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(self.at_a_time)
            self._limiter.set(limiter)
        return limiter

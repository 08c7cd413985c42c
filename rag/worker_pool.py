"""Run blocking work in threads from an event loop."""

from collections.abc import Callable
from threading import Event
from typing import TypeVar

from anyio import CapacityLimiter, get_cancelled_exc_class, to_thread
from anyio.lowlevel import RunVar

from common.sql import release_connection
from inference.cancellation import cancellation

T = TypeVar("T")


class WorkerPool:
    """At most `max_workers` calls of an event loop run at once; further ones wait."""

    def __init__(self, name: str, *, max_workers: int) -> None:
        self.max_workers = max_workers
        self._limiter: RunVar[CapacityLimiter] = RunVar(name)

    async def run(self, work: Callable[[Event], T]) -> T:
        """The result of `work(cancelled)`, run in a thread whose database connection is released at
        the end. If the task is cancelled this returns at once and sets the event: the work ends
        when it next checks, or within half a second if it waits for a model."""
        cancelled = Event()

        def run() -> T:
            try:
                with cancellation(cancelled):
                    return work(cancelled)
            finally:
                release_connection()

        try:
            # The limiter of the current event loop; each loop needs its own.
            loop_limiter = self._limiter.get(None)
            if loop_limiter is None:
                loop_limiter = CapacityLimiter(self.max_workers)
                self._limiter.set(loop_limiter)
            return await to_thread.run_sync(run, abandon_on_cancel=True, limiter=loop_limiter)
        except get_cancelled_exc_class():
            cancelled.set()
            raise

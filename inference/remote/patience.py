"""How often a server is asked again, and how long that may take."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import NoReturn, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    wait_exponential_jitter,
)

from inference.base import BackendUnavailable
from inference.cancelling import pause
from inference.remote.errors import PassingFailure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """`attempts` requests of at most `timeout` seconds; between them a wait of about `first_wait`
    seconds, doubled each time, or what the server asks for, up to `longest_wait`."""

    attempts: int
    timeout: float
    first_wait: float
    longest_wait: float

    def keep_trying(
        self,
        attempt: Callable[[float], T],
        *,
        deadline: float = inf,
        cancelled: threading.Event | None = None,
    ) -> T:
        """What `attempt` gives; it is called with the `time.monotonic()` at which it must end.

        Tries again after a PassingFailure, never after anything else, and raises
        BackendUnavailable as soon as the next try would come too late. `deadline` is another such
        time, for all tries and waits together; setting `cancelled` ends the waits. Raises
        Cancelled within a `cancellation` that came.
        """
        cancelled = cancelled or threading.Event()
        retrying = Retrying(
            retry=retry_if_exception_type(PassingFailure),
            wait=self._wait,
            stop=lambda state: (
                state.attempt_number >= self.attempts
                or cancelled.is_set()
                or self._waits_too_long(state, deadline)
            ),
            sleep=lambda seconds: pause(seconds, until=cancelled),
            retry_error_callback=lambda state: self._give_up(state, deadline),
        )
        return retrying(lambda: attempt(min(deadline, time.monotonic() + self.timeout)))

    def _wait(self, state: RetryCallState) -> float:
        backoff = wait_exponential_jitter(
            multiplier=self.first_wait, max=self.longest_wait, jitter=self.first_wait
        )
        return max(backoff(state), _failure(state).retry_after or 0.0)

    def _waits_too_long(self, state: RetryCallState, deadline: float) -> bool:
        wait = state.upcoming_sleep
        return wait > self.longest_wait or time.monotonic() + wait >= deadline

    def _give_up(self, state: RetryCallState, deadline: float) -> NoReturn:
        failure, tries = _failure(state), state.attempt_number
        reason = f" Tried {tries} times." if tries > 1 else ""
        if failure.retry_after and self._waits_too_long(state, deadline):
            reason += f" It asks to wait {failure.retry_after:.0f} s, longer than is allowed here."
        raise BackendUnavailable(f"{failure}{reason}") from failure


def _failure(state: RetryCallState) -> PassingFailure:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, PassingFailure):
        raise TypeError(f"retried after {error!r}")
    return error

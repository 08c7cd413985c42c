"""Looking at all probes at once, within a bounded time, and not again while that is fresh."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Lock, Thread
from time import monotonic
from typing import Literal

from common.logs.redaction import clean
from ragsite.health.registry import Outcome, Probe

logger = logging.getLogger("ragsite.health")

State = Literal["ok", "degraded", "unready"]

#: No look takes longer; what has not answered by then counts as broken.
LONGEST_SECONDS = 2.0
#: So long an outcome is told again, whoever asks however often.
FRESH_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes by name, and what they come to."""

    state: State
    outcomes: dict[str, Outcome]

    @property
    def is_ready(self) -> bool:
        """Whether requests should be sent here."""
        return self.state != "unready"


class Watch:
    """Looks at the probes that `listed` gives. For all threads of a process."""

    def __init__(self, listed: Callable[[], Sequence[Probe]]) -> None:
        self._listed = listed
        self._looking = Lock()
        self._running: dict[str, Future[Outcome]] = {}
        self._last: tuple[float, Report] | None = None

    def report(self) -> Report:
        """A report of the last two seconds. Who asks while one is made waits for that one."""
        with self._looking:
            if self._last is None or monotonic() - self._last[0] > FRESH_SECONDS:
                report = self._look()
                _tell_changes(self._last[1] if self._last else None, report)
                self._last = monotonic(), report
            return self._last[1]

    def _look(self) -> Report:
        probes = self._listed()
        for probe in probes:
            # One that still hangs is not started again: nothing piles up.
            if probe.name not in self._running:
                self._running[probe.name] = _begin(probe)
        wait(self._running.values(), timeout=LONGEST_SECONDS)
        outcomes = {probe.name: self._outcome(probe.name) for probe in probes}
        return Report(_state(probes, outcomes), outcomes)

    def _outcome(self, name: str) -> Outcome:
        if not self._running[name].done():
            return Outcome(ok=False, detail=f"no answer within {LONGEST_SECONDS:.0f} s")
        return self._running.pop(name).result()


def _begin(probe: Probe) -> Future[Outcome]:
    """In a thread of its own, so that one that hangs keeps no other from looking."""
    begun: Future[Outcome] = Future()
    Thread(
        target=lambda: begun.set_result(_look_at(probe)), name=f"probe-{probe.name}", daemon=True
    ).start()
    return begun


def _look_at(probe: Probe) -> Outcome:
    try:
        return probe.look()
    except Exception as error:  # that is what it looks for
        said = str(error).strip().partition("\n")[0]
        return Outcome(ok=False, detail=clean(said) or type(error).__name__)


def _tell_changes(before: Report | None, now: Report) -> None:
    """A line for each probe that has become broken, or well again."""
    for name, outcome in now.outcomes.items():
        was_ok = before.outcomes[name].ok if before and name in before.outcomes else True
        if outcome.ok and not was_ok:
            logger.info("%s is well again: %s", name, outcome.detail)
        elif was_ok and not outcome.ok:
            logger.warning("%s is not well: %s", name, outcome.detail)


def _state(probes: Sequence[Probe], outcomes: dict[str, Outcome]) -> State:
    broken = [probe for probe in probes if not outcomes[probe.name].ok]
    if any(probe.is_required for probe in broken):
        return "unready"
    return "degraded" if broken else "ok"

"""Runs all probes at once, within a bounded time, and caches the report for a short time."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Lock, Thread
from time import monotonic
from typing import Literal

from common.logs import redact
from ragsite.health.probes import Outcome, Probe

logger = logging.getLogger("ragsite.health")

State = Literal["ok", "degraded", "unready"]

#: Timeout of a probe; one that has not answered by then has failed.
PROBE_TIMEOUT_SECONDS = 2.0
#: How long a report is cached.
CACHE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Report:
    """The outcomes by name, and the overall state."""

    state: State
    outcomes: dict[str, Outcome]

    @property
    def is_ready(self) -> bool:
        """Whether requests should be sent to this process."""
        return self.state != "unready"


class HealthMonitor:
    """Runs the probes that `listed` returns; shared by all threads of a process."""

    def __init__(self, listed: Callable[[], Sequence[Probe]]) -> None:
        self._listed = listed
        self._looking = Lock()
        self._running: dict[str, Future[Outcome]] = {}
        self._last: tuple[float, Report] | None = None

    def report(self) -> Report:
        """A report at most two seconds old. Concurrent callers wait for the same one."""
        with self._looking:
            if self._last is None or monotonic() - self._last[0] > CACHE_SECONDS:
                probes = self._listed()
                for probe in probes:
                    # One that still hangs is not started again: nothing piles up.
                    if probe.name not in self._running:
                        begun: Future[Outcome] = Future()
                        self._running[probe.name] = begun
                        name = f"probe-{probe.name}"
                        Thread(
                            target=_run_probe, args=[probe, begun], name=name, daemon=True
                        ).start()
                wait(self._running.values(), timeout=PROBE_TIMEOUT_SECONDS)
                late = f"no answer within {PROBE_TIMEOUT_SECONDS:.0f} s"
                outcomes = {
                    probe.name: self._running.pop(probe.name).result()
                    if self._running[probe.name].done()
                    else Outcome(ok=False, detail=late)
                    for probe in probes
                }
                broken = [probe for probe in probes if not outcomes[probe.name].ok]
                state: State = "degraded" if broken else "ok"
                if any(probe.is_required for probe in broken):
                    state = "unready"
                # Log each probe that has failed or recovered since the last report.
                before = self._last[1].outcomes if self._last else {}
                for name, outcome in outcomes.items():
                    was_ok = before[name].ok if name in before else True
                    if outcome.ok and not was_ok:
                        logger.info("%s is well again: %s", name, outcome.detail)
                    elif was_ok and not outcome.ok:
                        logger.warning("%s is not well: %s", name, outcome.detail)
                self._last = monotonic(), Report(state, outcomes)
            return self._last[1]


def _run_probe(probe: Probe, begun: Future[Outcome]) -> None:
    """In a thread of its own, so that a hanging one blocks no other."""
    try:
        begun.set_result(probe.look())
    except Exception as error:  # that is what it looks for
        said = str(error).strip().partition("\n")[0]
        begun.set_result(Outcome(ok=False, detail=redact(said) or type(error).__name__))

"""How far a run is and how fast it goes, in numbers that a person can read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from documents.models import IngestionItem, IngestionRun

State = IngestionItem.State


@dataclass(frozen=True, slots=True)
class Pace:
    """A run at one moment. `rate` is settled files a second, `chunk_rate` passages and
    `token_rate` tokens a second, `remaining` seconds to go; each None until there is something to
    judge by."""

    share: float
    seconds: float
    waiting: int
    parsing: int
    embedding: int
    stage: str
    rate: float | None
    chunk_rate: float | None
    token_rate: float | None
    remaining: float | None

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means done."""
        return int(100 * self.share)


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds that workers spent in a stage, and its share of all that they spent."""

    name: str
    seconds: float
    share: float


#: Stages in their order, in words of people.
STAGES = {
    "parse": "Reading",
    "chunk": "Cutting",
    "embed": "Embedding",
    "load": "Loading",
    "index": "Counting words",
}


def stage_times(run: IngestionRun) -> list[StageTime]:
    """Where the run's time went, in the order of the stages."""
    timings: dict[str, float] = run.timings
    whole = sum(timings.values()) or 1.0
    order = [*(name for name in STAGES if name in timings), *(timings.keys() - STAGES.keys())]
    return [
        StageTime(STAGES.get(name, name), timings[name], timings[name] / whole) for name in order
    ]


def pace_of(run: IngestionRun, states: Mapping[str, int], *, now: datetime | None = None) -> Pace:
    """The pace of `run`, whose open items are in `states` (state → how many)."""
    end = run.finished_at or now or timezone.now()
    seconds = max((end - run.started_at).total_seconds(), 0.0)
    rate = _rate(run.settled, seconds)
    left = max(run.total - run.settled, 0)
    return Pace(
        share=1.0 if run.is_finished else (run.settled / run.total if run.total else 0.0),
        seconds=seconds,
        waiting=states.get(State.WAITING, 0),
        parsing=states.get(State.PARSING, 0),
        embedding=states.get(State.EMBEDDING, 0),
        stage=_stage(run, states),
        rate=rate,
        chunk_rate=_rate(run.chunks, seconds),
        token_rate=_rate(run.tokens, seconds),
        remaining=left / rate if rate and left and not run.is_finished else None,
    )


def _rate(number: int, seconds: float) -> float | None:
    return number / seconds if number and seconds else None


def _stage(run: IngestionRun, states: Mapping[str, int]) -> str:
    """The last stage that something of the run is in. A command has no item for a file before it
    is parsed."""
    if run.is_finished:
        return "ended"
    if run.cancel_requested_at is not None:
        return "cancelling"
    for state in (State.EMBEDDING, State.PARSING, State.WAITING):
        if states.get(state):
            return str(state)
    return str(State.PARSING if run.total > run.settled else State.WAITING)

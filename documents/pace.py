"""How far a run is and how fast it goes, in numbers that a person can read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from documents.models import IngestionItem, IngestionRun

State = IngestionItem.State


@dataclass(frozen=True, slots=True)
class Pace:
    """A run at one moment. `rate` is settled files a second, `chunk_rate` passages a second,
    `remaining` seconds to go; each None until there is something to judge by."""

    share: float
    seconds: float
    waiting: int
    parsing: int
    embedding: int
    rate: float | None
    chunk_rate: float | None
    remaining: float | None

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means done."""
        return int(100 * self.share)


def pace_of(run: IngestionRun, states: Mapping[str, int], *, now: datetime | None = None) -> Pace:
    """The pace of `run`, whose items are in `states` (state → how many)."""
    end = run.finished_at or now or timezone.now()
    seconds = max((end - run.started_at).total_seconds(), 0.0)
    rate = run.settled / seconds if run.settled and seconds else None
    left = max(run.total - run.settled, 0)
    return Pace(
        share=1.0 if run.is_finished else (run.settled / run.total if run.total else 0.0),
        seconds=seconds,
        waiting=states.get(State.WAITING, 0),
        parsing=states.get(State.PARSING, 0),
        embedding=states.get(State.EMBEDDING, 0),
        rate=rate,
        chunk_rate=run.chunks / seconds if run.chunks and seconds else None,
        remaining=left / rate if rate and left and not run.is_finished else None,
    )

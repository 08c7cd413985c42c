"""A run as it goes, for those who watch it."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any

from django.db import DatabaseError, connection
from django.db.models import Count

from common import events
from documents.models import IngestionItem, IngestionRun
from documents.pace import pace_of

#: How often a run is looked at, however many watch it in this process.
POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 5.0
#: Then the client connects anew: a login that ended, and a client that vanished, are noticed.
LONGEST_SECONDS = 300.0
RECONNECT_MILLISECONDS = 2000

COUNTERS = (
    "total",
    "settled",
    "ready",
    "skipped",
    "failed",
    "cancelled",
    "duplicates",
    "bytes",
    "chunks",
    "embedded",
    "tokens",
    "mentions",
    "relations",
)


@dataclass(frozen=True, slots=True)
class Progress:
    """A run at one moment. `id` is the same as long as nothing but time has gone by."""

    id: str
    figures: dict[str, Any]

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen."""
        return bool(self.figures["is_finished"])


def open_states(run: IngestionRun) -> dict[str, int]:
    """How many of the run's files are in each stage."""
    items = run.items.filter(state__in=IngestionItem.ACTIVE).order_by()
    return dict(items.values_list("state").annotate(count=Count("pk")))


def progress_of(run: IngestionRun) -> Progress:
    """What the run page and a program want to know of it."""
    states = open_states(run)
    pace = pace_of(run, states)
    counted = {
        "run": run.pk,
        "state": run.state,
        "is_finished": run.is_finished,
        "stage": pace.stage,
        **{name: getattr(run, name) for name in COUNTERS},
        **{str(state): states.get(state, 0) for state in IngestionItem.ACTIVE},
        "timings": run.timings,
    }
    timed = {
        "percent": pace.percent,
        "seconds": _rounded(pace.seconds),
        "remaining_seconds": _rounded(pace.remaining),
        "files_per_second": _rounded(pace.rate),
        "chunks_per_second": _rounded(pace.chunk_rate),
        "tokens_per_second": _rounded(pace.token_rate),
    }
    digest = hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()
    return Progress(id=digest[:16], figures={**counted, **timed})


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


def follow(run_id: int, *, last_id: str = "") -> Iterator[bytes]:
    """Server-sent events: `progress` whenever something has become of the run, `end` at its end.

    `last_id` is the id of the last event that a client got, who is not told the same again. No
    database connection is held between two looks.
    """
    _let_go()  # of the connection that found out who asks
    yield events.retry(RECONNECT_MILLISECONDS)
    ends, spoke = monotonic() + LONGEST_SECONDS, monotonic()
    while monotonic() < ends:
        try:
            progress = latest(run_id)
        except DatabaseError:
            return  # the client comes again, and is told by then
        if progress is not None and progress.id != last_id:
            yield events.event("progress", progress.figures, id=progress.id)
            last_id, spoke = progress.id, monotonic()
        if progress is None or progress.has_ended:
            state = progress.figures["state"] if progress else "deleted"
            yield events.event("end", {"run": run_id, "state": state}, id=last_id)
            return
        if monotonic() - spoke > HEARTBEAT_SECONDS:
            yield events.HEARTBEAT
            spoke = monotonic()
        if events.closing.wait(POLL_SECONDS):
            return


_looking = Lock()
_seen: dict[int, tuple[float, Progress | None]] = {}


def latest(run_id: int) -> Progress | None:
    """The run's progress, not older than a look; None where the run is gone."""
    with _looking:
        for other in [key for key, (at, _) in _seen.items() if monotonic() - at > POLL_SECONDS]:
            del _seen[other]
        if run_id not in _seen:
            _seen[run_id] = (monotonic(), _look(run_id))
        return _seen[run_id][1]


def _look(run_id: int) -> Progress | None:
    try:
        run = IngestionRun.objects.filter(pk=run_id).first()
        return progress_of(run) if run else None
    finally:
        _let_go()


def _let_go() -> None:
    if not connection.in_atomic_block:  # as in a test
        connection.close()

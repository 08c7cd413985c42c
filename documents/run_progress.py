"""Progress of an ingestion run: rates and time left (`run_progress`), and as server-sent events
(`stream_progress`)."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any

from django.db import DatabaseError, connection
from django.db.models import Count, Sum
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from common import sse
from documents.models import IngestionItem, IngestionRun

State = IngestionItem.State


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of a run at one moment. Per second: `rate` settled files, `chunk_rate` passages,
    `token_rate` tokens; `remaining` in seconds. Each is None until it can be estimated."""

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
        """Rounded down, so that 100 means finished."""
        return int(100 * self.share)


@dataclass(frozen=True, slots=True)
class StageTime:
    """Seconds that workers spent in a stage, and its share of the total."""

    name: str
    seconds: float
    share: float


#: Stages in their order, in words of people.
STAGES = {
    "parse": gettext_noop("Reading"),
    "ocr": gettext_noop("Reading pictures of pages"),
    "chunk": gettext_noop("Chunking"),
    "embed": gettext_noop("Embedding"),
    "load": gettext_noop("Loading"),
    "index": gettext_noop("Counting words"),
}


def stage_times(run: IngestionRun) -> list[StageTime]:
    """Seconds per stage of the run, in the order of the stages."""
    timings: dict[str, float] = run.timings
    whole = sum(timings.values()) or 1.0
    order = [*(name for name in STAGES if name in timings), *(timings.keys() - STAGES.keys())]
    return [
        StageTime(gettext(STAGES.get(name, name)), timings[name], timings[name] / whole)
        for name in order
    ]


def run_progress(run: IngestionRun, states: Mapping[str, int]) -> RunProgress:
    """Progress of `run`, whose open items are counted in `states` (state → number)."""
    end = run.finished_at or timezone.now()
    seconds = max((end - run.started_at).total_seconds(), 0.0)
    rate = _rate(run.settled, seconds)
    left = max(run.total - run.settled, 0)
    # The latest stage that some file of the run is in. A command creates no item before a file is
    # parsed.
    stages = (State.EMBEDDING, State.PARSING, State.WAITING)
    stage = next((str(state) for state in stages if states.get(state)), "")
    if run.is_finished:
        stage = "ended"
    elif run.cancel_requested_at is not None:
        stage = "cancelling"
    elif not stage:
        stage = str(State.PARSING if left else State.WAITING)
    return RunProgress(
        share=1.0 if run.is_finished else (run.settled / run.total if run.total else 0.0),
        seconds=seconds,
        waiting=states.get(State.WAITING, 0),
        parsing=states.get(State.PARSING, 0),
        embedding=states.get(State.EMBEDDING, 0),
        stage=stage,
        rate=rate,
        chunk_rate=_rate(run.chunks, seconds),
        token_rate=_rate(run.tokens, seconds),
        remaining=left / rate if rate and left and not run.is_finished else None,
    )


def _rate(number: int, seconds: float) -> float | None:
    return number / seconds if number and seconds else None


#: Poll interval of a run, shared by all clients of this process.
POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 5.0
#: Then the client reconnects, which detects ended logins and vanished clients.
MAX_STREAM_SECONDS = 300.0
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


#: Id and figures of a run at one moment; the id changes only when more than time has changed.
ProgressEvent = tuple[str, dict[str, Any]]


def open_states(run: IngestionRun) -> dict[str, int]:
    """Number of the run's files in each open state."""
    return {state: count for state, count, *_ in _open_sums(run)}


def _open_sums(run: IngestionRun) -> list[tuple[str, int, int, int]]:
    """Open states: files, pages that OCR has read of them, and pages that it has to read."""
    items = run.items.filter(state__in=IngestionItem.ACTIVE).order_by()
    return list(
        items.values_list("state").annotate(
            count=Count("pk"), read=Sum("pages_read"), pages=Sum("pages_to_read")
        )
    )


def progress_event(run: IngestionRun) -> ProgressEvent:
    """The run's figures for its page and for programs."""
    sums = _open_sums(run)
    states = {state: count for state, count, *_ in sums}
    progress = run_progress(run, states)
    counted = {
        "run": run.pk,
        "state": run.state,
        "is_finished": run.is_finished,
        "stage": progress.stage,
        **{name: getattr(run, name) for name in COUNTERS},
        **{str(state): states.get(state, 0) for state in IngestionItem.ACTIVE},
        "pages_read": sum(read for _, _, read, _ in sums),
        "pages_to_read": sum(pages for _, _, _, pages in sums),
        "timings": run.timings,
    }
    timed = {
        "percent": progress.percent,
        "seconds": _rounded(progress.seconds),
        "remaining_seconds": _rounded(progress.remaining),
        "files_per_second": _rounded(progress.rate),
        "chunks_per_second": _rounded(progress.chunk_rate),
        "tokens_per_second": _rounded(progress.token_rate),
    }
    digest = hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()
    return digest[:16], {**counted, **timed}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


def stream_progress(run_id: int, *, last_id: str = "", user: Any = None) -> Iterator[bytes]:
    """Server-sent events: `progress` whenever the run changes, `end` at its end.

    `last_id` is the last event that the client received, which is not sent again. It ends where
    `user`, if given, may not see the run any more. No database connection is held between polls.
    """
    _release_connection()  # of the connection that found out who asks
    yield sse.format_retry(RECONNECT_MILLISECONDS)
    ends, spoke = monotonic() + MAX_STREAM_SECONDS, monotonic()
    while monotonic() < ends:
        try:
            progress = latest_progress(run_id)
            if progress is not None and progress[0] != last_id and user is not None:
                if not IngestionRun.objects.visible_to(user).filter(pk=run_id).exists():
                    progress = None
                _release_connection()
        except DatabaseError:
            return  # the client reconnects and continues
        event_id, figures = progress or (last_id, {"state": "deleted", "is_finished": True})
        if event_id != last_id:
            yield sse.format_event("progress", figures, id=event_id)
            last_id, spoke = event_id, monotonic()
        if figures["is_finished"]:
            state = figures["state"]
            yield sse.format_event("end", {"run": run_id, "state": state}, id=last_id)
            return
        if monotonic() - spoke > HEARTBEAT_SECONDS:
            yield sse.HEARTBEAT
            spoke = monotonic()
        if sse.shutting_down.wait(POLL_SECONDS):
            return


_polling = Lock()
_latest_progress: dict[int, tuple[float, ProgressEvent | None]] = {}


def latest_progress(run_id: int) -> ProgressEvent | None:
    """The run's progress, at most POLL_SECONDS old and shared by all clients; None if the run was
    deleted."""
    with _polling:
        for other in [
            key for key, (at, _) in _latest_progress.items() if monotonic() - at > POLL_SECONDS
        ]:
            del _latest_progress[other]
        if run_id not in _latest_progress:
            polled_at = monotonic()
            try:
                run = IngestionRun.objects.filter(pk=run_id).first()
                progress = progress_event(run) if run else None
            finally:
                _release_connection()
            _latest_progress[run_id] = (polled_at, progress)
        return _latest_progress[run_id][1]


def _release_connection() -> None:
    if not connection.in_atomic_block:  # as in a test
        connection.close()

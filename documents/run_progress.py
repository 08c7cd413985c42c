"""Progress of an ingestion run: rates and time left (`run_progress`), and as server-sent events
(`stream_progress`)."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any

from django.db import DatabaseError, connection
from django.db.models import Count, F, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from common import sse
from documents.models import IngestionItem, IngestionRun

State = IngestionItem.State


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of a run at one moment; `share` counts what is embedded of long files, too. Per
    second: `rate` settled files, `chunk_rate` passages, `token_rate` tokens; `remaining` in
    seconds. Each is None until it can be estimated."""

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


@dataclass(frozen=True, slots=True)
class _OpenWork:
    """A run's open files: how many in each state, pages that OCR has read of them and has to read,
    chunks of long ones that were embedded and all of these, and how much of the long ones is
    embedded, in files."""

    states: dict[str, int]
    pages_read: int
    pages_to_read: int
    chunks_embedded: int
    chunks_to_embed: int
    begun: float


def _open_work(run: IngestionRun) -> _OpenWork:
    items = run.items.filter(state__in=IngestionItem.ACTIVE).order_by()
    is_embedding = Q(state=State.EMBEDDING, chunks_to_embed__gt=0)
    rows = list(
        items.values("state").annotate(
            count=Count("pk"),
            read=Sum("pages_read"),
            pages=Sum("pages_to_read"),
            embedded=Sum("chunks_embedded"),
            chunks=Sum("chunks_to_embed"),
            begun=Sum(1.0 * F("chunks_embedded") / F("chunks_to_embed"), filter=is_embedding),
        )
    )
    return _OpenWork(
        states={row["state"]: row["count"] for row in rows},
        pages_read=sum(row["read"] for row in rows),
        pages_to_read=sum(row["pages"] for row in rows),
        chunks_embedded=sum(row["embedded"] for row in rows),
        chunks_to_embed=sum(row["chunks"] for row in rows),
        begun=sum(row["begun"] or 0.0 for row in rows),
    )


def run_progress(run: IngestionRun) -> RunProgress:
    """Progress of `run` by its settled files and by what is done of its open ones."""
    return _progress(run, _open_work(run))


def _progress(run: IngestionRun, work: _OpenWork) -> RunProgress:
    end = run.finished_at or timezone.now()
    seconds = max((end - run.started_at).total_seconds(), 0.0)
    done = run.settled + work.begun
    left = max(run.total - done, 0.0)
    # The latest stage that some file of the run is in. A command creates no item before a file is
    # parsed.
    stages = (State.EMBEDDING, State.PARSING, State.WAITING)
    stage = next((str(state) for state in stages if work.states.get(state)), "")
    if run.is_finished:
        stage = "ended"
    elif run.cancel_requested_at is not None:
        stage = "cancelling"
    elif not stage:
        stage = str(State.PARSING if left else State.WAITING)
    return RunProgress(
        share=1.0 if run.is_finished else (min(done / run.total, 1.0) if run.total else 0.0),
        seconds=seconds,
        waiting=work.states.get(State.WAITING, 0),
        parsing=work.states.get(State.PARSING, 0),
        embedding=work.states.get(State.EMBEDDING, 0),
        stage=stage,
        rate=_rate(run.settled, seconds),
        chunk_rate=_rate(max(run.chunks, run.embedded), seconds),
        token_rate=_rate(run.tokens, seconds),
        remaining=seconds * left / done if done and left and not run.is_finished else None,
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


def progress_event(run: IngestionRun) -> ProgressEvent:
    """The run's figures for its page and for programs."""
    work = _open_work(run)
    progress = _progress(run, work)
    counted = {
        "run": run.pk,
        "state": run.state,
        "is_finished": run.is_finished,
        "stage": progress.stage,
        **{name: getattr(run, name) for name in COUNTERS},
        **{str(state): work.states.get(state, 0) for state in IngestionItem.ACTIVE},
        "pages_read": work.pages_read,
        "pages_to_read": work.pages_to_read,
        "chunks_embedded": work.chunks_embedded,
        "chunks_to_embed": work.chunks_to_embed,
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

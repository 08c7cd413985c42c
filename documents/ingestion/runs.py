"""What became of a run's files, counted in the transaction in which it became so."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from common import durations
from documents.ingestion.marking import mark_duplicates
from documents.ingestion.sources import BrokenSource, Source
from documents.models import Document, IngestionItem, IngestionRun

State = IngestionItem.State


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one document brought: its chunks, how many of them were embedded anew, its tokens."""

    chunks: int
    embedded: int
    tokens: int


class RunCancelled(Exception):
    """Somebody cancelled the run: nothing may be added to it."""


def settle_items(
    document_ids: Iterable[int], *, state: str, error_code: str = "", error: str = ""
) -> None:
    """Give every open item of these documents its final state, and count it on its run."""
    items = IngestionItem.objects.filter(document_id__in=list(document_ids))
    settle(items, state=state, error_code=error_code, error=error)


def settle(
    items: QuerySet[IngestionItem], *, state: str, error_code: str = "", error: str = ""
) -> list[int]:
    """The same for those of `items` that are open; returns the ids of their runs."""
    still_open = items.filter(state__in=IngestionItem.ACTIVE)
    locked = list(still_open.select_for_update().order_by("id").values_list("id", "run_id"))
    IngestionItem.objects.filter(id__in=[item_id for item_id, _ in locked]).update(
        state=state, error_code=error_code, error=error
    )
    counts = sorted(Counter(run_id for _, run_id in locked).items())
    for run_id, count in counts:  # in one order, so that two cannot wait for each other
        count_on_run(run_id, **{COUNTERS[State(state)]: count})
    return [run_id for run_id, _ in counts]


COUNTERS = {
    State.READY: "ready",
    State.SKIPPED: "skipped",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """An item whose fate is known at once."""

    entry: Source | BrokenSource
    state: str
    code: str = ""
    reason: str = ""
    document: Document | None = None


def failure(
    entry: Source | BrokenSource, code: str, reason: str, document: Document | None = None
) -> Outcome:
    """An item that failed."""
    return Outcome(entry, state=State.FAILED, code=code, reason=reason, document=document)


def record_item(run: IngestionRun, outcome: Outcome) -> None:
    """One item, in its final state."""
    record_items(run, [outcome])


@transaction.atomic
def record_items(run: IngestionRun, outcomes: Sequence[Outcome]) -> None:
    """Items in their final states, and what they count on the run. Raises RunCancelled."""
    IngestionItem.objects.bulk_create(
        IngestionItem(
            workspace_id=run.workspace_id,
            run=run,
            document=outcome.document,
            name=outcome.entry.name[:1024],
            size=outcome.entry.size,
            state=outcome.state,
            error_code=outcome.code,
            error=outcome.reason,
        )
        for outcome in outcomes
    )
    hold_open(run.id)  # behind the items: whoever locks documents and a run does so in this order
    counts = Counter(COUNTERS[State(outcome.state)] for outcome in outcomes)
    count_on_run(run.id, **counts)


def mark_items(document_ids: Iterable[int], *, state: str) -> None:
    """Say which stage open items are in."""
    IngestionItem.objects.filter(
        document_id__in=list(document_ids), state__in=IngestionItem.ACTIVE
    ).update(state=state)


def hold_open(run_id: int) -> None:
    """Keep the run from being cancelled until the transaction ends; raises RunCancelled."""
    run = IngestionRun.objects.select_for_update(no_key=True).get(id=run_id)
    if run.cancel_requested_at is not None:
        raise RunCancelled


@transaction.atomic
def expect(run_id: int, *, total: int, size: int) -> None:
    """More files, of `size` bytes together, are to come. Raises RunCancelled."""
    hold_open(run_id)
    count_on_run(run_id, total=total, bytes=size)


def count_on_run(run_id: int, **increments: int) -> None:
    """Add to a run's counters."""
    changes = {name: F(name) + value for name, value in increments.items() if value}
    if changes:
        IngestionRun.objects.filter(id=run_id).update(**changes, updated_at=timezone.now())


def count_loaded(loaded: Mapping[int, Loaded]) -> None:
    """Add loaded documents' sizes, by document id, to the runs that wait for them. Call it
    before settling."""
    waiting = IngestionItem.objects.filter(
        document_id__in=list(loaded), state__in=IngestionItem.ACTIVE
    )
    sums: dict[int, list[Loaded]] = defaultdict(list)
    for run_id, document_id in waiting.values_list("run_id", "document_id").distinct():
        if document_id is not None:
            sums[run_id].append(loaded[document_id])
    for run_id, sizes in sorted(sums.items()):
        count_on_run(
            run_id,
            chunks=sum(size.chunks for size in sizes),
            embedded=sum(size.embedded for size in sizes),
            tokens=sum(size.tokens for size in sizes),
        )


def add_timings(run_ids: Iterable[int], timings: dict[str, float]) -> None:
    """Add seconds spent in stages to the runs, and once committed to what metrics tell."""
    statement = (
        "UPDATE documents_ingestionrun SET timings = timings || jsonb_build_object(%s::text,"
        " coalesce((timings->>%s)::float8, 0) + %s) WHERE id = ANY(%s)"
    )
    ids = list(run_ids)
    with connection.cursor() as cursor:
        for stage, seconds in timings.items():
            cursor.execute(statement, [stage, stage, round(seconds, 4), ids])
    transaction.on_commit(partial(durations.observe, dict(timings)))


@transaction.atomic
def finish_if_settled(run_id: int) -> bool:
    """End a run whose files all have their fate; true for the one caller that ended it."""
    run = IngestionRun.objects.select_for_update().filter(id=run_id).first()
    if run is None or run.is_finished or run.settled < run.total:
        return False
    end(run)
    return True


def end(run: IngestionRun) -> None:
    """Write a run's final state. Of a cancelled one, what was not begun counts as cancelled."""
    if run.cancelled or run.cancel_requested_at is not None:
        run.state = IngestionRun.State.CANCELLED
        run.cancelled = max(run.total - run.ready - run.skipped - run.failed, 0)
    elif run.failed == 0:
        run.state = IngestionRun.State.SUCCEEDED
    elif run.ready + run.skipped > 0:
        run.state = IngestionRun.State.PARTIAL
    else:
        run.state = IngestionRun.State.FAILED
    run.finished_at = timezone.now()
    run.duplicates += mark_duplicates(run)
    run.save(update_fields=["state", "cancelled", "duplicates", "finished_at", "updated_at"])


def open_runs(document_ids: Iterable[int]) -> list[int]:
    """Unfinished runs that have items for these documents."""
    return sorted(
        set(
            IngestionItem.objects.filter(
                document_id__in=list(document_ids), run__finished_at=None
            ).values_list("run_id", flat=True)
        )
    )

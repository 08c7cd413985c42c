"""What became of a run's files, counted in the transaction in which it became so."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from documents.ingestion.sources import BrokenSource, Source
from documents.models import Document, IngestionItem, IngestionRun

State = IngestionItem.State


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one document brought: its chunks, how many of them were embedded anew, its tokens."""

    chunks: int
    embedded: int
    tokens: int


def settle_items(
    document_ids: Iterable[int], *, state: str, error_code: str = "", error: str = ""
) -> None:
    """Give every open item of these documents its final state, and count it on its run."""
    items = IngestionItem.objects.filter(
        document_id__in=list(document_ids), state__in=IngestionItem.ACTIVE
    )
    locked = list(items.select_for_update().order_by("id").values_list("id", "run_id"))
    IngestionItem.objects.filter(id__in=[item_id for item_id, _ in locked]).update(
        state=state, error_code=error_code, error=error
    )
    for run_id, count in Counter(run_id for _, run_id in locked).items():
        count_on_run(run_id, **{COUNTERS[State(state)]: count})


COUNTERS = {
    State.READY: "ready",
    State.SKIPPED: "skipped",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
}


@transaction.atomic
def record_item(
    run: IngestionRun,
    entry: Source | BrokenSource,
    *,
    state: str,
    code: str = "",
    reason: str = "",
    document: Document | None = None,
) -> None:
    """An item whose fate is known at once."""
    IngestionItem.objects.create(
        workspace_id=run.workspace_id,
        run=run,
        document=document,
        name=entry.name[:1024],
        size=entry.size,
        state=state,
        error_code=code,
        error=reason,
    )
    count_on_run(run.id, **{COUNTERS[State(state)]: 1})


def mark_items(document_ids: Iterable[int], *, state: str) -> None:
    """Say which stage open items are in."""
    IngestionItem.objects.filter(
        document_id__in=list(document_ids), state__in=IngestionItem.ACTIVE
    ).update(state=state)


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
    for run_id, sizes in sums.items():
        count_on_run(
            run_id,
            chunks=sum(size.chunks for size in sizes),
            embedded=sum(size.embedded for size in sizes),
            tokens=sum(size.tokens for size in sizes),
        )


def add_timings(run_ids: Iterable[int], timings: dict[str, float]) -> None:
    """Add seconds spent in stages to the runs."""
    statement = (
        "UPDATE documents_ingestionrun SET timings = timings || jsonb_build_object(%s::text,"
        " coalesce((timings->>%s)::float8, 0) + %s) WHERE id = ANY(%s)"
    )
    ids = list(run_ids)
    with connection.cursor() as cursor:
        for stage, seconds in timings.items():
            cursor.execute(statement, [stage, stage, round(seconds, 4), ids])


@transaction.atomic
def finish_if_settled(run_id: int) -> bool:
    """End a run whose files all have their fate; true for the one caller that ended it."""
    run = IngestionRun.objects.select_for_update().get(id=run_id)
    if run.is_finished or run.settled < run.total:
        return False
    end(run)
    return True


def end(run: IngestionRun) -> None:
    """Write a run's final state."""
    if run.failed == 0:
        run.state = IngestionRun.State.SUCCEEDED
    elif run.ready + run.skipped > 0:
        run.state = IngestionRun.State.PARTIAL
    else:
        run.state = IngestionRun.State.FAILED
    run.finished_at = timezone.now()
    run.save(update_fields=["state", "finished_at", "updated_at"])


def open_runs(document_ids: Iterable[int]) -> list[int]:
    """Unfinished runs that have items for these documents."""
    return sorted(
        set(
            IngestionItem.objects.filter(
                document_id__in=list(document_ids), run__finished_at=None
            ).values_list("run_id", flat=True)
        )
    )

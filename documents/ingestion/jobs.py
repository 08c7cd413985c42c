"""Jobs of ingestion: a worker claims documents for a lease (`claim`), every outcome is counted on
the run in the same transaction, and runs end or are cancelled here.

A claim is a token and a time on the document's row. Whoever loads a document must still hold its
token then, so a worker that was presumed dead and comes back changes nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Collection as Ids
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest, Now
from django.utils import timezone

from common import valkey
from common.leases import lease_expired, retry_on_deadlock
from documents.ingestion.concurrency import Stopwatch, heartbeat
from documents.ingestion.sources import Entry
from documents.ingestion.stored_files import delete_files, has_file_of_text
from documents.lexical_index import index_pending
from documents.models import (
    Document,
    IngestionItem,
    IngestionRun,
    StagedDocument,
    StagedVectors,
)
from inference.interfaces import InferenceError

# The other documents with these bytes may be of a run that ends at the same time: whoever comes
# second sees the first one's.
_MARK_DUPLICATES = """
    WITH mine AS (
        SELECT id, collection_id, source_sha256 FROM documents_document
        WHERE id IN (SELECT document_id FROM documents_ingestionitem
                     WHERE run_id = %(run)s AND state = 'ready')
          AND is_current AND chunk_count > 0 AND source_sha256 <> '' AND duplicate_of_id IS NULL
    ), original AS (
        SELECT DISTINCT ON (mine.id) mine.id AS duplicate_id, document.id
        FROM mine JOIN documents_document AS document USING (collection_id, source_sha256)
        WHERE document.is_current AND document.status = 'ready' AND document.chunk_count > 0
          AND document.duplicate_of_id IS NULL
        ORDER BY mine.id, document.id IN (SELECT id FROM mine), document.id
    ), locked AS (
        SELECT document.id, original.id AS original_id
        FROM documents_document AS document JOIN original ON original.duplicate_id = document.id
        WHERE original.id <> document.id
        ORDER BY document.id FOR NO KEY UPDATE OF document
    )
    UPDATE documents_document AS document SET duplicate_of_id = locked.original_id
    FROM locked WHERE document.id = locked.id
"""


#: Of messages for documents whose pages are read by OCR, for long ones that are embedded slice by
#: slice, and for passages that are encoded when nothing else is to do. Redis and Valkey take the
#: lowest number first, which is 0 for all others.
LOWEST_PRIORITY = 9


class RunCancelled(Exception):
    """The run was cancelled: nothing may be added to it."""


def settle_items(
    document_ids: Iterable[int], *, state: str, error_code: str = "", error: str = ""
) -> None:
    """Set the final state of every open item of these documents, and count it on its run."""
    items = IngestionItem.objects.filter(document_id__in=list(document_ids))
    settle_open_items(items, state=state, error_code=error_code, error=error)


def settle_open_items(
    items: QuerySet[IngestionItem], *, state: str, error_code: str = "", error: str = ""
) -> list[int]:
    """Set the final state of the open ones of `items`; returns the ids of their runs."""
    still_open = items.filter(state__in=IngestionItem.ACTIVE)
    locked = list(still_open.select_for_update().order_by("id").values_list("id", "run_id"))
    IngestionItem.objects.filter(id__in=[item_id for item_id, _ in locked]).update(
        state=state, error_code=error_code, error=error
    )
    counts = sorted(Counter(run_id for _, run_id in locked).items())
    for run_id, count in counts:  # in one order, so that two cannot wait for each other
        count_on_run(run_id, **{str(state): count})
    return [run_id for run_id, _ in counts]


def settled_item(
    entry: Entry,
    state: str = IngestionItem.State.FAILED,
    *,
    code: str = "",
    reason: str = "",
    document: Document | None = None,
) -> IngestionItem:
    """An unsaved item whose outcome is known at once, for `record_items`."""
    return IngestionItem(
        name=entry.name[:1024],
        size=entry.size,
        state=state,
        error_code=code,
        error=reason,
        document=document,
    )


@transaction.atomic
def record_items(run: IngestionRun, items: Sequence[IngestionItem]) -> None:
    """Save items in their final states and count them on the run. Raises RunCancelled."""
    if not items:
        return
    for item in items:
        item.run, item.workspace_id = run, run.workspace_id
    IngestionItem.objects.bulk_create(items)
    lock_open_run(run.id)  # after the items: documents are always locked before runs
    counts = Counter(str(item.state) for item in items)  # named like the run's
    count_on_run(run.id, **counts)


def set_item_state(document_ids: Iterable[int], *, state: str) -> None:
    """Set the stage of open items."""
    IngestionItem.objects.filter(
        document_id__in=list(document_ids), state__in=IngestionItem.ACTIVE
    ).update(state=state)


def lock_open_run(run_id: int) -> None:
    """Lock the run against cancelling until the end of the transaction; raises RunCancelled."""
    run = IngestionRun.objects.select_for_update(no_key=True).get(id=run_id)
    if run.cancel_requested_at is not None:
        raise RunCancelled


@transaction.atomic
def add_expected_files(run_id: int, *, total: int, size: int) -> None:
    """Add files, of `size` bytes in total, that are still to come. Raises RunCancelled."""
    lock_open_run(run_id)
    count_on_run(run_id, total=total, bytes=size)


def count_on_run(run_id: int, **increments: int) -> None:
    """Add to a run's counters."""
    changes = {name: F(name) + value for name, value in increments.items() if value}
    if changes:
        IngestionRun.objects.filter(id=run_id).update(**changes, updated_at=timezone.now())


def touch_run(run_id: int) -> None:
    """A sign of life of a run whose counts have not changed."""
    IngestionRun.objects.filter(id=run_id).update(updated_at=timezone.now())


def count_loaded(loaded: Mapping[int | None, Mapping[str, int]]) -> None:
    """Add the counts of loaded documents, by id, to the runs that wait for them, under the names of
    the run's counters. Chunks that were counted when they were embedded are not counted again. Call
    it before settling."""
    waiting = IngestionItem.objects.filter(
        document_id__in=list(loaded), state__in=IngestionItem.ACTIVE
    )
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    pairs = waiting.order_by().values_list("run_id", "document_id")
    for run_id, document_id, counted in pairs.annotate(counted=Max("chunks_embedded")):
        sums[run_id].update(loaded[document_id])
        sums[run_id]["embedded"] -= counted
    for run_id, counts in sorted(sums.items()):
        count_on_run(run_id, **counts)


def add_timings(run_ids: Iterable[int], timings: dict[str, float]) -> None:
    """Add seconds per stage to the runs, and after the commit to the metrics."""
    statement = (
        "UPDATE documents_ingestionrun SET timings = timings || jsonb_build_object(%s::text,"
        " coalesce((timings->>%s)::float8, 0) + %s) WHERE id = ANY(%s)"
    )
    ids = list(run_ids)
    with connection.cursor() as cursor:
        for stage, seconds in timings.items():
            cursor.execute(statement, [stage, stage, round(seconds, 4), ids])
    transaction.on_commit(partial(valkey.observe_durations, dict(timings)))


def write_final_state(run: IngestionRun) -> None:
    """Write a run's final state. In a cancelled run, files that were not begun count as cancelled.
    Documents that the run made ready and whose bytes existed before become duplicates; aliases are
    already."""
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
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('duplicates', %s))", [run.collection_id]
        )
        cursor.execute(_MARK_DUPLICATES, {"run": run.pk})
        run.duplicates += int(cursor.rowcount)
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


UNFINISHED_STATUSES = (Document.Status.QUEUED, Document.Status.PROCESSING)


def lease_duration() -> timedelta:
    """How long a claim lasts without renewal."""
    return timedelta(seconds=settings.INGESTION_LEASE_SECONDS)


def lease_end() -> Any:
    """When a claim made now expires, by the database's clock."""
    return Now() + lease_duration()


@transaction.atomic
def claim(document_ids: Ids[int], *, token: UUID | None = None) -> tuple[UUID, list[Document]]:
    """Claim those of the documents that wait and are unclaimed, under `token` or a new one.

    Rows locked by another transaction are being claimed by it and are skipped.
    """
    token = token or uuid4()
    documents = list(
        Document.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("collection__space")
        .filter(
            Q(claimed_until=None)
            | Q(claimed_by=None)
            | lease_expired("claimed_until", lease=lease_duration())
        )
        .filter(id__in=document_ids, status__in=UNFINISHED_STATUSES)
        .order_by("id")
    )
    Document.objects.filter(id__in=[document.id for document in documents]).update(
        claimed_by=token,
        claimed_until=lease_end(),
        status=Document.Status.PROCESSING,
        attempts=F("attempts") + 1,
        updated_at=Now(),
    )
    return token, documents


def put_back(document_id: int, *, token: UUID) -> bool:
    """Give up the claim of one document that is to be continued, without an attempt used up;
    returns whether `token` still claimed it."""
    claimed = Document.objects.filter(pk=document_id, claimed_by=token)
    values = {"claimed_by": None, "claimed_until": None, "updated_at": Now()}
    return bool(claimed.update(attempts=Greatest(F("attempts") - 1, 0), **values))


def release_claim(token: UUID) -> None:
    """Release everything that `token` still claims."""
    with transaction.atomic():
        claimed = Document.objects.select_for_update().filter(claimed_by=token)
        ids = list(claimed.order_by("id").values_list("id", flat=True))
        Document.objects.filter(id__in=ids).update(claimed_by=None, claimed_until=None)


@transaction.atomic
def renew_claim(token: UUID) -> None:
    """Extend the claim by a lease. Locked rows are skipped: they are being loaded or taken over."""
    free = Document.objects.select_for_update(skip_locked=True).filter(claimed_by=token)
    ids = list(free.order_by("id").values_list("id", flat=True))
    Document.objects.filter(id__in=ids).update(claimed_until=lease_end())


@contextmanager
def lease_renewal(token: UUID) -> Iterator[None]:
    """Renew the claim while the block runs, and release it at the end.

    One page of a PDF or one batch of a model may take longer than a lease.
    """
    try:
        with heartbeat(lambda: renew_claim(token)):
            yield
    finally:
        release_claim(token)


#: Chunks from which ANALYZE runs at once; for fewer, autovacuum is soon enough.
ANALYZE_MIN_CHUNKS = 5_000


@transaction.atomic
def fail_documents(
    document_ids: Sequence[int], *, code: str, message: str, token: UUID | None = None
) -> None:
    """Record that these documents failed; their previous text stays searchable.

    With `token` only those that it still claims: a worker whose document was replaced meanwhile
    does not fail the new text. Without, only unclaimed ones.
    """
    held = Document.objects.select_for_update().filter(id__in=document_ids, claimed_by=token)
    document_ids = list(held.order_by("id").values_list("id", flat=True))
    Document.objects.filter(id__in=document_ids).update(
        status=Document.Status.FAILED,
        error_code=code,
        error=message,
        claimed_by=None,
        claimed_until=None,
    )
    StagedDocument.objects.filter(document_id__in=document_ids).delete()
    notes: dict[str, list[int]] = defaultdict(list)
    rows = Document.objects.filter(pk__in=document_ids).values_list("pk", "is_current", "version")
    for pk, is_current, version in rows:
        note = f" It was to be version {version}; version {version - 1} stays current."
        notes["" if is_current else note].append(pk)
    for note, ids in notes.items():
        settle_items(ids, state=IngestionItem.State.FAILED, error_code=code, error=message + note)


def fail_after_max_attempts(document: Document, token: UUID) -> bool:
    """Fail a document whose attempts are used up; returns whether that was so."""
    if document.attempts < settings.INGESTION_MAX_ATTEMPTS:
        return False
    fail_documents(
        [document.id],
        code="attempts",
        message=f"Given up after {document.attempts} attempts: each time the worker died or the"
        " model failed. See the worker's log, then upload it again.",
        token=token,
    )
    return True


def finish_runs(document_ids: Sequence[int]) -> None:
    """End those of the documents' runs whose items are all settled."""
    for run_id in open_runs(document_ids):
        finish_run(run_id)


def finish_run(run_id: int) -> None:
    """End the run if all its files are settled, and index what it loaded."""
    with transaction.atomic():
        run = IngestionRun.objects.select_for_update().filter(id=run_id).first()
        if run is None or run.is_finished or run.settled < run.total:
            return  # or another process has ended it
        write_final_state(run)
    run = IngestionRun.objects.select_related("collection").get(id=run_id)
    watch = Stopwatch()
    with watch("index"):
        index_pending(run.collection_id)
        if run.embedded >= ANALYZE_MIN_CHUNKS:
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE documents_document, documents_chunk")
    add_timings([run_id], watch.seconds)


def report_outage(document_ids: Sequence[int], error: InferenceError) -> None:
    """Save on the waiting documents why they wait."""
    Document.objects.filter(id__in=document_ids, status__in=UNFINISHED_STATUSES).update(
        error_code="model_unavailable", error=str(error), attempts=0
    )


#: Documents that are undone in one transaction.
CANCEL_BATCH = 500


REPLACED_MESSAGE = "A later upload of the same file replaced it and was cancelled. Upload it again."
RETRY_CANCELLED_MESSAGE = "The retry was cancelled. Retry it, or upload it again."


def request_cancellation(run_id: int) -> bool:
    """Mark the run as cancelled, so that nothing is added to it; waits for a transaction that is
    adding.

    False for a run that has ended.
    """
    now = timezone.now()
    unfinished = IngestionRun.objects.filter(id=run_id, finished_at=None)
    unfinished.filter(cancel_requested_at=None).update(cancel_requested_at=now, updated_at=now)
    return unfinished.exists()


def carry_out_cancellation(run_id: int) -> None:
    """Undo what is waiting and end the run. Idempotent: may run twice, or again after a crash."""
    run = IngestionRun.objects.get(id=run_id)
    while retry_on_deadlock(lambda: _undo_batch(run)):
        pass
    with transaction.atomic():
        settle_open_items(
            IngestionItem.objects.filter(run=run), state=IngestionItem.State.CANCELLED
        )
        run = IngestionRun.objects.select_for_update().get(id=run_id)
        if run.is_finished:
            return
        write_final_state(run)
    index_pending(run.collection_id)


@transaction.atomic
def _undo_batch(run: IngestionRun) -> bool:
    """Settle the run's open items of some documents; False when none is left."""
    items = IngestionItem.objects.filter(run=run, state__in=IngestionItem.ACTIVE)
    waiting = items.exclude(document=None).order_by("document_id")
    ids = list(waiting.values_list("document_id", flat=True).distinct()[:CANCEL_BATCH])
    documents = list(Document.objects.select_for_update().filter(id__in=ids).order_by("id"))
    # Read again under the lock: some may have been loaded meanwhile.
    still = set(items.filter(document__in=documents).values_list("document_id", flat=True))
    mine = [document for document in documents if document.id in still]
    # Documents with a newer text that another run waits for.
    document_ids = [document.id for document in mine]
    open_items = IngestionItem.objects.filter(
        document_id__in=document_ids, state__in=IngestionItem.ACTIVE
    )
    own_later = open_items.filter(run=run, document=OuterRef("document"), id__gt=OuterRef("id"))
    later = open_items.exclude(run=run).exclude(Exists(own_later))
    theirs = {found for found in later.values_list("document_id", flat=True) if found is not None}
    undone = [document for document in mine if document.id not in theirs]
    settle_open_items(items.filter(document__in=mine), state=IngestionItem.State.CANCELLED)
    # The text that earlier runs wait for is gone: this run's upload took its place.
    others = settle_open_items(
        IngestionItem.objects.filter(document__in=undone),
        state=IngestionItem.State.FAILED,
        error_code="replaced",
        error=REPLACED_MESSAGE,
    )
    _undo_documents(run, undone)
    for other in others:
        transaction.on_commit(partial(finish_run, other))
    return bool(ids)


def _undo_documents(run: IngestionRun, documents: Sequence[Document]) -> None:
    """Take the documents from their workers and restore their previous state.

    One that never had a text is deleted. One whose retry is cancelled has failed, as before.
    """
    ids = [document.id for document in documents]
    staged = StagedDocument.objects.filter(document__in=ids)
    # Parsed already: the hash is that of the new bytes, so it must not make them look known.
    parsed = list(staged.values_list("document_id", flat=True))
    Document.objects.filter(id__in=parsed).update(source_sha256="")
    staged.delete()
    StagedVectors.objects.filter(document__in=ids).delete()
    if run.retry_of_id is not None:
        _restore_documents(
            ids,
            status=Document.Status.FAILED,
            error_code="cancelled",
            error=RETRY_CANCELLED_MESSAGE,
        )
        return
    with_text = [document for document in documents if _had_text(document)]
    # Read again, and not brought anew: the file is the one that the text is from.
    same = {each.id for each in with_text if each.id not in parsed and has_file_of_text(each)}
    files = [str(each.file.name) for each in documents if each.file and each.id not in same]
    transaction.on_commit(lambda: delete_files(files))
    values = {"status": Document.Status.READY, "error_code": "", "error": ""}
    changed = [document.id for document in with_text if document.id not in same]
    _restore_documents(changed, **values, file="")
    _restore_documents(sorted(same), **values)
    new = [document.id for document in documents if not _had_text(document)]
    Document.objects.filter(id__in=new).delete()


def _had_text(document: Document) -> bool:
    return document.indexed_at is not None or document.chunk_count > 0


def _restore_documents(document_ids: Sequence[int], **values: Any) -> None:
    Document.objects.filter(id__in=document_ids).update(
        attempts=0, claimed_by=None, claimed_until=None, updated_at=timezone.now(), **values
    )

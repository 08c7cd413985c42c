"""A run is stopped in the middle: what is loaded stays, what waits is undone.

First the run says that it is cancelled, so that nothing is added to it any more; then its open
items are settled, document by document. Killed in between, recovery goes on here.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from common.deadlocks import despite_deadlocks
from documents.ingestion import runs, settling
from documents.ingestion.media import delete_files
from documents.lexical_index import index_pending
from documents.models import Document, IngestionItem, IngestionRun, StagedDocument

#: Documents that are undone in one transaction.
BATCH = 500

State = IngestionItem.State

REPLACED = (
    "A later upload of the same file took its place, and that one was cancelled. Upload it again."
)
RETRY_CANCELLED = "The retry was cancelled. Retry it, or upload it again."


def request(run_id: int) -> bool:
    """From now on nothing is added to the run; waits for whoever is adding just now.

    False for a run that has ended.
    """
    now = timezone.now()
    unfinished = IngestionRun.objects.filter(id=run_id, finished_at=None)
    unfinished.filter(cancel_requested_at=None).update(cancel_requested_at=now, updated_at=now)
    return unfinished.exists()


def carry_out(run_id: int) -> None:
    """Undo what waits, and end the run. Twice at once, or after a crash, is as good as once."""
    run = IngestionRun.objects.get(id=run_id)
    while despite_deadlocks(lambda: _undo_some(run)):
        pass
    with transaction.atomic():
        runs.settle(IngestionItem.objects.filter(run=run), state=State.CANCELLED)
        run = IngestionRun.objects.select_for_update().get(id=run_id)
        if run.is_finished:
            return
        runs.end(run)
    index_pending(run.collection_id)


@transaction.atomic
def _undo_some(run: IngestionRun) -> bool:
    """Settle the run's open items of some documents; false when there are none."""
    items = IngestionItem.objects.filter(run=run, state__in=IngestionItem.ACTIVE)
    waiting = items.exclude(document=None).order_by("document_id")
    ids = list(waiting.values_list("document_id", flat=True).distinct()[:BATCH])
    documents = list(Document.objects.select_for_update().filter(id__in=ids).order_by("id"))
    # Asked again under the lock: some may have been loaded meanwhile.
    still = set(items.filter(document__in=documents).values_list("document_id", flat=True))
    mine = [document for document in documents if document.id in still]
    theirs = _wanted_by_later_runs(run, [document.id for document in mine])
    undone = [document for document in mine if document.id not in theirs]
    runs.settle(items.filter(document__in=mine), state=State.CANCELLED)
    # The text that earlier runs wait for is gone: this run's upload took its place.
    others = runs.settle(
        IngestionItem.objects.filter(document__in=undone),
        state=State.FAILED,
        error_code="replaced",
        error=REPLACED,
    )
    _undo(run, undone)
    for other in others:
        transaction.on_commit(partial(settling.finish_run, other))
    return bool(ids)


def _wanted_by_later_runs(run: IngestionRun, document_ids: Sequence[int]) -> set[int]:
    """Documents that have a newer text, which another run waits for."""
    open_items = IngestionItem.objects.filter(
        document_id__in=document_ids, state__in=IngestionItem.ACTIVE
    )
    own_later = open_items.filter(run=run, document=OuterRef("document"), id__gt=OuterRef("id"))
    later = open_items.exclude(run=run).exclude(Exists(own_later))
    return {found for found in later.values_list("document_id", flat=True) if found is not None}


def _undo(run: IngestionRun, documents: Sequence[Document]) -> None:
    """Take the documents away from whoever works on them, and put them back as they were.

    One that never had a text goes. One whose retry is cancelled has failed, as before.
    """
    ids = [document.id for document in documents]
    staged = StagedDocument.objects.filter(document__in=ids)
    # Parsed already: the hash is that of the new bytes, so it must not make them look known.
    Document.objects.filter(id__in=list(staged.values_list("document_id", flat=True))).update(
        source_sha256=""
    )
    staged.delete()
    if run.retry_of_id is not None:
        _put_back(ids, status=Document.Status.FAILED, error_code="cancelled", error=RETRY_CANCELLED)
        return
    files = [str(document.file.name) for document in documents if document.file]
    transaction.on_commit(lambda: delete_files(files))
    _put_back(
        [document.id for document in documents if _had_text(document)],
        status=Document.Status.READY,
        error_code="",
        error="",
        file="",
    )
    new = [document.id for document in documents if not _had_text(document)]
    Document.objects.filter(id__in=new).delete()


def _had_text(document: Document) -> bool:
    return document.indexed_at is not None or document.chunk_count > 0


def _put_back(document_ids: Sequence[int], **values: Any) -> None:
    Document.objects.filter(id__in=document_ids).update(
        attempts=0, claimed_by=None, claimed_until=None, updated_at=timezone.now(), **values
    )

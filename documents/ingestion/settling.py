"""What becomes of documents and runs at the end, other than being loaded."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from common.wording import counted
from documents.ingestion import claims, runs, versions
from documents.ingestion.stopwatch import Stopwatch
from documents.lexical_index import index_pending
from documents.models import Document, IngestionItem, IngestionRun, StagedDocument
from inference.base import InferenceError

#: The planner is told at once of so many new chunks; of fewer, autovacuum tells it in time.
ANALYZE_FROM = 5_000


@transaction.atomic
def fail(
    document_ids: Sequence[int], *, code: str, message: str, token: UUID | None = None
) -> None:
    """Record that these documents cannot be ingested; what was searchable of them stays so.

    With `token` only those that are still held by it: a worker whose document was replaced
    meanwhile says nothing of the new one. Without, those that nobody holds.
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
    for note, ids in versions.failure_notes(document_ids).items():
        runs.settle_items(
            ids, state=IngestionItem.State.FAILED, error_code=code, error=message + note
        )


def gave_up(document: Document, token: UUID) -> bool:
    """Fail a document whose worker died or whose model failed again and again."""
    if document.attempts < settings.INGESTION_MAX_ATTEMPTS:
        return False
    fail(
        [document.id],
        code="attempts",
        message=f"Given up after {counted(document.attempts, 'attempt')}: the worker died or"
        " the model"
        " failed each time. See the worker's log, then upload it again.",
        token=token,
    )
    return True


def finish_runs(document_ids: Sequence[int]) -> None:
    """End those of the documents' runs that are settled."""
    for run_id in runs.open_runs(document_ids):
        finish_run(run_id)


def finish_run(run_id: int) -> None:
    """End the run if all its files are settled, and index what it loaded."""
    if not runs.finish_if_settled(run_id):
        return
    run = IngestionRun.objects.select_related("collection").get(id=run_id)
    watch = Stopwatch()
    with watch("index"):
        index_pending(run.collection_id)
        if run.embedded >= ANALYZE_FROM:
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE documents_document, documents_chunk")
    runs.add_timings([run_id], watch.seconds)


def report_outage(document_ids: Sequence[int], error: InferenceError) -> None:
    """Show on the waiting documents why they wait."""
    Document.objects.filter(id__in=document_ids, status__in=claims.UNFINISHED).update(
        error_code="model_unavailable", error=str(error), attempts=0
    )

"""Runs: cancel one, retry its failures, and process stored documents again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.formats import number_format
from django.utils.translation import gettext

from accounts.audit import Action
from accounts.services import require_editor
from common.errors import Conflict
from common.leases import retry_on_deadlock
from documents.ingestion import jobs
from documents.ingestion.registration import QUEUED_VALUES, open_items
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.services.audit import record
from documents.services.documents import create_run

#: Names that a message lists, and those that a program gets.
NAMED_IN_MESSAGE = 5
MAX_LISTED_NAMES = 200


@dataclass(frozen=True, slots=True)
class RetryResult:
    """The new run, and names of failed files that are not stored and must be uploaded again."""

    run: IngestionRun
    left_out: tuple[str, ...]


def cancel_run(*, run: IngestionRun, user: Any = None) -> IngestionRun:
    """End the run now. Ready documents stay, waiting ones are restored to their state before the
    run.

    `user` None is the site itself. No effect on a cancelled run; raises Conflict for one that has
    ended otherwise, and Forbidden.
    """
    if user is not None:
        require_editor(user=user, workspace=run.workspace)
    if jobs.request_cancellation(run.pk):
        record(Action.CANCELLED, run, user=user)
        jobs.carry_out_cancellation(run.pk)
    run.refresh_from_db()
    if run.cancel_requested_at is None:
        raise Conflict(
            gettext("Run {pk} has ended already: {state}. Nothing is left to cancel.").format(
                pk=run.pk, state=run.get_state_display().lower()
            )
        )
    return run


def retry_failed(*, run: IngestionRun, user: Any = None) -> RetryResult:
    """Queue the run's failed files again in a run of their own, from the stored files.

    Files that are not stored are left out: those that a command read in place, and those rejected
    before they were stored. Raises Conflict if nothing can be retried, and Forbidden.
    """
    if user is not None:
        require_editor(user=user, workspace=run.workspace)

    @transaction.atomic
    def retry() -> RetryResult:
        documents = list(retryable(run).select_for_update(of=("self",)).order_by("id"))
        not_stored = Q(document=None) | Q(
            document__status=Document.Status.FAILED, document__file=""
        )
        failed = run.items.filter(not_stored, state=IngestionItem.State.FAILED)
        names = failed.exclude(error_code="deleted").order_by("id")
        left_out = tuple(names.values_list("name", flat=True)[:MAX_LISTED_NAMES])
        if not documents and left_out:
            raise Conflict(
                gettext(
                    "The failed files of run {pk} are not stored here: {names}."
                    " Run the command again, or upload them again: what is ready is skipped."
                ).format(pk=run.pk, names=summarize_names(left_out))
            )
        if not documents:
            why = (
                gettext(
                    "The failed files of run {pk} were brought again or deleted meanwhile."
                    " Nothing is left to retry."
                )
                if run.failed
                else gettext("No file of run {pk} has failed. Nothing is left to retry.")
            )
            raise Conflict(why.format(pk=run.pk))
        again = IngestionRun.objects.create(
            workspace_id=run.workspace_id,
            collection_id=run.collection_id,
            user=user if getattr(user, "is_authenticated", False) else None,
            source=run.source,
            policy=run.policy,
            store_once=run.store_once,
            retry_of=run,
        )
        requeue_documents(again, documents)
        record(Action.RETRIED, run, user=user)
        return RetryResult(again, left_out)

    return retry_on_deadlock(retry)


def requeue_documents(run: IngestionRun, documents: Sequence[Document]) -> None:
    """Queue these documents, whose files are stored, as the items of a new run."""
    run.total, run.bytes = len(documents), sum(document.size for document in documents)
    run.save(update_fields=["total", "bytes", "updated_at"])
    open_items(run, documents, state=IngestionItem.State.WAITING)
    ids = [document.pk for document in documents]
    Document.objects.filter(pk__in=ids).update(**QUEUED_VALUES)
    from documents.tasks import enqueue  # noqa: PLC0415 (loads Celery)

    enqueue(ids)


def retryable(run: IngestionRun) -> QuerySet[Document]:
    """The run's documents that failed, still do, and have stored files."""
    failed = run.items.filter(state=IngestionItem.State.FAILED).values("document_id")
    return Document.objects.filter(id__in=failed, status=Document.Status.FAILED).exclude(file="")


def summarize_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - NAMED_IN_MESSAGE
    return ", ".join(names[:NAMED_IN_MESSAGE]) + (
        gettext(" and {number} more").format(number=number_format(more, force_grouping=True))
        if more > 0
        else ""
    )


@dataclass(frozen=True, slots=True)
class ReprocessResult:
    """The runs, one per collection, and the number of documents left out: without a stored file, or
    aliases of another document."""

    runs: tuple[IngestionRun, ...]
    left_out: int


def reingest_documents(*, documents: Sequence[Document], user: Any = None) -> ReprocessResult:
    """Have stored files parsed, chunked and embedded again by the workers, as if they were ingested
    anew.

    Unchanged chunks keep their vectors and ids. Superseded versions stay as they are. Raises
    Conflict if no file is stored, and Forbidden.
    """
    for workspace in {document.workspace for document in documents} if user is not None else ():
        require_editor(user=user, workspace=workspace)

    @transaction.atomic
    def reingest() -> ReprocessResult:
        wanted = Document.objects.filter(
            pk__in=[document.pk for document in documents], is_current=True, duplicate_of=None
        )
        stored = wanted.exclude(file="").defer("metadata", "declared")
        held = list(stored.select_for_update(of=("self",)).order_by("id"))
        if not held:
            raise Conflict(
                gettext(
                    "The files of these documents are not stored here. Upload them again, or"
                    " run the command again that read them."
                )
            )
        collections = Collection.objects.in_bulk({document.collection_id for document in held})
        runs: list[IngestionRun] = []
        for pk, collection in sorted(collections.items()):
            mine = [document for document in held if document.collection_id == pk]
            run = create_run(
                collection=collection,
                policy=IngestionRun.Policy.OVERWRITE,
                source="read again",
                user=user,
            )
            requeue_documents(run, mine)
            record(Action.REINGESTED, *mine)
            runs.append(run)
        return ReprocessResult(tuple(runs), left_out=len(documents) - len(held))

    return retry_on_deadlock(reingest)


@transaction.atomic
def reembed_documents(*, documents: Sequence[Document]) -> int:
    """Have a worker embed the passages of these documents again and index their words; returns the
    number of passages. Searches use the previous vectors meanwhile."""
    for collection in {document.collection for document in documents}:
        collection.require_vectors()
    record(Action.REEMBEDDED, *documents)
    from documents.tasks import enqueue_reindexing  # noqa: PLC0415 (loads Celery)

    enqueue_reindexing([document.pk for document in documents])
    return sum(document.chunk_count for document in documents)


@transaction.atomic
def reembed_collection(*, collection: Collection) -> int:
    """The same for all documents of a collection."""
    collection.require_vectors()
    rows = Document.objects.filter(collection=collection, chunk_count__gt=0)
    counts = dict(rows.order_by("pk").values_list("pk", "chunk_count"))
    record(Action.REEMBEDDED, collection, values={"passages": sum(counts.values())})
    from documents.tasks import enqueue_reindexing  # noqa: PLC0415 (loads Celery)

    enqueue_reindexing(list(counts))
    return sum(counts.values())

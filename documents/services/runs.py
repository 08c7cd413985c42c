"""Runs: cancelled while they work, and their failures tried again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.history import Action, Kind, note_change
from accounts.services import require_editor
from common.deadlocks import despite_deadlocks
from common.errors import Conflict
from documents.ingestion import cancelling
from documents.ingestion.registering import WAITING
from documents.models import Document, IngestionItem, IngestionRun

State = IngestionItem.State

#: Names that a message lists, and those that a program gets.
NAMED = 5
LISTED = 200


@dataclass(frozen=True, slots=True)
class Retry:
    """The new run, and the names of failed files that only their sender can bring again."""

    run: IngestionRun
    left_out: tuple[str, ...]


def cancel_run(*, run: IngestionRun, user: Any = None) -> IngestionRun:
    """End the run now. What is ready stays, what waits is put back as it was before the run.

    `user` None is the site itself. A run that is cancelled already stays so; raises Conflict for
    one that has ended otherwise, and Forbidden.
    """
    if user is not None:
        require_editor(user=user, workspace=run.workspace)
    if cancelling.request(run.pk):
        _note(Action.CANCELLED, run, user)
        cancelling.carry_out(run.pk)
    run.refresh_from_db()
    if run.cancel_requested_at is None:
        raise Conflict(
            f"Run {run.pk} has ended already: {run.get_state_display().lower()}. Nothing is left to"
            " cancel."
        )
    return run


def retry_failed(*, run: IngestionRun, user: Any = None) -> Retry:
    """Queue the run's failed files again, as a run of their own; nothing is sent anew.

    Files that are not stored here are left out: those that a command read in place, and those that
    were refused before they were stored. Raises Conflict where nothing can be retried, and
    Forbidden.
    """
    if user is not None:
        require_editor(user=user, workspace=run.workspace)
    return despite_deadlocks(lambda: _retry_failed(run, user))


def queue_again(run: IngestionRun, documents: Sequence[Document]) -> None:
    """Have these documents, whose files are stored, read by the workers as items of the run."""
    IngestionItem.objects.bulk_create(
        IngestionItem(
            workspace_id=run.workspace_id,
            run=run,
            document=document,
            name=document.source or document.key,
            size=document.size,
        )
        for document in documents
    )
    ids = [document.pk for document in documents]
    Document.objects.filter(pk__in=ids).update(**WAITING)
    from documents.tasks import enqueue  # noqa: PLC0415 (loads Celery)

    enqueue(ids)


@transaction.atomic
def _retry_failed(run: IngestionRun, user: Any) -> Retry:
    documents = list(retryable(run).select_for_update(of=("self",)).order_by("id"))
    left_out = tuple(_left_out(run))
    if not documents:
        raise Conflict(_nothing_to_retry(run, left_out))
    again = IngestionRun.objects.create(
        workspace_id=run.workspace_id,
        collection_id=run.collection_id,
        user=user if getattr(user, "is_authenticated", False) else None,
        source=run.source,
        policy=run.policy,
        store_once=run.store_once,
        retry_of=run,
        total=len(documents),
        bytes=sum(document.size for document in documents),
    )
    queue_again(again, documents)
    _note(Action.RETRIED, run, user)
    return Retry(again, left_out)


def _note(action: Action, run: IngestionRun, user: Any) -> None:
    note_change(
        action=action,
        kind=Kind.RUN,
        workspace_id=run.workspace_id,
        thing=run.pk,
        collection_id=run.collection_id,
        user=user,
    )


def retryable(run: IngestionRun) -> QuerySet[Document]:
    """The run's documents that have failed, still do, and have their files stored here."""
    failed = run.items.filter(state=State.FAILED).values("document_id")
    return Document.objects.filter(id__in=failed, status=Document.Status.FAILED).exclude(file="")


def _left_out(run: IngestionRun) -> Sequence[str]:
    not_stored = Q(document=None) | Q(document__status=Document.Status.FAILED, document__file="")
    failed = run.items.filter(not_stored, state=State.FAILED)
    names = failed.exclude(error_code="deleted").order_by("id")
    return list(names.values_list("name", flat=True)[:LISTED])


def _nothing_to_retry(run: IngestionRun, left_out: Sequence[str]) -> str:
    if left_out:
        return (
            f"The failed files of run {run.pk} are not stored here: {in_words(left_out)}. Run the"
            " command again, or upload them again: what is ready is skipped."
        )
    if run.failed:
        return (
            f"The failed files of run {run.pk} were brought again or deleted meanwhile. Nothing is"
            " left to retry."
        )
    return f"No file of run {run.pk} has failed. Nothing is left to retry."


def in_words(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")

"""Documents read again, or embedded again, by the workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from accounts.history import Action, Kind, note_change
from accounts.services import require_editor
from common.deadlocks import despite_deadlocks
from common.errors import Conflict
from documents.models import Collection, Document, IngestionRun
from documents.services.documents import create_run
from documents.services.runs import queue_again


@dataclass(frozen=True, slots=True)
class Again:
    """The runs, one a collection, and how many documents are left out: those whose files are not
    stored here, and those that only lean on another document."""

    runs: tuple[IngestionRun, ...]
    left_out: int


def reingest_documents(*, documents: Sequence[Document], user: Any = None) -> Again:
    """Have stored files read, cut and embedded anew, as if they had been brought again.

    What is the same afterwards keeps its vectors and its ids. Superseded versions stay as they are.
    Raises Conflict where no file is stored, and Forbidden.
    """
    for workspace in {document.workspace for document in documents} if user is not None else ():
        require_editor(user=user, workspace=workspace)
    return despite_deadlocks(lambda: _reingest(documents, user))


@transaction.atomic
def _reingest(documents: Sequence[Document], user: Any) -> Again:
    wanted = Document.objects.filter(
        pk__in=[document.pk for document in documents], is_current=True, duplicate_of=None
    )
    stored = wanted.exclude(file="").defer("metadata", "declared")
    held = list(stored.select_for_update(of=("self",)).order_by("id"))
    if not held:
        raise Conflict(
            "The files of these documents are not stored here. Upload them again, or run the"
            " command again that read them."
        )
    collections = Collection.objects.in_bulk({document.collection_id for document in held})
    made = tuple(
        _run(collection, [each for each in held if each.collection_id == pk], user)
        for pk, collection in sorted(collections.items())
    )
    return Again(made, left_out=len(documents) - len(held))


def _run(collection: Collection, documents: Sequence[Document], user: Any) -> IngestionRun:
    run = create_run(
        collection=collection,
        policy=IngestionRun.Policy.OVERWRITE,
        source="read again",
        user=user,
    )
    run.total, run.bytes = len(documents), sum(document.size for document in documents)
    run.save(update_fields=["total", "bytes", "updated_at"])
    queue_again(run, documents)
    note_change(
        action=Action.REINGESTED,
        kind=Kind.DOCUMENT,
        workspace_id=run.workspace_id,
        thing=[document.pk for document in documents],
        collection_id=collection.pk,
    )
    return run


@transaction.atomic
def reembed_documents(*, documents: Sequence[Document]) -> int:
    """Have the passages of these documents embedded anew by a worker, and their words counted;
    how many passages there are. Searches go on with the vectors of before."""
    for collection in sorted({document.collection_id for document in documents}):
        mine = [each for each in documents if each.collection_id == collection]
        note_change(
            action=Action.REEMBEDDED,
            kind=Kind.DOCUMENT,
            workspace_id=mine[0].workspace_id,
            thing=[each.pk for each in mine],
            collection_id=collection,
        )
    from documents.tasks import enqueue_reindexing  # noqa: PLC0415 (loads Celery)

    enqueue_reindexing([document.pk for document in documents])
    return sum(document.chunk_count for document in documents)


@transaction.atomic
def reembed_collection(*, collection: Collection) -> int:
    """The same for all documents of a collection."""
    rows = Document.objects.filter(collection=collection, chunk_count__gt=0)
    counts = dict(rows.order_by("pk").values_list("pk", "chunk_count"))
    note_change(
        action=Action.REEMBEDDED,
        kind=Kind.COLLECTION,
        workspace_id=collection.workspace_id,
        thing=collection.pk,
        values={"passages": sum(counts.values())},
    )
    from documents.tasks import enqueue_reindexing  # noqa: PLC0415 (loads Celery)

    enqueue_reindexing(list(counts))
    return sum(counts.values())

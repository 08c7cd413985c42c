"""Documents removed: after the commit no table and no stored file holds their text."""

from collections.abc import Iterable, Sequence

from django.db import connection, transaction

from accounts.history import Action, Kind, note_change
from common.errors import InvalidInput
from documents import lexical_index
from documents.ingestion import listeners, runs, settling
from documents.ingestion.duplicates import hand_over
from documents.ingestion.forgetting import forget_names
from documents.ingestion.media import delete_files
from documents.ingestion.runs import open_runs
from documents.models import Chunk, Document, IngestionItem

# In the order of their ids, as everywhere, with the duplicates that lean on them.
_HOLD = """
    SELECT id, duplicate_of_id FROM documents_document
    WHERE id = ANY(%(ids)s) OR duplicate_of_id = ANY(%(ids)s)
    ORDER BY id FOR UPDATE
"""


def delete_document(*, document: Document) -> None:
    """Remove a document with all its versions."""
    delete_documents(documents=[document])


def delete_documents(*, documents: Sequence[Document]) -> None:
    """Remove documents with all their versions, all or none."""
    with transaction.atomic():
        run_ids = _remove(_held_versions(documents))
    for run_id in run_ids:
        settling.finish_run(run_id)


def delete_version(*, document: Document) -> None:
    """Remove one superseded version. Raises InvalidInput for the current one."""
    delete_versions(documents=[document])


def delete_versions(*, documents: Sequence[Document]) -> None:
    """Remove superseded versions, all or none. Raises InvalidInput for one that is current."""
    with transaction.atomic():
        held = _hold({document.pk for document in documents})
        if any(document.is_current for document in held):
            raise InvalidInput(
                "The current version cannot be removed alone. Delete the document with all its"
                " versions.",
                field="versions",
            )
        run_ids = _remove(held)
    for run_id in run_ids:
        settling.finish_run(run_id)


def prune_versions(*, document: Document, keep: int) -> int:
    """Remove all but the `keep` newest versions and the current one; how many that were."""
    if keep < 1:
        raise InvalidInput("At least one version must be kept.", field="keep")
    old = [row for row in document.versions[keep:] if not row.is_current]
    if old:
        delete_versions(documents=old)
    return len(old)


def _held_versions(documents: Sequence[Document]) -> list[Document]:
    """All versions of the documents, held. One that is added while this waits is found after."""
    held: list[Document] = []
    while True:
        wanted = _version_ids(documents)
        if wanted <= {row.pk for row in held}:
            return held
        held = _hold(wanted | {row.pk for row in held})


def _version_ids(documents: Sequence[Document]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT document.id FROM documents_document AS document"
            " JOIN unnest(%s::bigint[], %s::varchar[]) AS wanted (collection_id, key)"
            " USING (collection_id, key)",
            [[row.collection_id for row in documents], [row.key for row in documents]],
        )
        return {pk for (pk,) in cursor.fetchall()}


def _hold(ids: set[int]) -> list[Document]:
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, {"ids": list(ids)})
    return list(Document.objects.filter(pk__in=ids).order_by("pk"))


def _remove(documents: Sequence[Document]) -> Iterable[int]:
    """Remove held rows; the runs that waited for them and may be over now."""
    ids = [document.pk for document in documents]
    hand_over(dict.fromkeys(ids))
    chunks = Chunk.objects.filter(document__in=ids)
    lexical_index.forget(chunks)
    listeners.remove_chunks(chunks)
    run_ids = open_runs(ids)
    runs.settle_items(
        ids,
        state=IngestionItem.State.FAILED,
        error_code="deleted",
        error="The document was deleted before it was ingested.",
    )
    forget_names(documents)
    files = [str(document.file.name) for document in documents if document.file]
    Document.objects.filter(pk__in=ids).delete()
    _note(documents)
    transaction.on_commit(lambda: delete_files(files))
    return run_ids


def _note(documents: Sequence[Document]) -> None:
    """One change a collection."""
    for collection in {document.collection_id for document in documents}:
        removed = [each for each in documents if each.collection_id == collection]
        note_change(
            action=Action.DELETED,
            kind=Kind.DOCUMENT,
            workspace_id=removed[0].workspace_id,
            thing=[each.pk for each in removed],
            collection_id=collection,
        )

"""Delete documents: after the commit no table and no stored file holds their text or name. Begin
with `delete_documents`."""

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from pathlib import PurePosixPath
from typing import Any, Literal

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext, gettext_noop

from accounts.audit import Action
from accounts.models import IdempotencyRecord
from common.errors import InvalidInput
from documents import lexical_index
from documents.ingestion import jobs, listeners
from documents.ingestion.containers import PART_MARK
from documents.ingestion.duplicates import promote_next_original
from documents.ingestion.jobs import open_runs
from documents.ingestion.stored_files import delete_files
from documents.models import Chunk, Document, IngestionItem, IngestionRun
from documents.page_cache import page_cache
from documents.services.audit import record

#: Documents whose names are looked for by one query.
NAMES_BATCH = 100
#: Fields of answers that name no document, though they may have the same words.
FIELDS_WITHOUT_NAMES = {"collection", "policy", "state", "url", "items_url", "events_url"}
#: A shorter name is looked for as a whole text only: it may stand in any word.
MIN_NAME_CHARACTERS = 4
#: A synchronisation may delete as many unasked, whatever their share.
FREE_DELETIONS = 10
DELETED_NAME = "deleted document"
DELETED_ERROR = gettext_noop("The document was deleted. Why it failed is no longer known.")


def forget_names(documents: Sequence[Document]) -> None:
    """Remove the names of documents that are about to be deleted from the runs that ingested them:
    file names say what a text is about, and error messages contain file names."""
    collections = {document.collection_id for document in documents}
    names = {document.source for document in documents} - {""}
    # A file that failed before it had a document is known by its name alone.
    nameless = Q(document=None, run__collection__in=collections, name__in=names)
    items = IngestionItem.objects.filter(Q(document__in=documents) | nameless)
    # A run's source may be the name of a single file.
    runs = IngestionRun.objects.filter(items__in=items).distinct()
    names = _document_names(documents)
    run_ids: list[int] = []
    for run in runs.exclude(source="").only("pk", "source"):
        paths = run.source.split(", ")
        parts = [run.source, *paths, *(PurePosixPath(path).name for path in paths)]
        if not names.isdisjoint(parts):
            run_ids.append(run.pk)
    IngestionRun.objects.filter(pk__in=run_ids).update(source=DELETED_NAME)
    named = IngestionItem.objects.filter(pk__in=list(items.values_list("pk", flat=True)))
    named.exclude(error="").exclude(error_code="deleted").update(error=DELETED_ERROR)
    named.update(name=DELETED_NAME)
    # Stored responses of requests with an `Idempotency-Key` contain names of runs and files.
    for start in range(0, len(documents), NAMES_BATCH):
        part = documents[start : start + NAMES_BATCH]
        names = _document_names(part)
        written = [Q(body__contains=json.dumps(name, ensure_ascii=False)[1:-1]) for name in names]
        records = IdempotencyRecord.objects.filter(
            workspace__in={document.workspace_id for document in part}
        )
        for stored in records.filter(reduce(or_, written)):
            answer = _without_names(json.loads(stored.body), names)
            records.filter(pk=stored.pk).update(body=json.dumps(answer, ensure_ascii=False))


def _without_names(value: Any, names: set[str]) -> Any:
    """A JSON value with the names removed from its strings."""
    match value:
        case dict():
            return {
                name: each if name in FIELDS_WITHOUT_NAMES else _without_names(each, names)
                for name, each in value.items()
            }
        case list():
            return [_without_names(each, names) for each in value]
        case str() if any(
            (name == value or (len(name) >= MIN_NAME_CHARACTERS and name in value))
            for name in names
        ):
            return DELETED_NAME
    return value


def _document_names(documents: Iterable[Document]) -> set[str]:
    """Every name that the documents had."""
    return {
        name
        for document in documents
        for name in (
            document.key,
            document.title,
            document.source,
            PurePosixPath(document.source).name,
        )
        if name
    }


# Locked in the order of ids, as everywhere, with the aliases.
_LOCK_WITH_DUPLICATES = """
    SELECT id, duplicate_of_id FROM documents_document
    WHERE id = ANY(%(ids)s) OR duplicate_of_id = ANY(%(ids)s)
    ORDER BY id FOR UPDATE
"""


def deletion_doubt(
    *,
    gone: int,
    known: int,
    listed: int,
    percent: int,
    allow_empty: bool = False,
    allow_deletions: bool = False,
) -> Literal["", "empty", "many"]:
    """Why a synchronisation does not delete `gone` of `known` documents unasked: `empty` if their
    place lists nothing, `many` if they are more than FREE_DELETIONS and than `percent`."""
    if gone and not listed and not allow_empty:
        return "empty"
    if gone > FREE_DELETIONS and 100 * gone > percent * known and not allow_deletions:
        return "many"
    return ""


def delete_document(*, document: Document) -> None:
    """Delete a document with all its versions."""
    delete_documents(documents=[document])


def delete_documents(*, documents: Sequence[Document]) -> None:
    """Delete documents with all their versions, and containers with their parts, all or none."""
    with transaction.atomic():
        run_ids = _remove_documents(_lock_versions([*documents, *parts_of(documents)]))
    for run_id in run_ids:
        jobs.finish_run(run_id)


def parts_of(documents: Sequence[Document]) -> list[Document]:
    """The documents that were taken out of these, and out of those."""
    found: list[Document] = []
    level = list(documents)
    while level:
        rows = Document.objects.filter(
            pk__in=[document.pk for document in level], declared__has_key="parts"
        )
        values = list(rows.values_list("collection", "key", "declared__parts"))
        level = [part for each in values for part in parts_by_name(*each)]
        found += level
    return found


def parts_by_name(
    collection_id: int,
    key: str,
    names: Iterable[str],
    *,
    among: QuerySet[Document] | None = None,
) -> list[Document]:
    """The current documents of the named parts of the container with this key; `among` narrows
    them, as to what somebody may see."""
    keys = [f"{key}{PART_MARK}{name}" for name in names]
    rows = (Document.objects.all() if among is None else among).filter(
        collection=collection_id, key__in=keys, is_current=True, declared__has_key="part_of"
    )
    return list(rows.order_by("pk")) if keys else []


def delete_version(*, document: Document) -> None:
    """Delete one superseded version. Raises InvalidInput for the current one."""
    delete_versions(documents=[document])


def delete_versions(*, documents: Sequence[Document]) -> None:
    """Delete superseded versions, all or none. Raises InvalidInput if one is current."""
    with transaction.atomic():
        held = _lock_documents({document.pk for document in documents})
        if any(document.is_current for document in held):
            raise InvalidInput(
                gettext(
                    "The current version cannot be removed alone. Delete the document with"
                    " all its versions."
                ),
                field="versions",
            )
        run_ids = _remove_documents(held)
    for run_id in run_ids:
        jobs.finish_run(run_id)


def prune_versions(*, document: Document, keep: int) -> int:
    """Delete all but the current version and the `keep` newest ones; returns how many were
    deleted."""
    if keep < 1:
        raise InvalidInput(gettext("At least one version must be kept."), field="keep")
    old = [row for row in document.versions[keep:] if not row.is_current]
    if old:
        delete_versions(documents=old)
    return len(old)


def _lock_versions(documents: Sequence[Document]) -> list[Document]:
    """All versions of the documents, locked. Versions added while this waits are found by a second
    look."""
    held: list[Document] = []
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT document.id FROM documents_document AS document"
                " JOIN unnest(%s::bigint[], %s::varchar[]) AS wanted (collection_id, key)"
                " USING (collection_id, key)",
                [[row.collection_id for row in documents], [row.key for row in documents]],
            )
            wanted = {pk for (pk,) in cursor.fetchall()}
        if wanted <= {row.pk for row in held}:
            return held
        held = _lock_documents(wanted | {row.pk for row in held})


def _lock_documents(ids: set[int]) -> list[Document]:
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_WITH_DUPLICATES, {"ids": list(ids)})
    return list(Document.objects.filter(pk__in=ids).order_by("pk"))


def _remove_documents(documents: Sequence[Document]) -> Iterable[int]:
    """Delete locked rows; returns the runs that waited for them and may have ended."""
    ids = [document.pk for document in documents]
    promote_next_original(dict.fromkeys(ids))
    chunks = Chunk.objects.filter(document__in=ids)
    lexical_index.forget_words(chunks)
    listeners.remove_chunks(chunks)
    run_ids = open_runs(ids)
    jobs.settle_items(
        ids,
        state=IngestionItem.State.FAILED,
        error_code="deleted",
        error=gettext_noop("The document was deleted before it was ingested."),
    )
    forget_names(documents)
    files = [str(document.file.name) for document in documents if document.file]
    hashes = {document.source_sha256 for document in documents if document.source_sha256}
    Document.objects.filter(pk__in=ids).delete()
    record(Action.DELETED, *documents)
    transaction.on_commit(lambda: delete_files(files))
    # Of other documents with the same bytes they are rendered again.
    transaction.on_commit(lambda: page_cache.forget(hashes))
    return run_ids

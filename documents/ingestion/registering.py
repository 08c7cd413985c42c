"""Rows for documents that are about to be ingested, many at a time."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from common.errors import Conflict
from documents.ingestion import admitting, versions
from documents.ingestion.locks import share_collections
from documents.ingestion.sources import Source
from documents.models import Collection, Document, IngestionItem, IngestionRun, StagedDocument

#: What a new text of a known document starts with. A claim that somebody has on an older text
#: ends here: the newest text wins.
WAITING = {
    "status": Document.Status.QUEUED,
    "error_code": "",
    "error": "",
    "attempts": 0,
    "claimed_by": None,
    "claimed_until": None,
}


@transaction.atomic
def register_documents(
    collection: Collection, sources: Sequence[Source], *, run: IngestionRun | None, state: str = ""
) -> dict[str, Document]:
    """The rows that the texts go into, by key, waiting, and an open item on `run`, if there is one,
    for each. Under the run's policy `new_version` they may be such as are not current yet. Raises
    Conflict where one that others made meanwhile refuses its text."""
    share_collections([collection.pk])
    by_key = {source.key: source for source in sources}
    documents = versions.hold_for_writing(
        collection,
        by_key,
        policy=run.policy if run is not None else IngestionRun.Policy.OVERWRITE,
        make=lambda key: _new(collection, by_key[key]),
    )
    for key, document in documents.items():
        why = admitting.refused(by_key[key], document, user=run.user if run is not None else None)
        if why is not None:
            raise Conflict(f"{why.name}: {why.reason}")
    # An older text that waits for its vectors must not be loaded after this.
    StagedDocument.objects.filter(document__in=documents.values()).delete()
    for document in documents.values():
        _renew(document, by_key[document.key])
    _save_renewed(documents.values())
    if run is not None:
        IngestionItem.objects.bulk_create(
            _item(run, source, documents[source.key], state) for source in sources
        )
    return documents


def _new(collection: Collection, source: Source) -> Document:
    return Document(
        workspace_id=collection.workspace_id,
        collection=collection,
        key=source.key,
        title=str(source.declared.get("title", ""))[:500],
        access=None if source.access is None else list(source.access),
    )


def _renew(document: Document, source: Source) -> None:
    document.source = source.name[:1024]
    document.declared = source.declared
    document.url = source.declared.get("url", "")
    document.size = source.size
    document.updated_at = timezone.now()
    for name, value in WAITING.items():
        setattr(document, name, value)


#: Bulk updates in Django's way take a thousand documents four seconds, most of it in Python.
_RENEW = """
    UPDATE documents_document
    SET source = %s, declared = %s, url = %s, size = %s, updated_at = %s,
        status = %s, error_code = %s, error = %s, attempts = %s, claimed_by = %s, claimed_until = %s
    WHERE id = %s
"""


def _save_renewed(documents: Iterable[Document]) -> None:
    rows: list[Any] = [
        (
            document.source,
            Jsonb(document.declared),
            document.url,
            document.size,
            document.updated_at,
            *WAITING.values(),
            document.pk,
        )
        for document in documents
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_RENEW, rows)


def _item(run: IngestionRun, source: Source, document: Document, state: str) -> IngestionItem:
    return IngestionItem(
        workspace_id=run.workspace_id,
        run=run,
        document=document,
        name=source.name[:1024],
        size=source.size,
        state=state,
    )

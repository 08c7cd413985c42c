"""Rows for documents that are about to be ingested, many at a time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from psycopg.types.json import Jsonb

from common.clock import database_now
from common.errors import Conflict
from documents.ingestion import admitting, claims, versions
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
    collection: Collection,
    sources: Sequence[Source],
    *,
    run: IngestionRun | None,
    state: str = "",
    token: UUID | None = None,
) -> dict[str, Document]:
    """The rows that the texts go into, by key, waiting, or claimed at once under `token`; and an
    open item on `run`, if there is one, for each.

    Under the run's policy `new_version` they may be such as are not current yet. Raises Conflict
    where one that others made meanwhile refuses its text.
    """
    share_collections([collection.pk])
    by_key = {source.key: source for source in sources}
    waiting: Mapping[str, Any] = WAITING
    if token is not None:
        waiting = WAITING | {
            "status": Document.Status.PROCESSING,
            "attempts": 1,
            "claimed_by": token,
            "claimed_until": database_now() + claims.lease(),
        }
    made: dict[str, Document] = {}

    def make(key: str) -> Document:
        made[key] = Document(
            workspace_id=collection.workspace_id,
            collection=collection,
            key=key,
            title=str(by_key[key].declared.get("title", ""))[:500],
            access=None if by_key[key].access is None else list(by_key[key].access or ()),
        )
        renew(made[key], by_key[key], waiting)
        return made[key]

    documents = versions.hold_for_writing(
        collection,
        by_key,
        policy=run.policy if run is not None else IngestionRun.Policy.OVERWRITE,
        make=make,
    )
    for key, document in documents.items():
        why = admitting.refused(by_key[key], document, user=run.user if run is not None else None)
        if why is not None:
            raise Conflict(f"{why.name}: {why.reason}")
    known = [row for row in documents.values() if row is not made.get(row.key)]
    for document in known:
        document.collection = collection
        renew(document, by_key[document.key], waiting)
    if known:
        # An older text that waits for its vectors must not be loaded after this.
        StagedDocument.objects.filter(document__in=known).delete()
        _save_renewed(known, waiting)
    if run is not None:
        IngestionItem.objects.bulk_create(
            _item(run, source, documents[source.key], state) for source in sources
        )
    return documents


def renew(document: Document, source: Source, waiting: Mapping[str, Any] = WAITING) -> None:
    """Have the row say where its new text is from, and that it waits for it."""
    document.source = source.name[:1024]
    document.declared = source.declared
    document.url = source.declared.get("url", "")
    document.size = source.size
    for name, value in waiting.items():
        setattr(document, name, value)


#: Bulk updates in Django's way take a thousand documents four seconds, most of it in Python.
_RENEW = """
    UPDATE documents_document AS document
    SET source = new.source, declared = new.declared, url = new.url, size = new.size,
        updated_at = statement_timestamp(), status = %(status)s, error_code = %(error_code)s,
        error = %(error)s, attempts = %(attempts)s, claimed_by = %(claimed_by)s,
        claimed_until = %(claimed_until)s
    FROM jsonb_to_recordset(%(rows)s)
         AS new (id bigint, source text, declared jsonb, url text, size bigint)
    WHERE document.id = new.id
"""


def _save_renewed(documents: Iterable[Document], waiting: Mapping[str, Any]) -> None:
    rows = [
        {
            "id": document.pk,
            "source": document.source,
            "declared": document.declared,
            "url": document.url,
            "size": document.size,
        }
        for document in documents
    ]
    parameters: dict[str, Any] = {**waiting, "rows": Jsonb(rows)}
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, parameters)


def _item(run: IngestionRun, source: Source, document: Document, state: str) -> IngestionItem:
    return IngestionItem(
        workspace_id=run.workspace_id,
        run=run,
        document=document,
        name=source.name[:1024],
        size=source.size,
        state=state,
    )

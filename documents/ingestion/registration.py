"""Rows for documents that are about to be ingested, many at a time. Begin with
`register_documents`; `access_refusal` decides whether a text may replace that of an existing
document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from psycopg.types.json import Jsonb

from common.errors import Conflict
from common.leases import database_now
from documents.ingestion import jobs, versions
from documents.ingestion.concurrency import share_collection_locks
from documents.ingestion.preparation import Recipe
from documents.ingestion.sources import (
    MAX_KEY_BYTES,
    MAX_KEY_CHARACTERS,
    BrokenSource,
    Content,
    Entry,
    Source,
    read_content,
)
from documents.models import Collection, Document, IngestionItem, IngestionRun, StagedDocument
from reading.parsers import ParseError

HIDDEN_KEY = "This key belongs to a document that you cannot see. Use another one."
WIDER_ACCESS = (
    "A document with this key exists, and people outside the access list can see it."
    " Change its access first, or use another key."
)


def access_refusal(
    source: Source, document: Document | None, *, user: Any
) -> tuple[str, str] | None:
    """Why the text may not replace that of `document`, as a code and a sentence; None if it may.

    A document keeps its access list. So a text for few people is not put where others can read it,
    and nobody writes into a document that they may not see. `user` None is the site itself.
    """
    if document is None:
        return None
    if (
        user is not None
        and document.access is not None
        and not Document.objects.visible_to(user).filter(pk=document.pk).exists()
    ):
        return "taken", HIDDEN_KEY
    if source.access is not None and not (
        document.access is not None and set(document.access) <= set(source.access)
    ):
        return "access", WIDER_ACCESS
    return None


def read_if_changed(
    run: IngestionRun, entry: Entry, known: Mapping[str, Document], recipe: Recipe
) -> Content | IngestionItem:
    """The source's content if it must be ingested; else the item that says why not, unsaved.
    `known` are the documents to compare with, and the containers of parts, by key."""
    if isinstance(entry, BrokenSource):
        return jobs.settled_item(entry, code=entry.code, reason=entry.reason)
    if not 0 < len(entry.key) <= MAX_KEY_CHARACTERS or len(entry.key.encode()) > MAX_KEY_BYTES:
        reason = (
            f"The path is longer than {MAX_KEY_CHARACTERS:,} characters or"
            f" {MAX_KEY_BYTES:,} bytes. Shorten it."
        )
        return jobs.settled_item(entry, code="malformed", reason=reason)
    document = known.get(entry.key)
    try:
        content = read_content(entry, max_bytes=settings.MAX_UPLOAD_BYTES)
    except ParseError as error:
        return jobs.settled_item(entry, code=error.code, reason=str(error), document=document)
    # A part that is new is put into its container.
    if refusal := access_refusal(entry, document or known.get(entry.part_of), user=run.user):
        return jobs.settled_item(entry, code=refusal[0], reason=refusal[1])
    digest = recipe.digest(entry.declared)
    if document is not None and document.is_unchanged(run.policy, content.sha256, digest):
        return jobs.settled_item(entry, IngestionItem.State.SKIPPED, document=document)
    return content


#: Column values of a document with a new text. Claims on an older text end: the newest wins.
QUEUED_VALUES = {
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
    """The rows for the texts, by key, queued or claimed at once under `token`; and an open item on
    `run`, if given, for each.

    Under the policy `new_version` they may be rows that are not current yet. Raises Conflict if a
    row that others made meanwhile does not admit its text.
    """
    share_collection_locks([collection.pk])
    by_key = {source.key: source for source in sources}
    waiting: Mapping[str, Any] = QUEUED_VALUES
    if token is not None:
        waiting = QUEUED_VALUES | {
            "status": Document.Status.PROCESSING,
            "attempts": 1,
            "claimed_by": token,
            "claimed_until": database_now() + jobs.lease_duration(),
        }
    made: dict[str, Document] = {}
    containers = {source.part_of for source in sources if source.part_of}
    current = Document.objects.filter(collection=collection, key__in=containers, is_current=True)
    container_access = dict(current.values_list("key", "access")) if containers else {}

    def make(key: str) -> Document:
        access = container_access.get(by_key[key].part_of, by_key[key].access)
        made[key] = Document(
            workspace_id=collection.workspace_id,
            collection=collection,
            key=key,
            title=str(by_key[key].declared.get("title", ""))[:500],
            access=None if access is None else list(access),
        )
        queue_new_text(made[key], by_key[key], waiting)
        return made[key]

    documents = versions.lock_for_writing(
        collection,
        by_key,
        policy=run.policy if run is not None else IngestionRun.Policy.OVERWRITE,
        make=make,
    )
    for key, document in documents.items():
        user = run.user if run is not None else None
        if refusal := access_refusal(by_key[key], document, user=user):
            raise Conflict(f"{by_key[key].name}: {refusal[1]}")
    known = [row for row in documents.values() if row is not made.get(row.key)]
    for document in known:
        document.collection = collection
        queue_new_text(document, by_key[document.key], waiting)
    if known:
        # An older text that waits for its vectors must not be loaded after this.
        StagedDocument.objects.filter(document__in=known).delete()
        names = ("id", "source", "declared", "url", "size")
        rows = [{name: getattr(document, name) for name in names} for document in known]
        parameters: dict[str, Any] = {**waiting, "rows": Jsonb(rows)}
        with connection.cursor() as cursor:
            cursor.execute(_SAVE_QUEUED, parameters)
    if run is not None:
        open_items(run, [documents[source.key] for source in sources], state=state)
    return documents


def open_items(run: IngestionRun, documents: Iterable[Document], *, state: str) -> None:
    """Create an open item on the run for each of the documents."""
    IngestionItem.objects.bulk_create(
        IngestionItem(
            workspace_id=run.workspace_id,
            run=run,
            document=document,
            name=document.source or document.key,
            size=document.size,
            state=state,
        )
        for document in documents
    )


def queue_new_text(
    document: Document, source: Source, waiting: Mapping[str, Any] = QUEUED_VALUES
) -> None:
    """Set the row's source to its new text, and queue it."""
    document.source = source.name[:1024]
    document.declared = source.declared
    document.url = source.declared.get("url", "")
    document.size = source.size
    for name, value in waiting.items():
        setattr(document, name, value)


#: Bulk updates in Django's way take a thousand documents four seconds, most of it in Python.
_SAVE_QUEUED = """
    UPDATE documents_document AS document
    SET source = new.source, declared = new.declared, url = new.url, size = new.size,
        updated_at = statement_timestamp(), status = %(status)s, error_code = %(error_code)s,
        error = %(error)s, attempts = %(attempts)s, claimed_by = %(claimed_by)s,
        claimed_until = %(claimed_until)s
    FROM jsonb_to_recordset(%(rows)s)
         AS new (id bigint, source text, declared jsonb, url text, size bigint)
    WHERE document.id = new.id
"""

"""Rows for documents that are about to be ingested, many at a time."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

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
    collection: Collection, sources: Sequence[Source], *, run: IngestionRun, state: str
) -> dict[str, Document]:
    """The documents' rows by key, waiting, and an open item on `run` for each."""
    by_key = {source.key: source for source in sources}
    # Two that register the same new key at once: the second waits for the first, then finds it.
    Document.objects.bulk_create(
        [_new(collection, source) for source in by_key.values()], ignore_conflicts=True
    )
    documents = {
        document.key: document
        for document in Document.objects.select_for_update()
        .filter(collection=collection, key__in=by_key, is_current=True)
        .order_by("id")
    }
    # An older text that waits for its vectors must not be loaded after this.
    StagedDocument.objects.filter(document__in=documents.values()).delete()
    for document in documents.values():
        _renew(document, by_key[document.key])
    Document.objects.bulk_update(
        documents.values(), ["source", "declared", "url", "size", "updated_at", *WAITING]
    )
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
    )


def _renew(document: Document, source: Source) -> None:
    document.source = source.name[:1024]
    document.declared = source.declared
    document.url = source.declared.get("url", "")
    document.size = source.size
    document.updated_at = timezone.now()
    for name, value in WAITING.items():
        setattr(document, name, value)


def _item(run: IngestionRun, source: Source, document: Document, state: str) -> IngestionItem:
    return IngestionItem(
        workspace_id=run.workspace_id,
        run=run,
        document=document,
        name=source.name[:1024],
        size=source.size,
        state=state,
    )

"""Rows for documents that are about to be ingested."""

from documents.ingestion.sources import Source
from documents.models import Collection, Document, IngestionItem, IngestionRun


def register_document(
    collection: Collection, source: Source, *, run: IngestionRun, state: str
) -> Document:
    """The document's row, waiting, and an open item for it on `run`.

    A claim that somebody has on an older text of it ends here: the newest text wins.
    """
    document, _ = Document.objects.update_or_create(
        collection=collection,
        key=source.key,
        workspace_id=collection.workspace_id,
        is_current=True,
        defaults={
            "source": source.name[:1024],
            "declared": source.declared,
            "url": source.declared.get("url", ""),
            "size": source.size,
            "status": Document.Status.QUEUED,
            "error_code": "",
            "error": "",
            "attempts": 0,
            "claimed_by": None,
            "claimed_until": None,
        },
        create_defaults={
            "source": source.name[:1024],
            "title": str(source.declared.get("title", ""))[:500],
            "declared": source.declared,
            "url": source.declared.get("url", ""),
            "size": source.size,
        },
    )
    IngestionItem.objects.create(
        workspace_id=run.workspace_id,
        run=run,
        document=document,
        name=source.name[:1024],
        size=source.size,
        state=state,
    )
    return document

"""Entries of the audit log about rows of this app."""

from collections import defaultdict
from typing import Any

from accounts.audit import Action, Kind, record_change
from documents.models import Chunk, Collection, Document, EmbeddingSpace, IngestionRun

Recorded = Chunk | Collection | Document | EmbeddingSpace | IngestionRun

_KINDS: dict[type[Recorded], Kind] = {
    Chunk: Kind.CHUNK,
    Collection: Kind.COLLECTION,
    Document: Kind.DOCUMENT,
    EmbeddingSpace: Kind.SPACE,
    IngestionRun: Kind.RUN,
}


def record(action: Action, *rows: Recorded, **more: Any) -> None:
    """Record in this transaction that `action` was done to these rows, which are of one kind: one
    entry per collection. `more` goes to `accounts.audit.record_change`."""
    by_collection: dict[int | None, list[Recorded]] = defaultdict(list)
    for row in rows:
        own = row.pk if isinstance(row, Collection) else getattr(row, "collection_id", None)
        by_collection[own].append(row)
    for collection_id, mine in sorted(by_collection.items(), key=lambda item: item[0] or 0):
        record_change(
            action=action,
            kind=_KINDS[type(mine[0])],
            workspace_id=getattr(mine[0], "workspace_id", None),
            object_id=[row.pk for row in mine],
            collection_id=collection_id,
            document_id=getattr(mine[0], "document_id", None),
            **more,
        )

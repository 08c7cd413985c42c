"""Whether a document of an export is there just so."""

from collections.abc import Sequence
from typing import Any

from documents.languages import configuration
from documents.models import Chunk, Document
from documents.transfer.reading import ImportedDocument

Shape = tuple[Any, ...]
_SHAPE = ("content_sha256", "start", "end", "page", "parent", "token_count", "metadata", "language")


def chunks_of(document_ids: Sequence[int]) -> dict[int, list[Shape]]:
    """What of each chunk would be loaded, in their order."""
    found: dict[int, list[Shape]] = {}
    rows = Chunk.objects.filter(document__in=document_ids, embedding__isnull=False)
    ordered = rows.order_by("document_id", "ordinal").values_list("document_id", *_SHAPE)
    for document_id, *shape in ordered.iterator(chunk_size=2000):
        found.setdefault(document_id, []).append(tuple(shape))
    return found


def is_same(entry: ImportedDocument, row: Document, chunks: Sequence[Shape]) -> bool:
    """Whether importing it would change nothing but times."""
    names = (
        *("title", "media_type", "rendering", "language", "metadata", "declared", "access"),
        *("source_sha256", "content_sha256"),
    )
    return (
        row.status == Document.Status.READY
        and all(getattr(row, name) == getattr(entry, name) for name in names)
        and (row.duplicate_of.key if row.is_link and row.duplicate_of else None)
        == entry.stored_with
        and list(chunks) == [_shape(entry, place) for place in range(len(entry.chunks))]
    )


def _shape(entry: ImportedDocument, place: int) -> Shape:
    chunk = entry.chunks[place]
    return (
        chunk.content_sha256,
        chunk.start,
        chunk.end,
        chunk.page,
        chunk.parent,
        chunk.token_count,
        {**entry.metadata, **chunk.metadata},
        configuration(chunk.language or entry.language),
    )

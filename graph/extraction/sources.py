"""Documents as extractors read them, out of the tables."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from documents.models import Chunk, Document
from graph.extraction.found import Passage, Source


@dataclass(frozen=True, slots=True)
class Stored:
    """A document to read: `chunk_ids` are those of its passages, in their order."""

    document_id: int
    source: Source
    chunk_ids: Sequence[int]


def stored_documents(document_ids: Sequence[int]) -> list[Stored]:
    """These documents with their passages; those that are gone are left out."""
    passages: dict[int, list[tuple[int, Passage]]] = defaultdict(list)
    chunks = Chunk.objects.filter(document_id__in=document_ids).order_by("document_id", "ordinal")
    for document_id, pk, text, path in chunks.values_list(
        "document_id", "pk", "text", "heading_path"
    ).iterator():
        passages[document_id].append((pk, Passage(text, tuple(path))))
    documents = Document.objects.filter(pk__in=document_ids).only(
        "key", "title", "url", "media_type", "language", "metadata"
    )
    return [_stored(document, passages[document.pk]) for document in documents.order_by("pk")]


def _stored(document: Document, passages: Sequence[tuple[int, Passage]]) -> Stored:
    source = Source(
        key=document.key,
        title=document.title,
        passages=[passage for _, passage in passages],
        url=document.url,
        media_type=document.media_type,
        language=document.language,
        metadata=document.metadata,
    )
    return Stored(document.pk, source, [pk for pk, _ in passages])

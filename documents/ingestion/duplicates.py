"""Documents with the same bytes under several keys of a collection.

The first is the original; the others say so in `duplicate_of`. Usually each has chunks of its own.
One that is stored once has none: it leans on the original, whose text is its text, and gets a copy
of that when the original is deleted or changes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection
from django.utils import timezone

from documents.ingestion import listeners
from documents.ingestion.revising import copy_edits, open_edits
from documents.models import Document


@dataclass(frozen=True, slots=True)
class Text:
    """What a document says from now on: whose chunks they are, and the hash of its bytes."""

    document_id: int
    source_sha256: str


def hand_over(texts: Mapping[int, Text | None]) -> None:
    """Give the duplicates of these documents another original, before these say something else.

    By id: what the document says from now on, None where it goes. A duplicate with the bytes that
    it says from now on stays with it. Of the others the oldest becomes the original; if it leaned,
    with a copy of the chunks. Their rows must be held.
    """
    waiting = Document.objects.filter(duplicate_of__in=texts).exclude(
        pk__in=[pk for pk, text in texts.items() if text is None]
    )
    by_original: dict[int, list[Document]] = defaultdict(list)
    for document in waiting.order_by("-is_current", "pk"):
        assert document.duplicate_of_id is not None
        by_original[document.duplicate_of_id].append(document)
    for original_id, duplicates in by_original.items():
        staying = [row for row in duplicates if _says(row, texts[original_id])]
        _repoint(staying, texts[original_id])
        _promote(original_id, [row for row in duplicates if row not in staying])


def _says(document: Document, text: Text | None) -> bool:
    return (
        text is not None
        and document.status == Document.Status.READY
        and document.source_sha256 == text.source_sha256
    )


def _repoint(duplicates: Sequence[Document], text: Text | None) -> None:
    if text is not None and duplicates:
        Document.objects.filter(pk__in=[row.pk for row in duplicates]).update(
            duplicate_of=text.document_id
        )


def _promote(original_id: int, duplicates: Sequence[Document]) -> None:
    links = [row for row in duplicates if row.is_link]
    stored = [row for row in duplicates if not row.is_link]
    first = links[0] if links else None
    if first is not None:
        _copy_chunks(original_id, first)
        _follow(first, links[1:])
    # One that has chunks need not lean on a version that is not searched.
    if first is None or not first.is_current:
        first = stored.pop(0) if stored else None
    if first is not None:
        _follow(first, stored)


def _follow(first: Document, others: Iterable[Document]) -> None:
    Document.objects.filter(pk=first.pk).update(duplicate_of=None)
    Document.objects.filter(pk__in=[row.pk for row in others]).update(duplicate_of=first)


def take_copy(link: Document) -> None:
    """Let a document that leans on another have a copy of its text. Both rows must be held."""
    if link.is_link and link.duplicate_of_id is not None:
        _copy_chunks(link.duplicate_of_id, link)


# The vectors are those of the same text under the original's title.
_COPY = """
    INSERT INTO documents_chunk (
        workspace_id, collection_id, document_id, space_id, ordinal, key, text, context,
        heading_path, summary, token_count, start, "end", page, parent, media_type, metadata,
        access, language, embedding, content_sha256, is_current)
    SELECT workspace_id, collection_id, %(heir)s, space_id, ordinal, key, text,
           CASE WHEN %(title)s <> '' AND starts_with(context, %(title)s)
                THEN %(own)s || substr(context, length(%(title)s) + 1) ELSE context END,
           heading_path, summary, token_count, start, "end", page, parent, media_type, metadata,
           access, language, embedding, content_sha256, %(is_current)s
    FROM documents_chunk WHERE document_id = %(original)s
"""


def _copy_chunks(original_id: int, heir: Document) -> None:
    original = Document.objects.get(pk=original_id)
    with connection.cursor() as cursor:
        cursor.execute(
            _COPY,
            {
                "heir": heir.pk,
                "original": original_id,
                "title": original.title,
                "own": heir.title,
                "is_current": heir.is_current,
            },
        )
    copy_edits(open_edits(original_id), document_id=heir.pk)
    Document.objects.filter(pk=heir.pk).update(
        content_sha256=original.content_sha256,
        chunk_count=original.chunk_count,
        token_count=original.token_count,
        duplicate_of=None,
        updated_at=timezone.now(),
    )
    listeners.loaded([heir.pk])

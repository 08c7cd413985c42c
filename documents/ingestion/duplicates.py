"""Documents of a collection with the same bytes under several keys.

The first is the original; the others refer to it through `duplicate_of`. Usually each has chunks of
its own. With `store_once` a duplicate is an alias: it has no chunks, its text is the original's,
and it gets a copy when the original is deleted or changes (`promote_next_original`).
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from django.db import connection
from django.utils import timezone

from documents.ingestion import jobs, listeners, versions
from documents.ingestion.edits import copy_edits, open_edits
from documents.ingestion.scanned_pages import copy_pages
from documents.models import Chunk, Collection, Document, IngestionItem
from reading.parsers.normalise import readable_title

#: The content that a document will have: the id of the document with its chunks, and the hash of
#: its bytes.
DocumentContent = tuple[int, str]


def promote_next_original(texts: Mapping[int, DocumentContent | None]) -> None:
    """Give the duplicates of these documents another original, before these change.

    `texts` has by id the document's future content, None if it is deleted. A duplicate with the
    bytes of that future content keeps its original. Of the others the oldest becomes the original,
    with a copy of the chunks if it was an alias. The rows must be locked.
    """
    waiting = Document.objects.filter(duplicate_of__in=texts).exclude(
        pk__in=[pk for pk, text in texts.items() if text is None]
    )
    by_original: dict[int, list[Document]] = defaultdict(list)
    for document in waiting.order_by("-is_current", "pk"):
        assert document.duplicate_of_id is not None
        by_original[document.duplicate_of_id].append(document)
    for original_id, duplicates in by_original.items():
        text = texts[original_id]
        staying: list[Document] = []
        if text is not None:
            document_id, source_sha256 = text
            staying = [
                row
                for row in duplicates
                if row.status == Document.Status.READY and row.source_sha256 == source_sha256
            ]
            Document.objects.filter(pk__in=[row.pk for row in staying]).update(
                duplicate_of=document_id
            )
        links = [row for row in duplicates if row.is_link and row not in staying]
        stored = [row for row in duplicates if not row.is_link and row not in staying]
        first = links[0] if links else None
        if first is not None:
            _copy_chunks(original_id, first)
            _refer_to(first, links[1:])
        # One with chunks need not be an alias of a version that is not searched.
        if first is None or not first.is_current:
            first = stored.pop(0) if stored else None
        if first is not None:
            _refer_to(first, stored)


_LOCK_WITH_DUPLICATES = """
    SELECT id FROM documents_document
    WHERE id = ANY(%(ids)s) OR duplicate_of_id = ANY(%(ids)s)
    ORDER BY id FOR NO KEY UPDATE
"""


def lock_with_duplicates(ids: Sequence[int]) -> None:
    """Lock documents and their aliases, in the order of ids, as everywhere."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_WITH_DUPLICATES, {"ids": list(ids)})


def set_access(ids: Sequence[int], access: Sequence[str] | None) -> None:
    """Set the access list of documents, given with all their versions, and of their passages.
    Aliases get a copy of their text, because a text is visible to those who may see its document.
    The rows must be locked (`lock_with_duplicates`)."""
    promote_next_original({pk: (pk, "") for pk in ids})
    for link in Document.objects.filter(pk__in=ids):
        if link.is_link:
            copy_original_text(link)
    listed = None if access is None else list(access)
    Document.objects.filter(pk__in=ids).update(access=listed)
    Chunk.objects.filter(document__in=ids).update(access=listed)


def _refer_to(first: Document, others: Iterable[Document]) -> None:
    Document.objects.filter(pk=first.pk).update(duplicate_of=None)
    Document.objects.filter(pk__in=[row.pk for row in others]).update(duplicate_of=first)


def copy_original_text(link: Document) -> None:
    """Give an alias its own copy of the original's chunks. Both rows must be locked."""
    if link.is_link and link.duplicate_of_id is not None:
        _copy_chunks(link.duplicate_of_id, link)


# The vectors are those of the same text under the original's title.
_COPY_CHUNKS = versions.chunk_copies(
    {
        "document_id": "%(heir)s",
        "is_current": "%(is_current)s",
        "context": """CASE WHEN %(title)s <> '' AND starts_with(context, %(title)s)
            THEN %(own)s || substr(context, length(%(title)s) + 1) ELSE context END""",
    },
    "documents_chunk AS chunk WHERE document_id = %(original)s",
)


def _copy_chunks(original_id: int, heir: Document) -> None:
    original = Document.objects.get(pk=original_id)
    with connection.cursor() as cursor:
        cursor.execute(
            _COPY_CHUNKS,
            {
                "heir": heir.pk,
                "original": original_id,
                "title": original.title,
                "own": heir.title,
                "is_current": heir.is_current,
            },
        )
    copy_edits(open_edits(original_id), document_id=heir.pk)
    copy_pages(original_id, heir=heir)
    Document.objects.filter(pk=heir.pk).update(
        content_sha256=original.content_sha256,
        chunk_count=original.chunk_count,
        token_count=original.token_count,
        duplicate_of=None,
        updated_at=timezone.now(),
    )
    listeners.loaded([heir.pk])


def documents_to_deduplicate(document_ids: Sequence[int]) -> set[int]:
    """The documents that a run with `store_once` waits for, of those given."""
    items = IngestionItem.objects.filter(
        document__in=document_ids, state__in=IngestionItem.ACTIVE, run__store_once=True
    )
    return set(items.values_list("document_id", flat=True))


def lock_content_hashes(pairs: Iterable[tuple[int, str]]) -> None:
    """Lock (collection, hash of the bytes) pairs until the end of the transaction, so that nobody
    else stores these bytes once meanwhile. Call it before any row is locked."""
    with connection.cursor() as cursor:
        for collection_id, digest in sorted(set(pairs)):  # always in one order: no deadlock
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [digest, collection_id]
            )


def find_originals(loaded: Mapping[int, str]) -> dict[int, int]:
    """Which of the documents, given with the hashes of their bytes, become an alias of which.

    Only a document without chunks of its own becomes an alias, and only of one that is chunked and
    titled alike and visible to the same people. Of several new ones the first is the original. The
    rows must be locked; the originals' are locked from here on.
    """
    if not loaded:
        return {}
    fresh = Document.objects.filter(pk__in=loaded, chunk_count=0).order_by("pk")
    alike: dict[tuple[str, ...], list[Document]] = defaultdict(list)
    for document in fresh:
        alike[_sharing_key(document, loaded[document.pk])].append(document)
    pairs = {(row.collection_id, loaded[row.pk]) for row in fresh}
    without = set(loaded)
    collections = [collection_id for collection_id, _ in sorted(pairs)]
    digests = [digest for _, digest in sorted(pairs)]
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_ORIGINALS, [collections, digests, list(without)])
        ids = [pk for (pk,) in cursor.fetchall()]
    there: dict[tuple[str, ...], list[Document]] = defaultdict(list)
    for row in Document.objects.filter(pk__in=ids).order_by("duplicate_of_id", "pk"):
        there[_sharing_key(row, row.source_sha256)].append(row)
    original_of: dict[int, int] = {}
    for key, documents in alike.items():
        others = there.get(key, [])
        for document in documents:
            original = next((row for row in others if row.key != document.key), None)
            if original is not None:
                original_of[document.pk] = original.pk
            elif not others:
                others = [document]
    return original_of


def _sharing_key(document: Document, source_sha256: str) -> tuple[str, ...]:
    """What two documents must have in common to share one text."""
    declared = {name: value for name, value in document.declared.items() if name != "file_name"}
    return (
        str(document.collection_id),
        source_sha256,
        json.dumps(declared, sort_keys=True),
        json.dumps(document.access and sorted(document.access)),
        PurePosixPath(_name_for_sharing(document)).suffix.lower(),
    )


def _name_for_sharing(document: Document) -> str:
    return str(document.declared.get("file_name") or document.source or document.key)


# An original that is being changed or deleted just now is none, and is not waited for.
_LOCK_ORIGINALS = """
    SELECT document.id FROM documents_document AS document
    JOIN unnest(%s::bigint[], %s::varchar[]) AS wanted (collection_id, source_sha256)
        USING (collection_id, source_sha256)
    WHERE is_current AND status = 'ready' AND chunk_count > 0 AND document.id <> ALL(%s)
    FOR SHARE OF document SKIP LOCKED
"""


def has_bytes(collection: Collection, source_sha256: str) -> bool:
    """Whether some document of the collection has these bytes."""
    rows = Document.objects.filter(collection=collection, source_sha256=source_sha256)
    return rows.filter(is_current=True, chunk_count__gt=0).exists()


def make_alias(document: Document, *, source_sha256: str, recipe: str) -> bool:
    """Make a document that was just registered an alias of one that already has its bytes; returns
    whether there is one. Its open items are settled.

    Call it in the transaction that registered it. A version that follows another is loaded instead,
    and may become an alias then.
    """
    if not document.is_current:
        return False
    original_id = find_originals({document.pk: source_sha256}).get(document.pk)
    if original_id is None:
        return False
    original = Document.objects.get(pk=original_id)
    title = original.title
    if title == readable_title(_name_for_sharing(original)):  # only its file name
        title = readable_title(_name_for_sharing(document))[:500]
    Document.objects.filter(pk=document.pk).update(
        title=title,
        media_type=original.media_type,
        rendering=original.rendering,
        language=original.language,
        metadata=original.metadata,
        content_sha256=original.content_sha256,
        source_sha256=source_sha256,
        recipe=recipe,
        duplicate_of=original,
        status=Document.Status.READY,
        error_code="",
        error="",
        claimed_by=None,
        claimed_until=None,
        indexed_at=timezone.now(),
    )
    document.refresh_from_db()
    jobs.count_loaded({document.pk: {"duplicates": 1}})
    jobs.settle_items([document.pk], state=IngestionItem.State.READY)
    return True

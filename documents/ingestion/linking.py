"""Storing once: documents that lean on another one with the same bytes."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from django.db import connection
from django.utils import timezone

from documents.ingestion import runs
from documents.models import Collection, Document, IngestionItem
from documents.parsers.metadata import readable_title

State = IngestionItem.State


def wanted_once(document_ids: Sequence[int]) -> set[int]:
    """Those of the documents that a run waits for which stores once."""
    items = IngestionItem.objects.filter(
        document__in=document_ids, state__in=IngestionItem.ACTIVE, run__store_once=True
    )
    return set(items.values_list("document_id", flat=True))


def hold_bytes(pairs: Iterable[tuple[int, str]]) -> None:
    """Wait until nobody else stores these bytes once, by (collection, hash of the bytes); held to
    the end of the transaction. Before any row is locked."""
    with connection.cursor() as cursor:
        for collection_id, digest in sorted(set(pairs)):  # always in one order: no deadlock
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [digest, collection_id]
            )


def find_originals(loaded: Mapping[int, str]) -> dict[int, int]:
    """Which of the documents, whose bytes are hashed by id, are to lean on which.

    Only one that has no chunks of its own leans, and only on a document whose text is cut and
    called alike and that the same people may see. Where several are new together it is the first of
    them. Call it with their rows held; the originals' are held from here on.
    """
    if not loaded:
        return {}
    fresh = Document.objects.filter(pk__in=loaded, chunk_count=0).order_by("pk")
    alike: dict[tuple[str, ...], list[Document]] = defaultdict(list)
    for document in fresh:
        alike[_likeness(document, loaded[document.pk])].append(document)
    there = _hold_originals({(row.collection_id, loaded[row.pk]) for row in fresh}, set(loaded))
    leaning: dict[int, int] = {}
    for likeness, documents in alike.items():
        others = there.get(likeness, [])
        for document in documents:
            original = next((row for row in others if row.key != document.key), None)
            if original is not None:
                leaning[document.pk] = original.pk
            elif not others:
                others = [document]
    return leaning


def _likeness(document: Document, source_sha256: str) -> tuple[str, ...]:
    """What two documents must have in common to share one text."""
    declared = {name: said for name, said in document.declared.items() if name != "file_name"}
    return (
        str(document.collection_id),
        source_sha256,
        json.dumps(declared, sort_keys=True),
        json.dumps(document.access and sorted(document.access)),
        PurePosixPath(_name(document)).suffix.lower(),
    )


def _name(document: Document) -> str:
    return str(document.declared.get("file_name") or document.source or document.key)


# An original that is being changed or deleted just now is none, and is not waited for.
_HOLD_ORIGINALS = """
    SELECT document.id FROM documents_document AS document
    JOIN unnest(%s::bigint[], %s::varchar[]) AS wanted (collection_id, source_sha256)
        USING (collection_id, source_sha256)
    WHERE is_current AND status = 'ready' AND chunk_count > 0 AND document.id <> ALL(%s)
    FOR SHARE OF document SKIP LOCKED
"""


def _hold_originals(
    pairs: set[tuple[int, str]], without: set[int]
) -> dict[tuple[str, ...], list[Document]]:
    collections = [collection_id for collection_id, _ in sorted(pairs)]
    digests = [digest for _, digest in sorted(pairs)]
    with connection.cursor() as cursor:
        cursor.execute(_HOLD_ORIGINALS, [collections, digests, list(without)])
        ids = [pk for (pk,) in cursor.fetchall()]
    found: dict[tuple[str, ...], list[Document]] = defaultdict(list)
    for row in Document.objects.filter(pk__in=ids).order_by("duplicate_of_id", "pk"):
        found[_likeness(row, row.source_sha256)].append(row)
    return found


def is_known(collection: Collection, source_sha256: str) -> bool:
    """Whether some document of the collection has these bytes."""
    rows = Document.objects.filter(collection=collection, source_sha256=source_sha256)
    return rows.filter(is_current=True, chunk_count__gt=0).exists()


def link(document: Document, *, source_sha256: str, recipe: str) -> bool:
    """Make a document that was just registered lean on one that has its bytes already; whether
    there is such a one. Its open items are settled.

    Call it in the transaction that registered it. A version that follows another is loaded instead,
    and may be made to lean then.
    """
    if not document.is_current:
        return False
    original_id = find_originals({document.pk: source_sha256}).get(document.pk)
    if original_id is None:
        return False
    original = Document.objects.get(pk=original_id)
    Document.objects.filter(pk=document.pk).update(
        title=_title_like(original, document),
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
    count_links([document.pk])
    runs.settle_items([document.pk], state=State.READY)
    return True


def _title_like(original: Document, document: Document) -> str:
    """The original's title, unless that is only the name of its file."""
    if original.title == readable_title(_name(original)):
        return readable_title(_name(document))[:500]
    return original.title


def count_links(document_ids: Sequence[int]) -> None:
    """Count documents that lean on others on the runs that wait for them. Before settling."""
    waiting = IngestionItem.objects.filter(
        document__in=document_ids, state__in=IngestionItem.ACTIVE
    )
    counts: dict[int, int] = defaultdict(int)
    for run_id, _ in waiting.order_by().values_list("run_id", "document_id").distinct():
        counts[run_id] += 1
    for run_id, count in sorted(counts.items()):
        runs.count_on_run(run_id, duplicates=count)

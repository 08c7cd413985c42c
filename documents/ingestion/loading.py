"""Prepared documents and their vectors into the chunk table, in one transaction."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from common.copy import copy_rows
from documents.ingestion import runs, statistics
from documents.ingestion.embedding import Vectors
from documents.ingestion.preparing import PreparedChunk, PreparedDocument
from documents.languages import configuration, configuration_oids
from documents.models import Chunk, Document, IngestionItem, StagedDocument

COLUMNS = (
    ("workspace_id", "int8"),
    ("collection_id", "int8"),
    ("document_id", "int8"),
    ("space_id", "int8"),
    ("ordinal", "int4"),
    ("key", "varchar"),
    ("text", "text"),
    ("context", "text"),
    ("heading_path", "text[]"),
    ("summary", "text"),
    ("token_count", "int4"),
    ("start", "int8"),
    ("end", "int8"),
    ("page", "int4"),
    ("media_type", "varchar"),
    ("metadata", "jsonb"),
    ("access", "varchar[]"),
    # regconfig: its binary form is that of an oid
    ("language", "oid"),
    ("embedding", "vector"),
    ("content_sha256", "varchar"),
)

#: Columns of a kept chunk that may change although its text did not.
MOVABLE = ("ordinal", "start", "end", "page", "token_count", "media_type", "metadata", "access")


@dataclass(frozen=True, slots=True)
class Job:
    """One document to load, under the claim it was taken with."""

    document: Document
    prepared: PreparedDocument
    digest: str  # of the recipe
    source_sha256: str


@transaction.atomic
def load(jobs: Sequence[Job], vectors: Vectors, *, token: UUID) -> list[int]:
    """Make the documents' chunks exactly the prepared ones; returns the ids that were loaded.

    A document whose claim is not `token` any more is passed over: somebody else has it. Chunks
    whose text did not change keep their id and vector; all others are replaced. Readers see the
    old or the new document, because all of it is one transaction.
    """
    held = set(
        Document.objects.select_for_update()
        .filter(id__in=[job.document.id for job in jobs], claimed_by=token)
        .order_by("id")
        .values_list("id", flat=True)
    )
    mine = [job for job in jobs if job.document.id in held]
    rows: list[tuple[Any, ...]] = []
    for job in mine:
        new = _keep_unchanged(job)
        rows += [_row(job, chunk, vectors) for chunk in new]
        _finish(job, embedded=len(new))
    if rows:
        copy_rows("documents_chunk", COLUMNS, rows)
    for job in mine:
        for language in sorted({_language(job, chunk) for chunk in job.prepared.chunks}):
            statistics.note_language(job.document, language)
    StagedDocument.objects.filter(document_id__in=held).delete()
    runs.settle_items(held, state=IngestionItem.State.READY)
    return sorted(held)


def _keep_unchanged(job: Job) -> list[PreparedChunk]:
    """Delete the document's chunks that vanished, move those that stay; return the new ones."""
    kept: dict[str, deque[Chunk]] = defaultdict(deque)
    chunks = Chunk.objects.filter(
        document=job.document, space_id=job.document.collection.space_id, embedding__isnull=False
    ).defer("text", "context", "search_vector", "embedding")
    for chunk in chunks.order_by("ordinal"):
        kept[chunk.content_sha256].append(chunk)
    new, moved = [], []
    for prepared in job.prepared.chunks:
        if kept[prepared.content_sha256]:
            moved.append((kept[prepared.content_sha256].popleft(), prepared))
        else:
            new.append(prepared)
    staying = [chunk.id for chunk, _ in moved]
    vanished = Chunk.objects.filter(document=job.document).exclude(id__in=staying)
    if vanished.exists():
        statistics.forget(vanished)
        vanished.delete()
    Chunk.objects.bulk_update(_moved(job, moved), [*MOVABLE, "language"], batch_size=500)
    return new


def _moved(job: Job, pairs: Sequence[tuple[Chunk, PreparedChunk]]) -> list[Chunk]:
    """The kept chunks that must be written, with their new values."""
    changed = []
    for chunk, prepared in pairs:
        values = {
            "ordinal": prepared.ordinal,
            "start": prepared.start,
            "end": prepared.end,
            "page": prepared.page,
            "token_count": prepared.token_count,
            "media_type": job.prepared.media_type,
            "metadata": _metadata(job, prepared),
            "access": job.document.access,
            "language": _language(job, prepared),
        }
        if any(getattr(chunk, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(chunk, name, value)
            changed.append(chunk)
    return changed


def _metadata(job: Job, chunk: PreparedChunk) -> dict[str, Any]:
    return {**job.prepared.metadata, **chunk.metadata}


def _language(job: Job, chunk: PreparedChunk) -> str:
    """The chunk's text search configuration."""
    return configuration(chunk.language or job.prepared.language)


def _row(job: Job, chunk: PreparedChunk, vectors: Vectors) -> tuple[Any, ...]:
    document = job.document
    return (
        document.workspace_id,
        document.collection_id,
        document.id,
        document.collection.space_id,
        chunk.ordinal,
        chunk.key,
        chunk.text,
        chunk.context,
        list(chunk.heading_path),
        chunk.summary,
        chunk.token_count,
        chunk.start,
        chunk.end,
        chunk.page,
        job.prepared.media_type,
        Jsonb(_metadata(job, chunk)),
        document.access,
        configuration_oids()[_language(job, chunk)],
        vectors[chunk.content_sha256],
        chunk.content_sha256,
    )


def _finish(job: Job, *, embedded: int) -> None:
    """The document's own row, and its sizes on the runs that wait for it."""
    prepared = job.prepared
    chunks = len(prepared.chunks)
    Document.objects.filter(id=job.document.id).update(
        title=prepared.title,
        media_type=prepared.media_type,
        rendering=prepared.rendering,
        language=prepared.language,
        metadata=prepared.metadata,
        content_sha256=prepared.content_sha256,
        source_sha256=job.source_sha256,
        recipe=job.digest,
        chunk_count=chunks,
        token_count=prepared.token_count,
        status=Document.Status.READY,
        error_code="",
        error="",
        attempts=0,
        claimed_by=None,
        claimed_until=None,
        indexed_at=timezone.now(),
        updated_at=timezone.now(),
    )
    runs.count_loaded(job.document, chunks=chunks, embedded=embedded, tokens=prepared.token_count)

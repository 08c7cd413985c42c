"""Prepared documents and their vectors into the chunk table, in one transaction."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from common.copy import copy_rows
from documents import lexical_index
from documents.ingestion import (
    duplicates,
    linking,
    listeners,
    revising,
    runs,
    versions,
)
from documents.ingestion.embedding import Vectors
from documents.ingestion.locks import share_collections
from documents.ingestion.preparing import PreparedChunk, PreparedDocument
from documents.ingestion.revising import Revised, Revision
from documents.languages import configuration, configuration_oids
from documents.models import Chunk, Collection, Document, IngestionItem, StagedDocument

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
    ("parent", "int4"),
    ("media_type", "varchar"),
    ("metadata", "jsonb"),
    ("access", "varchar[]"),
    # regconfig: its binary form is that of an oid
    ("language", "oid"),
    ("embedding", "vector"),
    ("content_sha256", "varchar"),
    ("is_current", "bool"),
)

#: Columns of a kept chunk that may change although its text did not.
MOVABLE = (
    "ordinal",
    "start",
    "end",
    "page",
    "parent",
    "token_count",
    "media_type",
    "metadata",
    "access",
    "language",
)


@dataclass(frozen=True, slots=True)
class Job:
    """One document to load, under the claim it was taken with.

    What people changed in it is kept, unless it `replaces` that too.
    """

    document: Document
    prepared: PreparedDocument
    digest: str  # of the recipe
    source_sha256: str
    replaces: bool = False


class StaleVectors(Exception):
    """The tables changed since the vectors were made: other ones are needed."""


class SpaceChanged(StaleVectors):
    """A collection is being re-embedded: its new chunks need vectors of another model."""


class VectorsMissing(StaleVectors):
    """A chunk whose vector was to be kept is gone: its text must be embedded after all."""


class KeyTaken(StaleVectors):
    """Somebody else made a document of a key that had none: it is replaced like any other."""


@transaction.atomic
def load(jobs: Sequence[Job], vectors: Vectors, *, token: UUID) -> list[int]:
    """Make the documents' chunks exactly the prepared ones; returns the ids that were loaded.

    A document whose claim is not `token` any more is passed over: somebody else has it. Chunks
    whose text did not change keep their id and vector; all others are replaced. Readers see the
    old or the new document, because all of it is one transaction. Raises StaleVectors, and loads
    nothing, where the vectors were made for a space that a collection has left meanwhile, or a
    chunk that had one is gone.
    """
    _check_spaces(job.document.collection for job in jobs)
    once = linking.wanted_once([job.document.id for job in jobs])
    linking.hold_bytes(
        (job.document.collection_id, job.source_sha256) for job in jobs if job.document.id in once
    )
    held = versions.hold_for_loading([job.document.id for job in jobs], token=token)
    mine = [job for job in jobs if job.document.id in held.ids]
    revisions = revising.revisions_of(job.document for job in mine)
    revised = _revised(mine, revisions)
    mine = [
        replace(job, prepared=revised[job.document.id].document)
        if job.document.id in revised
        else job
        for job in mine
    ]
    leaning = linking.find_originals(
        {job.document.id: job.source_sha256 for job in mine if job.document.id in once}
    )
    _make_room(mine, held, leaning)
    revising.settle(revisions, revised)
    stored = [job for job in mine if job.document.id not in leaning]
    new = _take_over(_keep_unchanged(stored, held), held)
    if any(chunk.content_sha256 not in vectors for _, chunk in new):
        raise VectorsMissing
    if new:
        configuration_oids()  # asked for now: nothing can be asked while rows are being copied
        copy_rows("documents_chunk", COLUMNS, (_row(job, chunk, vectors) for job, chunk in new))
    _finish(mine, leaning)
    StagedDocument.objects.filter(document_id__in=held.ids).delete()
    runs.count_loaded(_sizes(stored, new))
    linking.count_links(list(leaning))
    listeners.loaded(sorted(held.ids))
    runs.settle_items(held.ids, state=IngestionItem.State.READY)
    return sorted(held.ids)


def load_new(collection: Collection, jobs: Iterable[Job], vectors: Vectors) -> None:
    """Insert documents that are in no table yet, with their chunks: rows that nobody else has seen
    are written once, as they stay. In the caller's transaction. The documents have ids, and are not
    inserted before their chunks, so that `jobs` may make them one by one while PostgreSQL works.

    Raises StaleVectors like `load`, and where somebody else took a key meanwhile.
    """
    _check_spaces([collection])
    configuration_oids()  # asked for now: nothing can be asked while rows are being copied
    documents: list[Document] = []
    now = timezone.now()

    def rows() -> Iterator[tuple[Any, ...]]:
        for job in jobs:
            outcome = {**_outcome(job), "status": Document.Status.READY, "indexed_at": now}
            for name, value in outcome.items():
                setattr(job.document, name, value)
            documents.append(job.document)
            for chunk in job.prepared.chunks:
                if chunk.content_sha256 not in vectors:
                    raise VectorsMissing
                yield _row(job, chunk, vectors)

    copy_rows("documents_chunk", COLUMNS, rows())
    if len(versions.insert(documents)) < len(documents):
        raise KeyTaken
    listeners.loaded(sorted(document.pk for document in documents))


def _revised(jobs: Sequence[Job], revisions: Mapping[int, Revision]) -> dict[int, Revised]:
    """What the documents that people changed are to say, by id."""
    return {
        job.document.id: revising.revise(
            job.prepared, revisions[job.document.id], collection=job.document.collection
        )
        for job in jobs
        if job.document.id in revisions and not job.replaces
    }


def _make_room(jobs: Sequence[Job], held: versions.Held, leaning: Mapping[int, int]) -> None:
    """Let versions overtake, and find other originals for the duplicates of what changes."""
    texts: dict[int, duplicates.Text | None] = {}
    for job in jobs:
        new = job.document.id
        text = duplicates.Text(leaning.get(new, new), job.source_sha256)
        job.document.is_current = held.becomes_current(new)
        texts[new] = text
        if new in held.overtakes and new in held.current:
            texts[held.current[new]] = text
    duplicates.hand_over(texts)
    versions.overtake(held)


def _check_spaces(collections: Iterable[Collection]) -> None:
    wanted = {collection.pk: collection.space_id for collection in collections}
    share_collections(wanted)
    spaces = dict(Collection.objects.filter(id__in=wanted).values_list("id", "space_id"))
    if any(spaces.get(collection_id, space) != space for collection_id, space in wanted.items()):
        raise SpaceChanged


def _keep_unchanged(jobs: Sequence[Job], held: versions.Held) -> list[tuple[Job, PreparedChunk]]:
    """Delete the documents' chunks that vanished, move those that stay; return the new ones."""
    filled = [job for job in jobs if job.document.id in held.filled]
    known = _known_chunks(filled) if filled else {}
    new: list[tuple[Job, PreparedChunk]] = []
    moved: list[Chunk] = []
    staying: set[int] = set()
    for job in jobs:
        for prepared in job.prepared.chunks:
            same = known.get((job.document.id, prepared.content_sha256))
            if same:
                chunk = same.popleft()
                staying.add(chunk.id)
                if _move(chunk, job, prepared):
                    moved.append(chunk)
            else:
                new.append((job, prepared))
    if filled:
        _remove_vanished(filled, staying)
    Chunk.objects.bulk_update(moved, MOVABLE, batch_size=500)
    return new


def _take_over(
    new: Sequence[tuple[Job, PreparedChunk]], held: versions.Held
) -> list[tuple[Job, PreparedChunk]]:
    """Give chunks that a version shares with the current one its vectors; return the others."""
    known = versions.known_chunks(held.current)
    rest: list[tuple[Job, PreparedChunk]] = []
    shared: list[dict[str, Any]] = []
    for job, chunk in new:
        source = known.get((job.document.id, chunk.content_sha256))
        if source is None:
            rest.append((job, chunk))
        else:
            shared.append({"source": source, **_values(job, chunk)})
    versions.copy_chunks(shared)
    return rest


def _values(job: Job, chunk: PreparedChunk) -> dict[str, Any]:
    """What of a chunk is its version's own; text and vector are those of its content."""
    return {
        "document_id": job.document.id,
        "ordinal": chunk.ordinal,
        "key": chunk.key,
        "heading_path": chunk.heading_path,
        "summary": chunk.summary,
        "token_count": chunk.token_count,
        "start": chunk.start,
        "end": chunk.end,
        "page": chunk.page,
        "parent": chunk.parent,
        "media_type": job.prepared.media_type,
        "metadata": _metadata(job, chunk),
        "language": _language(job, chunk),
    }


def _known_chunks(jobs: Sequence[Job]) -> dict[tuple[int, str], deque[Chunk]]:
    """The documents' chunks that have a vector, by document and content."""
    chunks = Chunk.objects.filter(
        document__in=[job.document.id for job in jobs], embedding__isnull=False
    ).defer("text", "context", "search_vector", "embedding")
    known: dict[tuple[int, str], deque[Chunk]] = defaultdict(deque)
    for chunk in chunks.order_by("document_id", "ordinal"):
        known[chunk.document_id, chunk.content_sha256].append(chunk)
    return known


def _remove_vanished(jobs: Sequence[Job], staying: set[int]) -> None:
    document_ids = [job.document.id for job in jobs]
    vanished = Chunk.objects.filter(document_id__in=document_ids).exclude(id__in=staying)
    if vanished.exists():
        lexical_index.forget(vanished)
        listeners.remove_chunks(vanished)


def _move(chunk: Chunk, job: Job, prepared: PreparedChunk) -> bool:
    """Give a kept chunk its new place; whether anything of it changed."""
    values = {
        "ordinal": prepared.ordinal,
        "start": prepared.start,
        "end": prepared.end,
        "page": prepared.page,
        "parent": prepared.parent,
        "token_count": prepared.token_count,
        "media_type": job.prepared.media_type,
        "metadata": _metadata(job, prepared),
        "access": job.document.access,
        "language": _language(job, prepared),
    }
    changed = any(getattr(chunk, name) != value for name, value in values.items())
    for name, value in values.items():
        setattr(chunk, name, value)
    return changed


def _sizes(jobs: Sequence[Job], new: Sequence[tuple[Job, PreparedChunk]]) -> dict[int, runs.Loaded]:
    """What each document added, by its id."""
    embedded = Counter(job.document.id for job, _ in new)
    return {
        job.document.id: runs.Loaded(
            chunks=len(job.prepared.chunks),
            embedded=embedded[job.document.id],
            tokens=job.prepared.token_count,
        )
        for job in jobs
    }


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
        chunk.parent,
        job.prepared.media_type,
        Jsonb(_metadata(job, chunk)),
        document.access,
        configuration_oids()[_language(job, chunk)],
        vectors[chunk.content_sha256],
        chunk.content_sha256,
        document.is_current,
    )


_FINISH = """
    UPDATE documents_document AS document
    SET title = new.title, media_type = new.media_type, rendering = new.rendering,
        language = new.language, metadata = new.metadata, content_sha256 = new.content_sha256,
        source_sha256 = new.source_sha256, recipe = new.recipe, chunk_count = new.chunk_count,
        token_count = new.token_count, duplicate_of_id = new.duplicate_of_id,
        status = 'ready', error_code = '', error = '', attempts = 0,
        claimed_by = NULL, claimed_until = NULL, indexed_at = now(), updated_at = now()
    FROM jsonb_to_recordset(%s) AS new (
        id bigint, title text, media_type text, rendering text, language text, metadata jsonb,
        content_sha256 text, source_sha256 text, recipe text, chunk_count int, token_count bigint,
        duplicate_of_id bigint)
    WHERE document.id = new.id
"""


def _finish(jobs: Sequence[Job], leaning: Mapping[int, int]) -> None:
    """The documents' own rows, which are held, by one statement."""
    rows = [
        {
            "id": job.document.id,
            **_outcome(job),
            "duplicate_of_id": leaning[job.document.id],
            "chunk_count": 0,
            "token_count": 0,
        }
        if job.document.id in leaning
        else {"id": job.document.id, **_outcome(job)}
        for job in jobs
    ]
    parameters: list[Any] = [Jsonb(rows)]
    with connection.cursor() as cursor:
        cursor.execute(_FINISH, parameters)


def _outcome(job: Job) -> dict[str, Any]:
    """What a document that has chunks of its own is when it is loaded."""
    return {
        "title": job.prepared.title,
        "media_type": job.prepared.media_type,
        "rendering": job.prepared.rendering,
        "language": job.prepared.language,
        "metadata": job.prepared.metadata,
        "content_sha256": job.prepared.content_sha256,
        "source_sha256": job.source_sha256,
        "recipe": job.digest,
        "chunk_count": len(job.prepared.chunks),
        "token_count": job.prepared.token_count,
    }

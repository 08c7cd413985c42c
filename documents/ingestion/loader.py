"""Embed prepared documents and load them into the chunk table, group after group. Begin with
`load_groups`; `load_documents` is the transaction."""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone
from psycopg.types.json import Jsonb

from common.leases import retry_on_deadlock
from common.sql import copy_rows
from documents import lexical_index
from documents.ingestion import duplicates, edits, listeners, versions
from documents.ingestion import jobs as ingestion_jobs
from documents.ingestion.concurrency import Stopwatch, prefetch, share_collection_locks
from documents.ingestion.embedding import (
    LONG_DOCUMENT_CHUNKS,
    EmbeddingGroup,
    Vectors,
    embed_groups,
    make_group,
)
from documents.ingestion.preparation import (
    PreparedChunk,
    PreparedDocument,
    evident_language,
    recipe_for,
)
from documents.ingestion.scanned_pages import delete_old_pages
from documents.ingestion.space_choice import fit_space
from documents.languages import configuration, configuration_oids
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionItem,
    StagedDocument,
    StagedVectors,
)

CHUNK_COLUMNS = (
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
MOVABLE_COLUMNS = (
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
class LoadJob:
    """One document to load, under the claim it was taken with.

    People's edits of it are reapplied, unless it `replaces` them too.
    """

    document: Document
    prepared: PreparedDocument
    digest: str  # of the recipe
    source_sha256: str
    replaces: bool = False


class StaleVectors(Exception):
    """The tables changed since the vectors were made: the collection got another space, a chunk
    whose vector was to be kept was deleted, or a document with a new key was created."""


@transaction.atomic
def load_documents(jobs: Sequence[LoadJob], vectors: Vectors, *, token: UUID) -> list[int]:
    """Make the documents' chunks exactly the prepared ones; returns the ids that were loaded.

    A document that `token` no longer claims is skipped. Chunks whose text did not change keep their
    id and vector; all others are replaced. Readers see the old or the new document, because all of
    it is one transaction. Raises StaleVectors, and loads nothing, if the vectors are for a space
    that a collection has left meanwhile, if its vectors were switched on or off, or if a chunk that
    had one was deleted.
    """
    _check_spaces(job.document.collection for job in jobs)
    deduplicated = duplicates.documents_to_deduplicate([job.document.id for job in jobs])
    duplicates.lock_content_hashes(
        (job.document.collection_id, job.source_sha256)
        for job in jobs
        if job.document.id in deduplicated
    )
    held = versions.lock_for_loading([job.document.id for job in jobs], token=token)
    own = [job for job in jobs if job.document.id in held.ids]
    revisions = edits.load_pending_edits(job.document for job in own)
    mine, edit_states = _apply_edits(own, revisions)
    original_of = duplicates.find_originals(
        {job.document.id: job.source_sha256 for job in mine if job.document.id in deduplicated}
    )
    # Supersede current versions, and give duplicates of changing documents another original.
    texts: dict[int, duplicates.DocumentContent | None] = {}
    for job in mine:
        pk = job.document.id
        job.document.is_current = pk not in held.behind
        texts[pk] = (original_of.get(pk, pk), job.source_sha256)
        if pk in held.superseding and pk in held.current:
            texts[held.current[pk]] = texts[pk]
    duplicates.promote_next_original(texts)
    versions.supersede(held)
    edits.settle_edits(revisions, edit_states)
    stored = [job for job in mine if job.document.id not in original_of]
    new = _store_chunks(stored, vectors, held)
    finished = {job.document.id: {"id": job.document.id, **_loaded_values(job)} for job in mine}
    for pk, original_id in original_of.items():
        finished[pk] |= {"duplicate_of_id": original_id, "chunk_count": 0, "token_count": 0}
    parameters: list[Any] = [Jsonb(list(finished.values()))]
    with connection.cursor() as cursor:
        cursor.execute(_FINISH_DOCUMENTS, parameters)
    for staged in (StagedDocument, StagedVectors):
        staged.objects.filter(document_id__in=held.ids).delete()
    delete_old_pages(sorted(held.ids))
    embedded = Counter(job.document.id for job, _ in new)
    counts: dict[int | None, dict[str, int]] = {
        job.document.id: {
            "chunks": len(job.prepared.chunks),
            "embedded": embedded[job.document.id],
            "tokens": job.prepared.token_count,
        }
        for job in stored
    }
    counts |= {pk: {"duplicates": 1} for pk in original_of}
    ingestion_jobs.count_loaded(counts)
    listeners.loaded(sorted(held.ids))
    ingestion_jobs.settle_items(held.ids, state=IngestionItem.State.READY)
    return sorted(held.ids)


def load_new_documents(collection: Collection, jobs: Iterable[LoadJob], vectors: Vectors) -> None:
    """Insert documents that are in no table yet, with their chunks, in the caller's transaction;
    each row is written once.

    The documents have ids and are inserted after their chunks, so that `jobs` may create them one
    by one while PostgreSQL works. Raises StaleVectors like `load_documents`, and where a key was
    used meanwhile.
    """
    _check_spaces([collection])
    configuration_oids()  # read now: no query can run while rows are being copied
    documents: list[Document] = []
    plain: set[int] = set()
    now = timezone.now()

    def rows() -> Iterator[tuple[Any, ...]]:
        for job in jobs:
            outcome = {**_loaded_values(job), "status": Document.Status.READY, "indexed_at": now}
            for name, value in outcome.items():
                setattr(job.document, name, value)
            documents.append(job.document)
            if not any("|" in chunk.text or "Row " in chunk.text for chunk in job.prepared.chunks):
                plain.add(job.document.pk)
            for chunk in job.prepared.chunks:
                if collection.has_vectors and chunk.content_sha256 not in vectors:
                    raise StaleVectors
                yield _chunk_row(job, chunk, vectors)

    copy_rows("documents_chunk", CHUNK_COLUMNS, rows())
    if len(versions.insert_documents(documents)) < len(documents):
        raise StaleVectors
    listeners.loaded(sorted(document.pk for document in documents), plain=plain)


def _apply_edits(
    jobs: Sequence[LoadJob], revisions: Mapping[int, edits.PendingEdits]
) -> tuple[list[LoadJob], dict[int, dict[int, str]]]:
    """The jobs with people's edits applied, and the new states of these edits by document."""
    revised: list[LoadJob] = []
    states: dict[int, dict[int, str]] = {}
    for job in jobs:
        document = job.document
        if document.id in revisions and not job.replaces:
            prepared, states[document.id] = edits.apply_pending_edits(
                job.prepared, revisions[document.id], collection=document.collection
            )
            job = replace(job, prepared=prepared)  # noqa: PLW2901
        revised.append(job)
    return revised, states


def _check_spaces(collections: Iterable[Collection]) -> None:
    wanted = {each.pk: (each.pk, each.space_id, each.vectors) for each in collections}
    share_collection_locks(wanted)
    rows = Collection.objects.filter(id__in=wanted).values_list("id", "space_id", "vectors")
    if any(wanted[row[0]] != row for row in rows):
        raise StaleVectors


def _keep_unchanged(
    jobs: Sequence[LoadJob], locked: versions.LockedDocuments
) -> list[tuple[LoadJob, PreparedChunk]]:
    """Delete chunks that vanished, move those that stay, return the new ones."""
    filled = [job.document.id for job in jobs if job.document.id in locked.with_chunks]
    bare = [job.document.id for job in jobs if not job.document.collection.has_vectors]
    # A chunk that lacks its vector is replaced by one that has it.
    usable = Chunk.objects.filter(document__in=filled).filter(
        Q(embedding__isnull=False) | Q(document__in=bare)
    )
    known: dict[tuple[int, str], deque[Chunk]] = defaultdict(deque)
    for chunk in usable.defer("text", "context", "search_vector", "embedding").order_by(
        "document_id", "ordinal"
    ):
        known[chunk.document_id, chunk.content_sha256].append(chunk)
    new: list[tuple[LoadJob, PreparedChunk]] = []
    moved: list[Chunk] = []
    staying: set[int] = set()
    for job in jobs:
        for prepared in job.prepared.chunks:
            same = known.get((job.document.id, prepared.content_sha256))
            if same:
                chunk = same.popleft()
                staying.add(chunk.id)
                values = {**_position_values(job, prepared), "access": job.document.access}
                if any(getattr(chunk, name) != value for name, value in values.items()):
                    moved.append(chunk)
                for name, value in values.items():
                    setattr(chunk, name, value)
            else:
                new.append((job, prepared))
    if filled:
        vanished = Chunk.objects.filter(document_id__in=filled).exclude(id__in=staying)
        if vanished.exists():
            lexical_index.forget_words(vanished)
            listeners.remove_chunks(vanished)
    Chunk.objects.bulk_update(moved, MOVABLE_COLUMNS, batch_size=500)
    return new


def _position_values(job: LoadJob, chunk: PreparedChunk) -> dict[str, Any]:
    """The columns of a chunk that may differ between two texts that contain it."""
    return {
        "ordinal": chunk.ordinal,
        "start": chunk.start,
        "end": chunk.end,
        "page": chunk.page,
        "parent": chunk.parent,
        "token_count": chunk.token_count,
        "media_type": job.prepared.media_type,
        "metadata": {**job.prepared.metadata, **chunk.metadata},
        "language": configuration(chunk.language or job.prepared.language),
    }


def _store_chunks(
    jobs: Sequence[LoadJob], vectors: Vectors, locked: versions.LockedDocuments
) -> list[tuple[LoadJob, PreparedChunk]]:
    """Store the chunks that are not there yet; returns those that needed one of the `vectors`: the
    others share that of the current version."""
    known = versions.chunks_of_current_versions(locked.current)
    new: list[tuple[LoadJob, PreparedChunk]] = []
    shared: list[dict[str, Any]] = []
    for job, chunk in _keep_unchanged(jobs, locked):
        source = known.get((job.document.id, chunk.content_sha256))
        if source is None:
            new.append((job, chunk))
            continue
        shared.append(
            {
                "source": source,
                "document_id": job.document.id,
                "key": chunk.key,
                "heading_path": chunk.heading_path,
                "summary": chunk.summary,
                **_position_values(job, chunk),
            }
        )
    versions.copy_chunks(shared)
    if any(
        chunk.content_sha256 not in vectors
        for job, chunk in new
        if job.document.collection.has_vectors
    ):
        raise StaleVectors
    if new:
        configuration_oids()  # read now: no query can run while rows are being copied
        rows = (_chunk_row(job, chunk, vectors) for job, chunk in new)
        copy_rows("documents_chunk", CHUNK_COLUMNS, rows)
    return new


def _chunk_row(job: LoadJob, chunk: PreparedChunk, vectors: Vectors) -> tuple[Any, ...]:
    """What CHUNK_COLUMNS get, in their order."""
    document, placed = job.document, _position_values(job, chunk)
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
        Jsonb(placed["metadata"]),
        document.access,
        configuration_oids()[placed["language"]],
        vectors.get(chunk.content_sha256),
        chunk.content_sha256,
        document.is_current,
    )


_FINISH_DOCUMENTS = """
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


def _loaded_values(job: LoadJob) -> dict[str, Any]:
    """New column values of a loaded document with chunks of its own."""
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


#: Documents are loaded in groups of about this many chunks, so that progress shows.
GROUP_CHUNKS = 512


def group_jobs(jobs: Iterable[LoadJob]) -> Iterator[list[LoadJob]]:
    """Neighbours of one space, with or without vectors, about GROUP_CHUNKS chunks a group; a long
    document alone."""

    def kind(job: LoadJob) -> tuple[int, bool]:
        return job.document.collection.space_id, job.document.collection.has_vectors

    for _, of_space in groupby(jobs, key=kind):
        group: list[LoadJob] = []
        size = 0
        for job in of_space:
            chunks = len(job.prepared.chunks)
            if group and (size >= GROUP_CHUNKS or chunks > LONG_DOCUMENT_CHUNKS):
                yield group
                group, size = [], 0
            group.append(job)
            size += GROUP_CHUNKS if chunks > LONG_DOCUMENT_CHUNKS else chunks
        yield group


#: Documents of one space, with the vectors of their texts.
_Embedded = tuple[Sequence[LoadJob], EmbeddingGroup]


def load_groups(
    groups: Iterable[Sequence[LoadJob]], *, token: UUID, seconds: float = math.inf
) -> Iterator[Sequence[LoadJob]]:
    """Embed and load group after group; yields each when it is done. Before that, the languages of
    a group may give its collection another space.

    The model works on the next group while one is loaded, and the caller prepares more meanwhile:
    loading has its own thread and connection, unless the caller is inside a transaction. An
    unusable vector fails the document that it is for, not its neighbours. Raises TextsLeft after
    `seconds` in a long document, and InferenceError if the model does not work at all.
    """
    fitting = (group for jobs in groups for group in group_jobs(_choose_spaces(jobs)))
    embedded = _embed(fitting, token=token, seconds=seconds)
    if connection.in_atomic_block:
        for jobs, vectors in embedded:
            _load_group(jobs, vectors, token=token)
            yield jobs
        return

    def load_apart(pair: _Embedded) -> None:
        jobs, vectors = pair
        _load_group(jobs, vectors, token=token)

    def close_connection() -> None:
        connection.close()  # that of the thread which calls this

    for (jobs, _), _ in prefetch(load_apart, embedded, room=2, at_end=close_connection):
        yield jobs


def _embed(
    groups: Iterable[Sequence[LoadJob]], *, token: UUID, seconds: float = math.inf
) -> Iterator[_Embedded]:
    """The texts include people's edits; loading applies them again, as they are then."""
    waiting: deque[Sequence[LoadJob]] = deque()

    def embedding_groups() -> Iterator[EmbeddingGroup]:
        for jobs in groups:
            waiting.append(jobs)
            revised, _ = _apply_edits(jobs, edits.load_pending_edits(job.document for job in jobs))
            yield make_group([job.document for job in revised], [job.prepared for job in revised])

    for group in embed_groups(embedding_groups(), token=token, seconds=seconds):
        yield waiting.popleft(), group


def _choose_spaces(jobs: Sequence[LoadJob]) -> Sequence[LoadJob]:
    """The same documents, for the spaces that their languages need."""
    collections = {job.document.collection_id: job.document.collection for job in jobs}
    changed = [
        fit_space(
            collection,
            {
                job.document.key: evident_language(
                    job.prepared, job.document.declared, recipe_for(collection)
                )
                for job in jobs
                if job.document.collection_id == pk
            },
        )
        for pk, collection in collections.items()
    ]
    return _in_current_spaces(jobs) if any(changed) else jobs


def _in_current_spaces(jobs: Sequence[LoadJob]) -> list[LoadJob]:
    """The same documents, prepared for the spaces that their collections have by now."""
    for job in jobs:
        job.document.collection.refresh_from_db()
    return [
        replace(job, digest=recipe_for(job.document.collection).digest(job.document.declared))
        for job in jobs
    ]


def _embed_and_load(groups: Iterable[Sequence[LoadJob]], *, token: UUID) -> None:
    for jobs, embedded in _embed(groups, token=token):
        _load_group(jobs, embedded, token=token)


def _load_group(jobs: Sequence[LoadJob], embedded: EmbeddingGroup, *, token: UUID) -> None:
    if embedded.is_unwanted.is_set():
        return
    if embedded.error is not None:
        if len(jobs) == 1:
            ingestion_jobs.fail_documents(
                [jobs[0].document.id],
                code="invalid_vector",
                message=str(embedded.error),
                token=token,
            )
        else:
            _embed_and_load([[job] for job in jobs], token=token)
        return
    watch = Stopwatch({"embed": embedded.seconds})
    run_ids = ingestion_jobs.open_runs([job.document.id for job in jobs])
    try:
        with watch("load"):
            retry_on_deadlock(partial(load_documents, jobs, embedded.vectors, token=token))
    except StaleVectors:
        _embed_and_load(group_jobs(_in_current_spaces(jobs)), token=token)
        return
    ingestion_jobs.add_timings(run_ids, watch.seconds)

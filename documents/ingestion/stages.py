"""The stages as the queues run them: `ingest` parses and cuts, `embed` embeds and loads.

Each takes document ids, claims what still waits, and may be run twice or killed at any line.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from common.deadlocks import despite_deadlocks
from documents.embedders import embedder_for
from documents.ingestion import claims, runs, statistics, versions
from documents.ingestion.ahead import ahead
from documents.ingestion.contents import Content, content_of_stored
from documents.ingestion.embedding import Vectors, embed_texts, new_texts
from documents.ingestion.loading import Job, StaleVectors, load
from documents.ingestion.preparing import (
    PreparedDocument,
    Recipe,
    pack,
    prepare,
    unpack,
)
from documents.ingestion.stopwatch import Stopwatch
from documents.models import (
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    StagedDocument,
)
from documents.parsers import ParseError
from documents.parsing import ParserLimits
from inference.base import InferenceError, InvalidVector

#: Documents are loaded in groups of about this many chunks, so that progress shows.
GROUP_CHUNKS = 512
#: A document is loaded in one transaction, and its vectors are in memory together.
MAX_VECTOR_BYTES = 256 * 1024 * 1024
VECTOR_ITEM_BYTES = 4
#: Chunks that the model may be ahead of the loading, unless one document has more.
CHUNKS_AHEAD = 2 * GROUP_CHUNKS


def recipe_of(collection: Collection) -> Recipe:
    """How this collection's documents are cut and embedded."""
    return Recipe(
        chunker=collection.chunker,
        chunker_options=collection.chunker_options,
        space_id=collection.space_id,
        model_name=collection.space.model_name,
        language=collection.default_language,
        fallback_language=settings.FALLBACK_LANGUAGE,
    )


def parser_limits() -> ParserLimits:
    """What one file may cost."""
    return ParserLimits(
        seconds=settings.PARSER_SECONDS,
        memory_bytes=settings.PARSER_MEMORY_BYTES,
        max_bytes=settings.MAX_UPLOAD_BYTES,
    )


def prepare_for(
    collection: Collection,
    content: Content | bytes,
    *,
    name: str,
    declared: dict[str, Any],
    watch: Stopwatch,
) -> PreparedDocument:
    """Parse and cut a document of `collection`, each timed by `watch`. Raises ParseError."""
    embedder = embedder_for(collection.space)
    return prepare(
        content,
        name=name,
        recipe=recipe_of(collection),
        counter=embedder.token_counter(),
        declared=declared,
        limits=parser_limits(),
        max_chunks=MAX_VECTOR_BYTES // (VECTOR_ITEM_BYTES * embedder.dimensions),
        embed=embedder.embed_documents,
        watch=watch,
    )


def parse_documents(document_ids: Sequence[int]) -> list[int]:
    """Parse and cut the stored files of waiting documents; returns those to embed."""
    token, documents = claims.claim(document_ids)
    with claims.kept(token):
        staged = [document.id for document in documents if _parse_document(document, token)]
    _finish_runs(document_ids)
    return staged


def _parse_document(document: Document, token: UUID) -> bool:
    """True where the document has chunks that wait for their vectors."""
    watch = Stopwatch()
    runs.mark_items([document.id], state=IngestionItem.State.PARSING)
    if _gave_up(document, token):
        return False
    try:
        with watch("parse"):
            content = _stored_content(document)
        prepared = prepare_for(
            document.collection,
            content,
            name=document.source or document.key,
            declared=document.declared,
            watch=watch,
        )
    except ParseError as error:
        fail([document.id], code=error.code, message=str(error), token=token)
        return False
    runs.add_timings(runs.open_runs([document.id]), watch.seconds)
    return _stage(document, prepared, content.sha256, token)


def _stored_content(document: Document) -> Content:
    name = document.source or document.key
    try:
        return content_of_stored(document.file, name=name, max_bytes=settings.MAX_UPLOAD_BYTES)
    except (OSError, ValueError) as error:
        raise ParseError(
            "truncated",
            f"The stored file of {name} cannot be read ({error}). Upload it again.",
        ) from error


@transaction.atomic
def _stage(document: Document, prepared: PreparedDocument, digest: str, token: UUID) -> bool:
    held = Document.objects.select_for_update().filter(id=document.id, claimed_by=token)
    if not held.exists():
        return False
    StagedDocument.objects.update_or_create(
        document=document,
        defaults={"workspace_id": document.workspace_id, "payload": pack(prepared)},
    )
    held.update(source_sha256=digest, attempts=0)
    runs.mark_items([document.id], state=IngestionItem.State.EMBEDDING)
    return True


def embed_documents(document_ids: Sequence[int]) -> None:
    """Embed and load staged documents, in groups across documents."""
    # Only what is staged: a document that was replaced belongs to the `ingest` queue again.
    waiting = StagedDocument.objects.filter(document_id__in=document_ids)
    token, documents = claims.claim(waiting.values_list("document_id", flat=True))
    with claims.kept(token):
        for _ in load_groups(grouped(_staged_jobs(documents, token)), token=token):
            pass
    _finish_runs(document_ids)


def _staged_jobs(documents: Sequence[Document], token: UUID) -> Iterator[Job]:
    """One after the other: all of a message's together may be more than fits into memory."""
    for document in sorted(documents, key=lambda document: document.collection.space_id):
        staged = StagedDocument.objects.filter(document=document).first()
        if staged is not None and not _gave_up(document, token):
            yield Job(
                document=document,
                prepared=unpack(bytes(staged.payload)),
                digest=recipe_of(document.collection).digest(document.declared),
                source_sha256=document.source_sha256,
            )


def grouped(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Neighbours of one space, about GROUP_CHUNKS chunks a group."""

    def space_id(job: Job) -> int:
        return job.document.collection.space_id

    for _, of_space in groupby(jobs, key=space_id):
        group: list[Job] = []
        size = 0
        for job in of_space:
            if size >= GROUP_CHUNKS:
                yield group
                group, size = [], 0
            group.append(job)
            size += len(job.prepared.chunks)
        yield group


@dataclass(frozen=True, slots=True)
class _Group:
    """Documents of one space, and the texts of theirs that have no vector yet."""

    jobs: Sequence[Job]
    texts: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Embedded:
    """What the model made of a group's texts, in how many seconds."""

    vectors: Vectors | InvalidVector
    seconds: float


def load_groups(groups: Iterable[Sequence[Job]], *, token: UUID) -> Iterator[Sequence[Job]]:
    """Embed and load group after group; yields each when that is done.

    The model works on the next group while one is loaded, and the caller draws more meanwhile:
    loading has a thread and a connection of its own, unless the caller is inside a transaction. A
    model that answers with an unusable vector fails the document that it is for, not its
    neighbours. Raises InferenceError where the model does not work at all.
    """
    embedded = ahead(_embed, map(_group, groups), room=CHUNKS_AHEAD, size=_weight)
    if connection.in_atomic_block:
        for group, vectors in embedded:
            _load(group, vectors, token=token)
            yield group.jobs
        return

    def load_apart(pair: tuple[_Group, _Embedded]) -> None:
        _load(*pair, token=token)

    for (group, _), _ in ahead(load_apart, embedded, room=2, at_end=close_connection):
        yield group.jobs


def close_connection() -> None:
    """This thread's."""
    connection.close()


def _weight(group: _Group) -> int:
    return max(GROUP_CHUNKS, len(group.texts))


def _embed_and_load(jobs: Sequence[Job], *, token: UUID) -> None:
    group = _group(jobs)
    _load(group, _embed(group), token=token)


def _group(jobs: Sequence[Job]) -> _Group:
    return _Group(jobs, new_texts([(job.document.id, job.prepared) for job in jobs]))


def _embed(group: _Group) -> _Embedded:
    """Runs beside a transaction of the caller's: uses no database."""
    started = perf_counter()
    embedder = embedder_for(group.jobs[0].document.collection.space)
    vectors: Vectors | InvalidVector
    try:
        vectors = embed_texts(group.texts, embedder=embedder)
    except InvalidVector as error:
        vectors = error
    return _Embedded(vectors, perf_counter() - started)


def _load(group: _Group, embedded: _Embedded, *, token: UUID) -> None:
    jobs, vectors = group.jobs, embedded.vectors
    if isinstance(vectors, InvalidVector):
        if len(jobs) == 1:
            reason = str(vectors)
            fail([jobs[0].document.id], code="invalid_vector", message=reason, token=token)
            return
        for job in jobs:
            _embed_and_load([job], token=token)
        return
    watch = Stopwatch({"embed": embedded.seconds})
    run_ids = runs.open_runs([job.document.id for job in jobs])
    try:
        with watch("load"):
            despite_deadlocks(partial(load, jobs, vectors, token=token))
    except StaleVectors:
        for again in grouped([_as_of_now(job) for job in jobs]):
            _embed_and_load(again, token=token)
        return
    runs.add_timings(run_ids, watch.seconds)


def _as_of_now(job: Job) -> Job:
    """The same document for the space that its collection has now."""
    job.document.collection.refresh_from_db()
    return replace(job, digest=recipe_of(job.document.collection).digest(job.document.declared))


@transaction.atomic
def fail(
    document_ids: Sequence[int], *, code: str, message: str, token: UUID | None = None
) -> None:
    """Record that these documents cannot be ingested; what was searchable of them stays so.

    With `token` only those that are still held by it: a worker whose document was replaced
    meanwhile says nothing of the new one. Without, those that nobody holds.
    """
    held = Document.objects.select_for_update().filter(id__in=document_ids, claimed_by=token)
    document_ids = list(held.order_by("id").values_list("id", flat=True))
    Document.objects.filter(id__in=document_ids).update(
        status=Document.Status.FAILED,
        error_code=code,
        error=message,
        claimed_by=None,
        claimed_until=None,
    )
    StagedDocument.objects.filter(document_id__in=document_ids).delete()
    for note, ids in versions.failure_notes(document_ids).items():
        runs.settle_items(
            ids, state=IngestionItem.State.FAILED, error_code=code, error=message + note
        )


def _gave_up(document: Document, token: UUID) -> bool:
    """Fail a document whose worker died or whose model failed again and again."""
    if document.attempts < settings.INGESTION_MAX_ATTEMPTS:
        return False
    fail(
        [document.id],
        code="attempts",
        message=f"Given up after {document.attempts} attempts: the worker died or the model"
        " failed each time. See the worker's log, then upload it again.",
        token=token,
    )
    return True


def _finish_runs(document_ids: Sequence[int]) -> None:
    for run_id in runs.open_runs(document_ids):
        finish_run(run_id)


def finish_run(run_id: int) -> None:
    """End the run if all its files are settled, and count the collection's words."""
    if not runs.finish_if_settled(run_id):
        return
    run = IngestionRun.objects.select_related("collection").get(id=run_id)
    watch = Stopwatch()
    with watch("index"):
        if run.ready:
            statistics.note_change(run.collection)
        statistics.refresh_after_run(run.collection)
        statistics.analyze_after_run(run.embedded)
    runs.add_timings([run_id], watch.seconds)


def report_outage(document_ids: Sequence[int], error: InferenceError) -> None:
    """Show on the waiting documents why they wait."""
    Document.objects.filter(id__in=document_ids, status__in=claims.UNFINISHED).update(
        error_code="model_unavailable", error=str(error), attempts=0
    )

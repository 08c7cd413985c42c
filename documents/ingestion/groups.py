"""Embedding and loading, group after group of documents."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from time import perf_counter
from uuid import UUID

from django.db import connection

from common.deadlocks import despite_deadlocks
from documents.embedders import embedder_for
from documents.ingestion import runs
from documents.ingestion.ahead import ahead
from documents.ingestion.embedding import Vectors, embed_texts, new_texts
from documents.ingestion.loading import Job, StaleVectors, load
from documents.ingestion.recipes import recipe_of
from documents.ingestion.revising import revise, revisions_of
from documents.ingestion.settling import fail
from documents.ingestion.stopwatch import Stopwatch
from inference.base import InvalidVector

#: Documents are loaded in groups of about this many chunks, so that progress shows.
GROUP_CHUNKS = 512
#: Chunks that the model may be ahead of the loading, unless one document has more.
CHUNKS_AHEAD = 2 * GROUP_CHUNKS


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

    for (group, _), _ in ahead(load_apart, embedded, room=2, at_end=_close_connection):
        yield group.jobs


def _close_connection() -> None:
    """This thread's."""
    connection.close()


def _weight(group: _Group) -> int:
    return max(GROUP_CHUNKS, len(group.texts))


def _embed_and_load(jobs: Sequence[Job], *, token: UUID) -> None:
    group = _group(jobs)
    _load(group, _embed(group), token=token)


def _group(jobs: Sequence[Job]) -> _Group:
    """The texts are those with what people changed: loading puts it in again, as it is then."""
    revisions = revisions_of(job.document for job in jobs)
    prepared = {
        job.document.id: revise(job.prepared, revision, collection=job.document.collection).document
        for job in jobs
        if (revision := revisions.get(job.document.id))
    }
    return _Group(
        jobs,
        new_texts([(job.document.id, prepared.get(job.document.id, job.prepared)) for job in jobs]),
    )


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

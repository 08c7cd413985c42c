"""Vectors of prepared documents, made slice by slice. Those of a long document are kept as they
come (`StagedVectors`), so that a worker that is killed or stopped loses one slice. Begin with
`embed_groups`."""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from time import monotonic, perf_counter
from uuid import UUID

import numpy as np
from django.db import DatabaseError, connection, transaction
from django.db.models import F, QuerySet
from numpy.typing import NDArray

from documents.embedders import embedder_for
from documents.ingestion import jobs as ingestion_jobs
from documents.ingestion.concurrency import prefetch
from documents.ingestion.preparation import PreparedDocument
from documents.models import Collection, Document, EmbeddingSpace, IngestionItem, StagedVectors
from inference.cancellation import Cancelled, cancellation
from inference.interfaces import Embedder, InvalidVector
from inference.vectors import check_vectors

logger = logging.getLogger(__name__)

#: By content hash.
Vectors = dict[str, NDArray[np.float32]]

#: Texts that one of several threads asks the model for at a time.
TEXTS_PER_CALL = 64
#: Texts of the first slice of a model; later ones are as large as it does in about SLICE_SECONDS.
FIRST_SLICE_TEXTS = 16
MAX_SLICE_TEXTS = 512
SLICE_SECONDS = 2.0
#: A document with more chunks than this is embedded apart from others, and its vectors are staged.
LONG_DOCUMENT_CHUNKS = 256


# A version on its way takes those of the current one over.
_KNOWN_HASHES = """
    WITH source (document_id, chunks_of) AS (
        SELECT id, id FROM unnest(%(ids)s::bigint[]) AS id
        UNION ALL
        SELECT waiting.id, current.id FROM documents_document AS waiting
        -- OFFSET 0: looked up for each, not joined with all documents
        CROSS JOIN LATERAL (
            SELECT id FROM documents_document
            WHERE collection_id = waiting.collection_id AND key = waiting.key AND is_current
            OFFSET 0
        ) AS current
        WHERE waiting.id = ANY(%(ids)s) AND NOT waiting.is_current
    )
    SELECT source.document_id, chunk.content_sha256
    FROM source JOIN documents_chunk AS chunk ON chunk.document_id = source.chunks_of
    WHERE chunk.embedding IS NOT NULL
"""


def known_hashes(document_ids: Sequence[int]) -> set[tuple[int, str]]:
    """(document, content hash) of the chunks that already have a vector.

    In any space: chunks outside their collection's space are being re-embedded.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN_HASHES, {"ids": list(document_ids)})
        return set(cursor.fetchall())


def texts_to_embed(
    documents: Sequence[tuple[int, PreparedDocument]], *, collection: Collection
) -> dict[str, str]:
    """Texts to embed, by content hash: those of chunks that are new to their document. None where
    the collection has no vectors."""
    if not collection.has_vectors:
        return {}
    known = known_hashes([document_id for document_id, _ in documents])
    return {
        chunk.content_sha256: chunk.embedding_text
        for document_id, document in documents
        for chunk in document.chunks
        if (document_id, chunk.content_sha256) not in known
    }


def embed_texts(texts: Mapping[str, str], *, embedder: Embedder, concurrency: int = 1) -> Vectors:
    """Vectors under the keys of `texts`, embedded in batches across documents, `concurrency` at a
    time. Uses no database. Raises inference.interfaces.InferenceError."""
    if not texts:
        return {}
    ordered = list(texts.values())
    size = MAX_SLICE_TEXTS if concurrency == 1 else TEXTS_PER_CALL
    slices = [ordered[start : start + size] for start in range(0, len(texts), size)]
    with ThreadPoolExecutor(min(concurrency, len(slices))) as threads:
        run = map if concurrency == 1 else threads.map
        array = np.concatenate(list(run(embedder.embed_documents, slices)))
    checked = check_vectors(array, dimensions=embedder.dimensions)
    return dict(zip(texts, checked, strict=True))


class TextsLeft(Exception):
    """The time that was given is over, and texts of a long document are left to be embedded: the
    vectors that were made are staged."""


@dataclass(slots=True)
class EmbeddingGroup:
    """Documents of one space that are embedded together.

    `texts` have no vector yet, by content hash; `vectors` are those made of them. `seconds` of the
    model are those that were not added to the runs yet. `error` names an unusable vector, and
    `is_unwanted` is set when nobody claims the documents any more: then vectors are missing.
    """

    documents: Sequence[Document]
    texts: dict[str, str]
    is_long: bool
    vectors: Vectors = field(default_factory=dict)
    seconds: float = 0.0
    error: InvalidVector | None = None
    is_unwanted: Event = field(default_factory=Event)

    @property
    def space(self) -> EmbeddingSpace:
        return self.documents[0].collection.space

    @property
    def has_ended(self) -> bool:
        """Whether no further vector is of use."""
        return self.error is not None or self.is_unwanted.is_set()


def make_group(
    documents: Sequence[Document], prepared: Sequence[PreparedDocument]
) -> EmbeddingGroup:
    """The group of these documents, without what is embedded or staged already."""
    pairs = list(zip(documents, prepared, strict=True))
    is_long = len(pairs) == 1 and len(prepared[0].chunks) > LONG_DOCUMENT_CHUNKS
    texts = texts_to_embed(
        [(document.pk, each) for document, each in pairs], collection=documents[0].collection
    )
    if is_long:
        for digests in _staged(documents[0]).values_list("digests", flat=True):
            for digest in digests:
                texts.pop(digest, None)
    return EmbeddingGroup(documents, texts, is_long)


def _staged(document: Document) -> QuerySet[StagedVectors]:
    return StagedVectors.objects.filter(document=document, space=document.collection.space_id)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Texts of a group for one call of the model; without any it is the group's end."""

    group: EmbeddingGroup
    texts: Mapping[str, str]


#: What came of a slice, and the seconds it took.
_Outcome = tuple[Vectors | InvalidVector | Cancelled, float]


class _SliceSizes:
    """Texts of the next slice of each space, by how long the last one took."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    def __getitem__(self, space: EmbeddingSpace) -> int:
        return self._sizes.get(space.pk, FIRST_SLICE_TEXTS)

    def record(self, space: EmbeddingSpace, texts: int, seconds: float) -> None:
        """A slice took so long. One that was smaller than it could be says nothing, if quick."""
        size = self[space]
        wanted = int(texts * SLICE_SECONDS / max(seconds, 0.001))
        if texts >= size or wanted < size:
            self._sizes[space.pk] = max(1, min(wanted, 2 * size, MAX_SLICE_TEXTS))


_sizes = _SliceSizes()


def embed_groups(
    groups: Iterable[EmbeddingGroup], *, token: UUID, seconds: float = math.inf
) -> Iterator[EmbeddingGroup]:
    """Yields each group when its vectors are there, or when it `has_ended` before.

    The model runs in a thread, a slice ahead; the caller's connection is used for everything else,
    once a second for whether `token` still claims the documents. Raises TextsLeft after `seconds`
    in a long document, at least one slice later than before, and InferenceError if the model does
    not work at all.
    """
    deadline = monotonic() + seconds
    left: list[EmbeddingGroup] = []

    def slices() -> Iterator[_Slice]:
        for group in groups:
            # Texts of one length go together, which is quickest; the longest first.
            rest = iter(sorted(group.texts.items(), key=lambda item: len(item[1]), reverse=True))
            is_first = True
            while not group.has_ended:
                texts = dict(islice(rest, _sizes[group.space]))
                if not texts:
                    break
                if group.is_long and not is_first and monotonic() > deadline:
                    left.append(group)
                    return
                yield _Slice(group, texts)
                is_first = False
            yield _Slice(group, {})

    def embed(part: _Slice) -> _Outcome:
        # Runs beside the caller's transaction, so it uses no database.
        started = perf_counter()
        outcome: Vectors | InvalidVector | Cancelled = {}
        if part.texts and not part.group.has_ended:
            try:
                with cancellation(part.group.is_unwanted):
                    outcome = embed_texts(part.texts, embedder=embedder_for(part.group.space))
            except (Cancelled, InvalidVector) as error:
                outcome = error
        return outcome, perf_counter() - started

    def check_claims(part: _Slice) -> None:
        try:
            if not _claimed(part.group, token).exists():
                part.group.is_unwanted.set()
        except DatabaseError as error:
            if connection.in_atomic_block:
                raise
            logger.warning("the claims of documents could not be checked: %s", error)
            connection.close()

    results = prefetch(
        embed,
        slices(),
        room=2,
        size=lambda part: 1 if part.texts else 0,
        while_waiting=check_claims,
    )
    for part, (outcome, spent) in results:
        group = part.group
        if not part.texts:
            if group.is_long and not group.has_ended:
                group.vectors = _staged_vectors(group)
            yield group
        elif isinstance(outcome, InvalidVector):
            group.error = outcome
        elif not isinstance(outcome, Cancelled) and outcome:
            _sizes.record(group.space, len(part.texts), spent)
            if not group.is_long:
                group.vectors |= outcome
                group.seconds += spent
            elif not _stage(group, outcome, spent, token=token):
                group.is_unwanted.set()
    if left:
        raise TextsLeft


def _claimed(group: EmbeddingGroup, token: UUID) -> QuerySet[Document]:
    ids = [document.pk for document in group.documents]
    return Document.objects.filter(pk__in=ids, claimed_by=token)


@transaction.atomic
def _stage(group: EmbeddingGroup, vectors: Vectors, seconds: float, *, token: UUID) -> bool:
    """Keep vectors of a long document, and show on its runs how far it is. False if `token` does
    not claim it any more."""
    # A slice is a sign of life: only slices that end the worker use up attempts.
    if not _claimed(group, token).update(attempts=0):
        return False
    [document] = group.documents
    StagedVectors.objects.create(
        workspace_id=document.workspace_id,
        document=document,
        space=group.space,
        digests=list(vectors),
        vectors=np.stack(list(vectors.values())).tobytes(),
    )
    for digest in vectors:
        del group.texts[digest]
    run_ids = ingestion_jobs.open_runs([document.pk])
    IngestionItem.objects.filter(document=document, state__in=IngestionItem.ACTIVE).update(
        chunks_embedded=F("chunks_embedded") + len(vectors),
        chunks_to_embed=F("chunks_embedded") + len(vectors) + len(group.texts),
    )
    for run_id in run_ids:
        ingestion_jobs.count_on_run(run_id, embedded=len(vectors))
    ingestion_jobs.add_timings(run_ids, {"embed": seconds})
    return True


def _staged_vectors(group: EmbeddingGroup) -> Vectors:
    [document] = group.documents
    staged: Vectors = {}
    for digests, packed in _staged(document).values_list("digests", "vectors").iterator(8):
        rows = np.frombuffer(packed, dtype=np.float32).reshape(len(digests), -1)
        staged.update(zip(digests, rows, strict=True))
    return staged

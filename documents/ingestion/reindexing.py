"""Vectors, word counts and vector indexes made anew."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from documents import lexical_index
from documents.embedders import embedder_for
from documents.ingestion.indexes import rebuild_index
from documents.ingestion.locks import share_collections
from documents.models import Chunk, Collection, Document, EmbeddingSpace
from documents.models.chunk import embedding_text
from inference.base import EmptyText, InvalidVector
from inference.vectors import check_vectors

BATCH = 256
#: Somebody else at work on the same chunk, or a collection getting another space, once is bad luck.
TRIES = 5


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What was done. `unknown` are ids of no chunk; `refused` are chunks that the model has no
    usable vector for, `busy` those that somebody else changed again and again."""

    embedded: int
    collections: int
    indexes: tuple[str, ...] = ()
    unknown: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    busy: tuple[int, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for is done."""
        return not (self.unknown or self.refused or self.busy)


def reindex_chunks(
    *,
    chunk_ids: Sequence[int],
    index: bool = False,
    on_progress: Callable[[int, int], Any] = lambda done, total: None,
) -> Reindexed:
    """Embed these chunks anew, each in its collection's space, and count the words of their
    collections. Raises InferenceError."""
    wanted = sorted(set(chunk_ids))
    rows = Chunk.objects.filter(pk__in=wanted).values_list("pk", "collection_id")
    there = dict(rows.order_by("pk"))
    collections = Collection.objects.filter(pk__in=there.values()).select_related("space")
    return _reindex(
        list(collections),
        {pk: [id_ for id_, owner in there.items() if owner == pk] for pk in set(there.values())},
        unknown=[pk for pk in wanted if pk not in there],
        index=index,
        on_progress=on_progress,
    )


def reindex_document(*, document: Document, embed: bool, **options: Any) -> Reindexed:
    """Count the words of the document's collection, and embed its chunks where `embed`."""
    ids = (
        Chunk.objects.filter(document=document.text_id).order_by("pk").values_list("pk", flat=True)
    )
    chunks = {document.collection_id: list(ids)} if embed else {}
    return _reindex([document.collection], chunks, **options)


def reindex_collection(*, collection: Collection, embed: bool, **options: Any) -> Reindexed:
    """The same for a whole collection. Searches go on meanwhile, with the vectors of before."""
    ids = Chunk.objects.filter(collection=collection).order_by("pk").values_list("pk", flat=True)
    chunks = {collection.pk: list(ids.iterator(chunk_size=10_000))} if embed else {}
    return _reindex([collection], chunks, **options)


def _reindex(
    collections: Sequence[Collection],
    chunks: dict[int, list[int]],
    *,
    unknown: Sequence[int] = (),
    index: bool = False,
    on_progress: Callable[[int, int], Any] = lambda done, total: None,
) -> Reindexed:
    total = sum(map(len, chunks.values()))
    embedded = 0
    refused: list[int] = []
    busy: list[int] = []
    for collection in collections:
        ids = chunks.get(collection.pk, [])
        for start in range(0, len(ids), BATCH):
            done, without, missed = _embed_again(collection, ids[start : start + BATCH])
            embedded += done
            refused += without
            busy += missed
            on_progress(embedded + len(refused) + len(busy), total)
        lexical_index.rebuild(collection.pk)
    spaces: dict[int, EmbeddingSpace] = {row.space_id: row.space for row in collections}
    built = [space.name for space in spaces.values() if index and rebuild_index(space)]
    return Reindexed(
        embedded=embedded,
        collections=len(collections),
        indexes=tuple(built),
        unknown=tuple(unknown),
        refused=tuple(refused),
        busy=tuple(busy),
    )


def _embed_again(collection: Collection, ids: list[int]) -> tuple[int, list[int], list[int]]:
    """How many got a vector, which have none, and which were never free."""
    left, refused, stored = ids, list[int](), 0
    for _ in range(TRIES):
        collection.refresh_from_db()
        fields = ("pk", "context", "text", "content_sha256")
        rows = list(Chunk.objects.filter(pk__in=left).only(*fields).order_by("pk"))
        vectors = _vectors(collection.space, rows)
        refused += [row.pk for row in rows if row.pk not in vectors]
        done = _store(collection, rows, vectors)
        stored += len(done)
        left = [row.pk for row in rows if row.pk in vectors and row.pk not in done]
        if not left:
            break
    return stored, refused, left


def _vectors(space: EmbeddingSpace, rows: Sequence[Chunk]) -> dict[int, NDArray[np.float32]]:
    """By chunk; one that has none does not hold up its neighbours."""
    if not rows:
        return {}
    embedder = embedder_for(space)
    texts = [embedding_text(row.context, row.text) for row in rows]
    try:
        array = check_vectors(embedder.embed_documents(texts), dimensions=space.dimensions)
    except (InvalidVector, EmptyText):
        if len(rows) == 1:
            return {}
        return {pk: vector for row in rows for pk, vector in _vectors(space, [row]).items()}
    return {row.pk: vector for row, vector in zip(rows, array, strict=True)}


_STORE = """
    UPDATE documents_chunk SET space_id = %s, embedding = %s WHERE id = %s AND content_sha256 = %s
"""


@transaction.atomic
def _store(
    collection: Collection, rows: Sequence[Chunk], vectors: dict[int, NDArray[np.float32]]
) -> set[int]:
    """The chunks that got their vectors: none where the collection has another space by now, and
    not those that somebody else changes, for whom waiting might be a deadlock."""
    share_collections([collection.pk])
    if not Collection.objects.filter(pk=collection.pk, space=collection.space_id).exists():
        return set()
    free = set(
        Chunk.objects.select_for_update(skip_locked=True)
        .filter(pk__in=vectors)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    values: list[Any] = [
        (collection.space_id, vectors[row.pk], row.pk, row.content_sha256)
        for row in rows
        if row.pk in free
    ]
    if values:
        with connection.cursor() as cursor:
            cursor.executemany(_STORE, values)
    return free

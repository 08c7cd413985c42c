"""Vectors made anew: moving chunks to another embedding space while searches go on
(`start_reembedding`), and re-embedding chunks in place (`reindex_chunks`).

A collection changes its space first, so that new chunks go there; its former space is searched too
until the last of its chunks has moved.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext
from numpy.typing import NDArray

from common import features
from common.errors import Conflict
from common.leases import database_now
from common.shards import on_shard, other_shards
from documents import lexical_index
from documents.embedders import embedder_for
from documents.ingestion.concurrency import (
    heartbeat,
    lock_collection,
    lock_space_changes,
    share_collection_locks,
)
from documents.ingestion.preparation import recipe_for
from documents.ingestion.vector_indexes import build_index, drop_index, rebuild_index
from documents.models import Chunk, Collection, Document, EmbeddingSpace, Reembedding
from documents.models.chunk import embedding_text
from inference.interfaces import EmptyText, InvalidVector
from inference.vectors import check_vectors

State = Reembedding.State

#: Chunks of the first batch; later ones are as large as the model does in about BATCH_SECONDS, so
#: that progress shows and it can be stopped, on a slow processor and on a fast one.
FIRST_BATCH_CHUNKS = 64
MAX_BATCH_CHUNKS = 1024
BATCH_SECONDS = 5.0


#: Chunk id after which the next batch begins, and its size.
Cursor = tuple[int, int]
FIRST_CURSOR: Cursor = (0, FIRST_BATCH_CHUNKS)


class TakenOver(Exception):
    """The re-embedding was stopped, or another process continues it."""


def start_reembedding(
    *,
    target: EmbeddingSpace,
    collection: Collection | None = None,
    by_hand: bool = True,
    user: Any = None,
) -> Reembedding:
    """Begin to move a collection, or all of them, into `target`; or resume.

    From here on new chunks go into `target`. Moving all also makes it the default. If it is begun
    `by_hand`, languages no longer choose the model of what moves. Raises InferenceError if the
    space's embedder does not fit, Conflict if chunks are being moved elsewhere. Inside a
    transaction nobody loads into these collections until its end.
    """
    features.require("vectors")
    if collection is not None:
        collection.require_vectors()
    embedder_for(target)
    with transaction.atomic():
        lock_space_changes()
        others = Reembedding.objects.filter(state=State.RUNNING).exclude(
            target=target, collection=collection
        )
        for other in others.select_related("target", "collection"):
            if collection is None or other.collection_id in (None, collection.pk):
                raise Conflict(
                    gettext(
                        "{what} is being re-embedded. Wait until that ends, or stop it"
                        " with `manage.py reembed --cancel --to {space}`."
                    ).format(what=str(other).capitalize(), space=other.target.name)
                )
        EmbeddingSpace.objects.filter(pk=target.pk).update(state=EmbeddingSpace.State.LIVE)
        left: set[int] = set()
        if collection is None:
            # At the end nobody may use the former default spaces, though no collection leaves them
            # because each was moved by itself before.
            former = EmbeddingSpace.objects.exclude(pk=target.pk).filter(is_default=True)
            left = set(former.values_list("pk", flat=True))
            EmbeddingSpace.objects.filter(pk__in=left).update(is_default=False)
            EmbeddingSpace.objects.filter(pk=target.pk).update(is_default=True)
        row, is_new = Reembedding.objects.exclude(state=State.DONE).get_or_create(
            target=target, collection=collection, defaults={"created_by": user}
        )
        if by_hand and is_new:
            _affected_collections(row).filter(automatic_model=True).update(automatic_model=False)
        row.sources = sorted({*row.sources, *left})
        row.state, row.done, row.refused, row.error = State.RUNNING, 0, [], ""
        row.started_at = row.seen_at = database_now()
        row.save()
    _switch_spaces(row)
    row.total = sum(_chunks_left(entry).count() for entry in _moving_collections(row))
    row.save(update_fields=["total", "updated_at"])
    return row


def take_over(row: Reembedding) -> UUID:
    """Take the re-embedding over; its former worker stops at the next batch."""
    row.token, row.state, row.seen_at = uuid4(), State.RUNNING, database_now()
    row.save(update_fields=["token", "state", "seen_at", "updated_at"])
    return row.token


def stop_reembedding(row: Reembedding, *, error: str = "") -> bool:
    """Stop it after the current batch; returns whether it was running.

    Nothing is undone: both spaces continue to be searched. With `error` it has failed.
    """
    stopped = Reembedding.objects.filter(pk=row.pk, state=State.RUNNING).update(
        state=State.FAILED if error else State.STOPPED,
        error=error,
        token=None,
        updated_at=timezone.now(),
    )
    return bool(stopped)


def move_batch(row: Reembedding, *, token: UUID, cursor: Cursor = FIRST_CURSOR) -> Cursor | None:
    """Move the batch at `cursor`; returns the next cursor, None when all is done.

    Raises TakenOver, and InferenceError if the model does not work. Must not be called inside a
    transaction.
    """
    started = perf_counter()
    batch = _chunks_to_move(row, cursor)
    if batch:
        with heartbeat(lambda: _renew_lease(row, token)):
            vectors = _embed_chunks(row.target, batch)
        row.refused += [chunk.pk for chunk in batch if chunk.pk not in vectors]
        _store_batch(row, batch, vectors, token)
        seconds = perf_counter() - started
        _, size = cursor
        wanted = size * BATCH_SECONDS / max(seconds, 0.001)
        next_size = int(min(max(1, size // 4, wanted), 2 * size, MAX_BATCH_CHUNKS))
        return batch[-1].pk, next_size
    with transaction.atomic():
        # Or one that was stopped would take back collections that move elsewhere by now.
        _lock_row(row, token)
        _switch_spaces(row)
        settled = _forget_former_spaces(row)
    if settled:
        # Build the target's index, retire spaces that nobody uses and drop their indexes.
        build_target_index(row, token=token)
        for space in EmbeddingSpace.objects.filter(pk__in=row.sources):
            if not _is_used_here(space):
                drop_index(space)
            if not is_space_in_use(space):
                EmbeddingSpace.objects.filter(pk=space.pk).update(
                    state=EmbeddingSpace.State.RETIRED
                )
        Reembedding.objects.filter(pk=row.pk, token=token).update(
            state=State.DONE, finished_at=timezone.now(), token=None, updated_at=timezone.now()
        )
        return None
    row.refresh_from_db()
    if row.refused and not _chunks_to_move(row, FIRST_CURSOR):
        build_target_index(row, token=token)
        first = Chunk.objects.filter(pk__in=row.refused).first()
        # By number: names go with their documents.
        where = f", the first one in document {first.document_id}" if first else ""
        refused_message = (
            f"{row.target.model_name} gave no usable vector for {len(row.refused):,} of the"
            f" passages{where}. They stay in their old space and are found there. Change or"
            " delete them, or choose another model; then start again."
        )
        stop_reembedding(row, error=refused_message)
        return None
    return FIRST_CURSOR  # chunks that another transaction had locked when they were passed


def builds_index_first(row: Reembedding) -> bool:
    """Whether the target's index is built before the chunks are moved.

    An HNSW graph can grow chunk by chunk, only slower than at once: worth it if searching the moved
    chunks without an index would be slow. IVFFlat lists need the rows first.
    """
    return row.target.index_type == "hnsw" and row.total > settings.EXACT_SCAN_CHUNKS


def build_target_index(row: Reembedding, *, token: UUID) -> None:
    """Build the target's index if missing; may take long."""
    with heartbeat(lambda: _renew_lease(row, token)):
        build_index(row.target)


def _renew_lease(row: Reembedding, token: UUID) -> None:
    Reembedding.objects.filter(pk=row.pk, token=token).update(seen_at=Now())


# --- collections ---------------------------------------------------------------------------------


def _affected_collections(row: Reembedding) -> QuerySet[Collection]:
    every = Collection.objects.filter(vectors=True).order_by("id")
    return every if row.collection_id is None else every.filter(pk=row.collection_id)


def _moving_collections(row: Reembedding) -> QuerySet[Collection]:
    """Collections that may still have chunks in a former space."""
    return _affected_collections(row).exclude(former_spaces=[])


def _chunks_left(collection: Collection) -> QuerySet[Chunk]:
    """Chunks of the collection that are not in its space yet."""
    return Chunk.objects.filter(collection=collection, space__in=collection.former_spaces)


def _switch_spaces(row: Reembedding) -> None:
    """Set the target as every collection's space; the previous one becomes a former space."""
    for collection in _affected_collections(row).exclude(space=row.target):
        with transaction.atomic():
            lock_collection(collection.pk)
            # Read again: it may have changed while this waited.
            held = Collection.objects.select_related("space").get(pk=collection.pk)
            before = held.space
            held.former_spaces = sorted({*held.former_spaces, before.pk} - {row.target_id})
            held.space = row.target
            held.save(update_fields=["space", "former_spaces", "updated_at"])
            row.sources = sorted({*row.sources, *held.former_spaces})
            row.save(update_fields=["sources", "updated_at"])
            # Documents that were up to date stay so: their text need not be parsed again.
            new = recipe_for(held)
            old = replace(new, space_id=before.pk, model_name=before.model_name)
            documents = Document.objects.filter(collection=held).only("id", "recipe", "declared")
            changed: list[Document] = []
            for document in documents.iterator(chunk_size=2000):
                if document.recipe == old.digest(document.declared):
                    document.recipe = new.digest(document.declared)
                    changed.append(document)
            Document.objects.bulk_update(changed, ["recipe"], batch_size=1000)


def _forget_former_spaces(row: Reembedding) -> bool:
    """Clear the former spaces of collections that have no chunks left there; returns whether all
    have."""
    settled = True
    for collection in _moving_collections(row):
        with transaction.atomic():
            lock_collection(collection.pk)
            held = Collection.objects.get(pk=collection.pk)
            if _chunks_left(held).exists():
                settled = False
            else:
                Collection.objects.filter(pk=held.pk).update(former_spaces=[])
    return settled and not _affected_collections(row).exclude(space=row.target).exists()


# --- batches -------------------------------------------------------------------------------------


def _chunks_to_move(row: Reembedding, cursor: Cursor) -> list[Chunk]:
    """The next chunks to move, by id."""
    after, size = cursor
    scope = list(_moving_collections(row).only("id", "former_spaces"))
    spaces = {space for entry in scope for space in entry.former_spaces}
    chunks = Chunk.objects.filter(
        collection__in=scope, space__in=spaces - {row.target_id}, pk__gt=after
    )
    return list(
        chunks.exclude(pk__in=row.refused)
        .only("id", "context", "text", "content_sha256")
        .order_by("id")[:size]
    )


def _embed_chunks(space: EmbeddingSpace, chunks: Sequence[Chunk]) -> dict[int, NDArray[np.float32]]:
    """Vectors by chunk id. A chunk without a usable one does not affect its neighbours: such as one
    without text, whose vector is its caller's and which no model can make again."""
    if not chunks:
        return {}
    embedder = embedder_for(space)
    texts = [embedding_text(chunk.context, chunk.text) for chunk in chunks]
    try:
        array = check_vectors(embedder.embed_documents(texts), dimensions=space.dimensions)
    except (InvalidVector, EmptyText):
        if len(chunks) == 1:
            return {}
        return {
            pk: vector for chunk in chunks for pk, vector in _embed_chunks(space, [chunk]).items()
        }
    return {chunk.pk: vector for chunk, vector in zip(chunks, array, strict=True)}


def _lock_row(row: Reembedding, token: UUID) -> QuerySet[Reembedding]:
    """The row, locked until the end of the transaction. Raises TakenOver if `token` no longer owns
    it."""
    held = Reembedding.objects.select_for_update().filter(
        pk=row.pk, token=token, state=State.RUNNING
    )
    if not held:
        raise TakenOver(f"the re-embedding of {row} was stopped, or goes on in another process.")
    return held


_STORE_VECTOR = """
    UPDATE documents_chunk SET space_id = %s, embedding = %s WHERE id = %s AND content_sha256 = %s
"""


def _store_vectors(
    space_id: int, chunks: Sequence[Chunk], vectors: Mapping[int, NDArray[np.float32]]
) -> set[int]:
    """Store the vectors, unless a text has changed; returns the chunks that got theirs. Chunks
    locked by others are skipped, because waiting could deadlock."""
    free = set(
        Chunk.objects.select_for_update(skip_locked=True)
        .filter(pk__in=vectors)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    rows: list[Any] = [
        (space_id, vectors[chunk.pk], chunk.pk, chunk.content_sha256)
        for chunk in chunks
        if chunk.pk in free
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_STORE_VECTOR, rows)
    return free


@transaction.atomic
def _store_batch(
    row: Reembedding,
    batch: Sequence[Chunk],
    vectors: Mapping[int, NDArray[np.float32]],
    token: UUID,
) -> None:
    """Store the vectors if `token` still owns the move. A later round finds skipped chunks."""
    held = _lock_row(row, token)
    stored = _store_vectors(row.target_id, batch, vectors)
    held.update(
        done=F("done") + len(stored),
        refused=row.refused,
        error="",
        seen_at=Now(),
        updated_at=timezone.now(),
    )


# --- the end -------------------------------------------------------------------------------------


def is_space_in_use(space: EmbeddingSpace) -> bool:
    """Whether the space holds chunks, or will. Raises OperationalError where a shard does not
    answer."""
    for shard in other_shards():
        with on_shard(shard):
            if _is_used_here(space):
                return True
    return _is_used_here(space)


def _is_used_here(space: EmbeddingSpace) -> bool:
    return (
        space.is_default
        or Collection.objects.filter(space=space).exists()
        or Collection.objects.filter(former_spaces__contains=[space.pk]).exists()
        or Chunk.objects.filter(space=space).exists()
    )


REINDEX_BATCH = 256
#: Attempts when others change the same chunk, or the collection's space, concurrently.
REINDEX_TRIES = 5


@dataclass(frozen=True, slots=True)
class ReindexResult:
    """The result. `unknown` are ids of no chunk; `refused` are chunks without usable vector, `busy`
    those that others kept changing."""

    embedded: int
    collections: int
    indexes: tuple[str, ...] = ()
    unknown: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    busy: tuple[int, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything requested was done."""
        return not (self.unknown or self.refused or self.busy)


def reindex_chunks(
    *,
    chunk_ids: Sequence[int],
    index: bool = False,
    on_progress: Callable[[int, int], Any] = lambda done, total: None,
) -> ReindexResult:
    """Embed these chunks again, each in its collection's space, and rebuild the lexical index of
    their collections. Raises InferenceError."""
    wanted = sorted(set(chunk_ids))
    rows = Chunk.objects.filter(pk__in=wanted).values_list("pk", "collection_id")
    there = dict(rows.order_by("pk"))
    collections = Collection.objects.filter(pk__in=there.values()).select_related("space")
    return _reindex_collections(
        list(collections),
        {pk: [id_ for id_, owner in there.items() if owner == pk] for pk in set(there.values())},
        unknown=[pk for pk in wanted if pk not in there],
        index=index,
        on_progress=on_progress,
    )


def reindex_missing(**options: Any) -> ReindexResult:
    """Embed all chunks that have no vector, such as those of a time when vectors were switched
    off."""
    features.require("vectors")
    bare = Chunk.objects.filter(embedding=None, collection__vectors=True)
    ids = bare.order_by("pk").values_list("pk", flat=True)
    return reindex_chunks(chunk_ids=list(ids.iterator(chunk_size=10_000)), **options)


def reindex_document(*, document: Document, embed: bool, **options: Any) -> ReindexResult:
    """Rebuild the lexical index of the document's collection, and embed its chunks if `embed`."""
    ids = (
        Chunk.objects.filter(document=document.text_id).order_by("pk").values_list("pk", flat=True)
    )
    chunks = {document.collection_id: list(ids)} if embed else {}
    return _reindex_collections([document.collection], chunks, **options)


def reindex_collection(*, collection: Collection, embed: bool, **options: Any) -> ReindexResult:
    """The same for a whole collection. Searches use the previous vectors meanwhile."""
    ids = Chunk.objects.filter(collection=collection).order_by("pk").values_list("pk", flat=True)
    chunks = {collection.pk: list(ids.iterator(chunk_size=10_000))} if embed else {}
    return _reindex_collections([collection], chunks, **options)


def _reindex_collections(
    collections: Sequence[Collection],
    chunks: dict[int, list[int]],
    *,
    unknown: Sequence[int] = (),
    index: bool = False,
    on_progress: Callable[[int, int], Any] = lambda done, total: None,
) -> ReindexResult:
    for collection in collections:
        if chunks.get(collection.pk):
            collection.require_vectors()
    total = sum(map(len, chunks.values()))
    embedded = 0
    refused: list[int] = []
    busy: list[int] = []
    for collection in collections:
        ids = chunks.get(collection.pk, [])
        for start in range(0, len(ids), REINDEX_BATCH):
            done, without, missed = _reembed_chunks(collection, ids[start : start + REINDEX_BATCH])
            embedded += done
            refused += without
            busy += missed
            on_progress(embedded + len(refused) + len(busy), total)
        lexical_index.rebuild_lexical_index(collection.pk)
    spaces: dict[int, EmbeddingSpace] = {row.space_id: row.space for row in collections}
    built = [space.name for space in spaces.values() if index and rebuild_index(space)]
    return ReindexResult(
        embedded=embedded,
        collections=len(collections),
        indexes=tuple(built),
        unknown=tuple(unknown),
        refused=tuple(refused),
        busy=tuple(busy),
    )


def _reembed_chunks(collection: Collection, ids: list[int]) -> tuple[int, list[int], list[int]]:
    """Counts and ids: how many got a vector, which have none, and which were always locked."""
    left, refused, stored = ids, list[int](), 0
    for _ in range(REINDEX_TRIES):
        collection.refresh_from_db()
        fields = ("pk", "context", "text", "content_sha256")
        rows = list(Chunk.objects.filter(pk__in=left).only(*fields).order_by("pk"))
        vectors = _embed_chunks(collection.space, rows)
        refused += [row.pk for row in rows if row.pk not in vectors]
        done: set[int] = set()
        with transaction.atomic():
            share_collection_locks([collection.pk])
            # None if the collection has another space by now.
            if Collection.objects.filter(pk=collection.pk, space=collection.space_id).exists():
                done = _store_vectors(collection.space_id, rows, vectors)
        stored += len(done)
        left = [row.pk for row in rows if row.pk in vectors and row.pk not in done]
        if not left:
            break
    return stored, refused, left

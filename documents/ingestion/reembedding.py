"""Moving chunks from their space to another, batch by batch, while people search.

A collection changes its space first, so that everything new goes there; its former space is
searched too until the last of its chunks has moved.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from common.clock import database_now
from common.errors import Conflict
from common.wording import counted
from documents.embedders import embedder_for
from documents.ingestion.heartbeat import heartbeat
from documents.ingestion.indexes import build_index, drop_index
from documents.ingestion.locks import hold_collection, hold_starts
from documents.ingestion.recipes import recipe_of
from documents.models import Chunk, Collection, Document, EmbeddingSpace, Reembedding
from documents.models.chunk import embedding_text
from inference.base import Embedder, EmptyText, InvalidVector

State = Reembedding.State

#: Chunks of the first batch; later ones are as large as the model does in about BATCH_SECONDS, so
#: that progress shows and it can be stopped, on a slow processor and on a fast one.
FIRST_BATCH = 64
LARGEST_BATCH = 1024
BATCH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next batch begins, and how large it is."""

    after: int = 0
    size: int = FIRST_BATCH


class TakenOver(Exception):
    """Somebody stopped this re-embedding, or works on it now."""


def start(
    *, target: EmbeddingSpace, collection: Collection | None = None, user: Any = None
) -> Reembedding:
    """Begin to move a collection, or all of them, into `target`; or go on with it.

    From here on new chunks go into `target`. All of them also makes it the default. Raises
    InferenceError where the space's embedder does not fit, Conflict where chunks are being moved
    somewhere else. Must not be called inside a transaction.
    """
    embedder_for(target)
    row = _begin(target, collection, user)
    _switch(row)
    row.total = sum(_left(entry).count() for entry in _moving(row))
    row.save(update_fields=["total", "updated_at"])
    return row


@transaction.atomic
def _begin(target: EmbeddingSpace, collection: Collection | None, user: Any) -> Reembedding:
    hold_starts()
    _refuse_two_ways(target, collection)
    EmbeddingSpace.objects.filter(pk=target.pk).update(state=EmbeddingSpace.State.LIVE)
    left = _make_default(target) if collection is None else set()
    row, _ = Reembedding.objects.exclude(state=State.DONE).get_or_create(
        target=target, collection=collection, defaults={"created_by": user}
    )
    row.sources = sorted({*row.sources, *left})
    row.state, row.done, row.refused, row.error = State.RUNNING, 0, [], ""
    row.started_at = row.seen_at = database_now()
    row.save()
    return row


def _make_default(target: EmbeddingSpace) -> set[int]:
    """Ids of the spaces that are the default no more: at the end nobody may use them, though no
    collection leaves them, because each was moved by itself before."""
    others = EmbeddingSpace.objects.exclude(pk=target.pk).filter(is_default=True)
    left = set(others.values_list("pk", flat=True))
    EmbeddingSpace.objects.filter(pk__in=left).update(is_default=False)
    EmbeddingSpace.objects.filter(pk=target.pk).update(is_default=True)
    return left


def take(row: Reembedding) -> UUID:
    """Work on it from now on; whoever did before stops at the next batch."""
    row.token, row.state, row.seen_at = uuid4(), State.RUNNING, database_now()
    row.save(update_fields=["token", "state", "seen_at", "updated_at"])
    return row.token


def stop(row: Reembedding, *, error: str = "") -> bool:
    """Stop it after the batch that is being embedded; whether it was running.

    Nothing is undone: both spaces go on being searched. With `error` it failed.
    """
    stopped = Reembedding.objects.filter(pk=row.pk, state=State.RUNNING).update(
        state=State.FAILED if error else State.STOPPED,
        error=error,
        token=None,
        updated_at=timezone.now(),
    )
    return bool(stopped)


def advance(row: Reembedding, *, token: UUID, cursor: Cursor) -> Cursor | None:
    """Move the batch at `cursor`; where the next one is, None when all is done.

    Raises TakenOver, and InferenceError where the model does not work. Must not be called inside
    a transaction.
    """
    started = perf_counter()
    batch = _next_batch(row, cursor)
    if batch:
        with heartbeat(lambda: _show_life(row, token)):
            vectors = _embed(row, batch)
        _store(row, batch, vectors, token)
        return Cursor(batch[-1].pk, _next_size(cursor.size, perf_counter() - started))
    with transaction.atomic():
        # Or one that was stopped would take back collections that move elsewhere by now.
        _hold(row, token)
        _switch(row)
        settled = _settle(row)
    if settled:
        _finish(row, token)
        return None
    row.refresh_from_db()
    if row.refused and not _next_batch(row, Cursor()):
        index(row, token=token)
        stop(row, error=_refusal(row))
        return None
    return Cursor()  # chunks that another transaction had locked when they were passed


def _next_size(size: int, seconds: float) -> int:
    wanted = size * BATCH_SECONDS / max(seconds, 0.001)
    return int(min(max(1, size // 4, wanted), 2 * size, LARGEST_BATCH))


def builds_index_first(row: Reembedding) -> bool:
    """Whether the target's index is built before the chunks come.

    A graph grows chunk by chunk as well as at once, only slower: worth it where searching the
    moved chunks without an index would be slow. Lists (IVFFlat) are cut out of what is there.
    """
    return row.target.index_type == "hnsw" and row.total > settings.EXACT_SCAN_CHUNKS


def index(row: Reembedding, *, token: UUID) -> None:
    """Build the target's index where there is none, which may take long."""
    with heartbeat(lambda: _show_life(row, token)):
        build_index(row.target)


def _show_life(row: Reembedding, token: UUID) -> None:
    Reembedding.objects.filter(pk=row.pk, token=token).update(seen_at=Now())


# --- collections ---------------------------------------------------------------------------------


def _collections(row: Reembedding) -> QuerySet[Collection]:
    every = Collection.objects.order_by("id")
    return every if row.collection_id is None else every.filter(pk=row.collection_id)


def _moving(row: Reembedding) -> QuerySet[Collection]:
    """Those that may still have chunks in a former space."""
    return _collections(row).exclude(former_spaces=[])


def _left(collection: Collection) -> QuerySet[Chunk]:
    """Chunks of the collection that are not in its space yet."""
    return Chunk.objects.filter(collection=collection, space__in=collection.former_spaces)


def _refuse_two_ways(target: EmbeddingSpace, collection: Collection | None) -> None:
    others = Reembedding.objects.filter(state=State.RUNNING).exclude(
        target=target, collection=collection
    )
    for other in others.select_related("target", "collection"):
        if collection is None or other.collection_id in (None, collection.pk):
            raise Conflict(
                f"{str(other).capitalize()} is being re-embedded. Wait for it, or stop it with"
                f" `manage.py reembed --cancel --to {other.target.name}`."
            )


def _switch(row: Reembedding) -> None:
    """Give every collection the target as its space; the one it had is a former one now."""
    for collection in _collections(row).exclude(space=row.target):
        with transaction.atomic():
            hold_collection(collection.pk)
            # Read again: it may have changed while this waited.
            held = Collection.objects.select_related("space").get(pk=collection.pk)
            before = held.space
            held.former_spaces = sorted({*held.former_spaces, before.pk} - {row.target_id})
            held.space = row.target
            held.save(update_fields=["space", "former_spaces", "updated_at"])
            row.sources = sorted({*row.sources, *held.former_spaces})
            row.save(update_fields=["sources", "updated_at"])
            _carry_recipes(held, before)


def _carry_recipes(collection: Collection, before: EmbeddingSpace) -> None:
    """A document that was up to date stays so: its text need not be parsed again."""
    new = recipe_of(collection)
    old = replace(new, space_id=before.pk, model_name=before.model_name)
    documents = Document.objects.filter(collection=collection).only("id", "recipe", "declared")
    changed: list[Document] = []
    for document in documents.iterator(chunk_size=2000):
        if document.recipe == old.digest(document.declared):
            document.recipe = new.digest(document.declared)
            changed.append(document)
    Document.objects.bulk_update(changed, ["recipe"], batch_size=1000)


def _settle(row: Reembedding) -> bool:
    """Forget the former spaces of collections that have nothing left there; whether all have."""
    settled = True
    for collection in _moving(row):
        with transaction.atomic():
            hold_collection(collection.pk)
            held = Collection.objects.get(pk=collection.pk)
            if _left(held).exists():
                settled = False
            else:
                Collection.objects.filter(pk=held.pk).update(former_spaces=[])
    return settled and not _collections(row).exclude(space=row.target).exists()


# --- batches -------------------------------------------------------------------------------------


def _next_batch(row: Reembedding, cursor: Cursor) -> list[Chunk]:
    """The next chunks to move, by id."""
    scope = list(_moving(row).only("id", "former_spaces"))
    spaces = {space for entry in scope for space in entry.former_spaces}
    chunks = Chunk.objects.filter(
        collection__in=scope, space__in=spaces - {row.target_id}, pk__gt=cursor.after
    )
    return list(
        chunks.exclude(pk__in=row.refused)
        .only("id", "context", "text", "content_sha256")
        .order_by("id")[: cursor.size]
    )


def _embed(row: Reembedding, batch: Sequence[Chunk]) -> dict[int, Any]:
    """Vectors by chunk. A chunk that has none is noted, not its neighbours; one without text came
    with a vector of its caller's, which no model can make anew."""
    embedder = embedder_for(row.target)
    try:
        return _vectors(embedder, batch)
    except (InvalidVector, EmptyText):
        vectors: dict[int, Any] = {}
        for chunk in batch:
            try:
                vectors |= _vectors(embedder, [chunk])
            except (InvalidVector, EmptyText):
                row.refused.append(chunk.pk)
        return vectors


def _vectors(embedder: Embedder, batch: Sequence[Chunk]) -> dict[int, Any]:
    texts = [embedding_text(chunk.context, chunk.text) for chunk in batch]
    vectors = embedder.embed_documents(texts)
    return {chunk.pk: vector for chunk, vector in zip(batch, vectors, strict=True)}


def _hold(row: Reembedding, token: UUID) -> QuerySet[Reembedding]:
    """Its row, held to the end of the transaction. Raises TakenOver if it is not ours any more."""
    held = Reembedding.objects.select_for_update().filter(
        pk=row.pk, token=token, state=State.RUNNING
    )
    if not held:
        raise TakenOver(f"the re-embedding of {row} was stopped, or goes on in another process.")
    return held


_MOVE = """
    UPDATE documents_chunk SET space_id = %s, embedding = %s WHERE id = %s AND content_sha256 = %s
"""


@transaction.atomic
def _store(row: Reembedding, batch: Sequence[Chunk], vectors: dict[int, Any], token: UUID) -> None:
    """Put the vectors in, if this is still ours to do.

    Chunks that somebody replaces or deletes just now are passed over: waiting for them while they
    may wait for us would be a deadlock, and a later round finds what is left.
    """
    held = _hold(row, token)
    free = set(
        Chunk.objects.select_for_update(skip_locked=True)
        .filter(pk__in=vectors)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    rows = [
        (row.target_id, vectors[chunk.pk], chunk.pk, chunk.content_sha256)
        for chunk in batch
        if chunk.pk in free
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(_MOVE, rows)
    held.update(
        done=F("done") + len(rows),
        refused=row.refused,
        error="",
        seen_at=Now(),
        updated_at=timezone.now(),
    )


# --- the end -------------------------------------------------------------------------------------


def _finish(row: Reembedding, token: UUID) -> None:
    """Index the target, retire spaces that nobody uses any more and drop their indexes."""
    index(row, token=token)
    for space in EmbeddingSpace.objects.filter(pk__in=row.sources):
        if not in_use(space):
            drop_index(space)
            EmbeddingSpace.objects.filter(pk=space.pk).update(state=EmbeddingSpace.State.RETIRED)
    Reembedding.objects.filter(pk=row.pk, token=token).update(
        state=State.DONE, finished_at=timezone.now(), token=None, updated_at=timezone.now()
    )


def in_use(space: EmbeddingSpace) -> bool:
    """Whether the space holds chunks, or will."""
    return (
        space.is_default
        or Collection.objects.filter(space=space).exists()
        or Collection.objects.filter(former_spaces__contains=[space.pk]).exists()
        or Chunk.objects.filter(space=space).exists()
    )


def _refusal(row: Reembedding) -> str:
    first = Chunk.objects.filter(pk__in=row.refused).first()
    # By number: names go with their documents.
    where = f", the first one in document {first.document_id}" if first else ""
    return (
        f"{counted(len(row.refused), 'passage')} got no usable vector from"
        f" {row.target.model_name}{where}. They stay in their old space and are found there. Change"
        " or delete them, or choose"
        " another model; then start this again."
    )

"""Batches of items into the tables: all of a batch, or nothing of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from common.errors import Conflict, NotFound
from documents.embedders import embedder_for
from documents.ingestion import claims, recipes, runs, versions
from documents.ingestion.embedding import Vectors, embed_new
from documents.ingestion.items import (
    CheckedItem,
    InvalidItems,
    Item,
    ItemProblem,
    check_items,
)
from documents.ingestion.loading import Job, StaleVectors, load
from documents.ingestion.locks import share_collections
from documents.ingestion.preparing import PreparedDocument, Recipe
from documents.ingestion.preparing_items import prepare_item
from documents.ingestion.registering import register_documents
from documents.ingestion.sources import Source
from documents.models import Collection, Document
from documents.parsers import ParseError
from inference.base import InvalidVector

#: Somebody else changing the same items, or the collection its space, once is bad luck.
TRIES = 5


@dataclass(frozen=True, slots=True)
class Written:
    """What a batch did: ids that were written, how many were as they are, files left over, runs
    that waited for these documents."""

    changed: tuple[str, ...]
    unchanged: int
    files: tuple[str, ...] = ()
    run_ids: tuple[int, ...] = ()
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class _Ready:
    item: CheckedItem
    prepared: PreparedDocument


def write_items(collection: Collection, items: Sequence[Item], *, concurrency: int) -> Written:
    """Make each item's document exactly what it says.

    Embedding happens outside the transaction, so the collection may get another space, and the
    documents other texts, meanwhile: then it is done again. Raises InvalidItems, InferenceError,
    NotFound for a collection that was deleted.
    """
    for _ in range(TRIES):
        collection = _as_of_now(collection)
        checked = check_items(items, collection.space)
        recipe = recipes.recipe_of(collection)
        ids = [item.id for item in checked]
        there = versions.compared_with(collection, ids)
        changed = [item for item in checked if not _is_unchanged(item, there, recipe)]
        if not changed:
            return Written((), unchanged=len(checked))
        ready = _prepare(changed, items, collection, recipe)
        vectors = _embed(ready, items, _known_documents(collection, ids), collection, concurrency)
        try:
            written = _load(collection, ready, vectors, recipe)
        except StaleVectors:
            continue
        except IntegrityError:
            _as_of_now(collection)  # it may have been deleted just now
            raise
        return Written(
            changed=tuple(item.id for item in changed),
            unchanged=len(checked) - len(changed),
            files=written.files,
            run_ids=written.run_ids,
            chunks=written.chunks,
        )
    raise Conflict("Others change the same items again and again. Try again in a moment.")


def _as_of_now(collection: Collection) -> Collection:
    current = Collection.objects.select_related("space").filter(pk=collection.pk).first()
    if current is None:
        raise NotFound(f"The collection “{collection.slug}” is gone.")
    return current


def _known_documents(collection: Collection, keys: Sequence[str]) -> dict[str, Document]:
    documents = Document.objects.filter(collection=collection, key__in=keys, is_current=True)
    return {document.key: document for document in documents}


def _is_unchanged(item: CheckedItem, there: dict[str, Document], recipe: Recipe) -> bool:
    document = there.get(item.id)
    return document is not None and document.is_unchanged(
        "skip_if_unchanged", item.source_sha256, recipe.digest(item.declared)
    )


def _prepare(
    changed: Sequence[CheckedItem], items: Sequence[Item], collection: Collection, recipe: Recipe
) -> list[_Ready]:
    needs_model = any(item.vector is None for item in changed)
    embedder = embedder_for(collection.space) if needs_model else None
    counter = embedder.token_counter() if embedder else None
    embed = embedder.embed_documents if embedder else None
    ready: list[_Ready] = []
    problems: list[ItemProblem] = []
    for item in changed:
        try:
            prepared = prepare_item(item, recipe=recipe, counter=counter, embed=embed)
            ready.append(_Ready(item, prepared))
        except ParseError as error:
            problems.append(_problem(item.id, items, str(error)))
    if problems:
        raise InvalidItems(problems)
    return ready


def _problem(key: str, items: Sequence[Item], message: str) -> ItemProblem:
    index = max(place for place, item in enumerate(items) if item.id == key)
    return ItemProblem(index, key, "text", message)


def _embed(
    ready: Sequence[_Ready],
    items: Sequence[Item],
    known: dict[str, Document],
    collection: Collection,
    concurrency: int,
) -> Vectors:
    """The items' own vectors, and the model's for texts without."""
    own = {
        chunk.content_sha256: entry.item.vector
        for entry in ready
        for chunk in entry.prepared.chunks
        if entry.item.vector is not None
    }
    texts = [entry for entry in ready if entry.item.vector is None]
    if not texts:
        return own
    # No document has the id 0: one that is not there yet has no chunk to keep.
    documents = [
        (known[entry.item.id].id if entry.item.id in known else 0, entry.prepared)
        for entry in texts
    ]
    embedder = embedder_for(collection.space)
    try:
        return own | embed_new(documents, embedder=embedder, concurrency=concurrency)
    except InvalidVector:
        problems = []
        for entry, document in zip(texts, documents, strict=True):
            try:
                embed_new([document], embedder=embedder)
            except InvalidVector as error:
                problems.append(_problem(entry.item.id, items, str(error)))
        if problems:
            raise InvalidItems(problems) from None
        raise


@transaction.atomic
def _load(
    collection: Collection, ready: Sequence[_Ready], vectors: Vectors, recipe: Recipe
) -> Written:
    # Before any row is locked, as everywhere: whoever changes the space does so in this order.
    share_collections([collection.pk])
    by_key = {entry.item.id: entry for entry in sorted(ready, key=lambda entry: entry.item.id)}
    registered = register_documents(collection, _sources(by_key.values()), run=None)
    ids = [document.pk for document in registered.values()]
    files = tuple(str(document.file.name) for document in registered.values() if document.file)
    if files:
        Document.objects.filter(pk__in=ids).update(file="")
    run_ids = tuple(runs.open_runs(ids))
    token, documents = claims.claim(ids)
    jobs = [
        Job(
            document=document,
            prepared=by_key[document.key].prepared,
            digest=recipe.digest(document.declared),
            source_sha256=by_key[document.key].item.source_sha256,
            replaces=True,
        )
        for document in documents
    ]
    load(jobs, vectors, token=token)
    return Written(
        changed=(),
        unchanged=0,
        files=files,
        run_ids=run_ids,
        chunks=sum(len(job.prepared.chunks) for job in jobs),
    )


def _sources(entries: Iterable[_Ready]) -> list[Source]:
    return [
        Source(
            key=entry.item.id,
            name=entry.item.id,
            size=len(entry.item.text.encode()),
            read=entry.item.text.encode,
            declared=entry.item.declared,
        )
        for entry in entries
    ]

"""Batches of items into the tables: all of a batch, or nothing of it."""

from collections.abc import Container, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from uuid import uuid4

from django.db import IntegrityError, transaction

from accounts.history import Action, Kind, note_change
from common.errors import Conflict, NotFound
from documents.chunkers import TokenCounter
from documents.embedders import embedder_for
from documents.ingestion import recipes, runs, versions
from documents.ingestion.embedding import Vectors, embed_new
from documents.ingestion.items import (
    CheckedItem,
    InvalidItems,
    Item,
    ItemProblem,
    check_items,
)
from documents.ingestion.loading import Job, StaleVectors, load, load_new
from documents.ingestion.preparing import PreparedDocument, Recipe
from documents.ingestion.preparing_items import prepare_item
from documents.ingestion.registering import register_documents, renew
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


@dataclass(frozen=True, slots=True)
class _Batch:
    """Items to load, by id; those without a vector of their own as `texts` that are prepared, and
    the vectors of these."""

    collection: Collection
    recipe: Recipe
    counter: TokenCounter | None
    items: dict[str, CheckedItem]
    texts: dict[str, PreparedDocument]
    vectors: Vectors

    def job(self, document: Document) -> Job:
        """What `document` is to become; the item's own vector is put among the others."""
        item = self.items[document.key]
        prepared = self.texts.get(item.id) or prepare_item(
            item, recipe=self.recipe, counter=self.counter
        )
        if item.vector is not None:
            self.vectors.update((chunk.content_sha256, item.vector) for chunk in prepared.chunks)
        return Job(
            document=document,
            prepared=prepared,
            digest=self.recipe.digest(document.declared),
            source_sha256=item.source_sha256,
            replaces=True,
        )

    def new_jobs(self, keys: Sequence[str]) -> Iterator[Job]:
        """For documents that are in no table yet; each is made when it is asked for."""
        ids = versions.new_ids(len(keys))
        # Copied, which takes a third of the time of making one.
        blank = Document(workspace_id=self.collection.workspace_id, collection=self.collection)

        def new(key: str, pk: int) -> Document:
            document = copy(blank)
            document.pk, document.key = pk, key
            renew(document, _source(self.items[key]))
            return document

        return (self.job(new(key, pk)) for key, pk in zip(keys, ids, strict=True))


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
        counter, texts = _prepare(changed, items, collection, recipe)
        vectors = _embed(texts, items, collection, concurrency)
        by_id = {item.id: item for item in sorted(changed, key=lambda item: item.id)}
        batch = _Batch(collection, recipe, counter, by_id, texts, vectors)
        try:
            files, run_ids = _load(batch, there)
        except StaleVectors:
            continue
        except IntegrityError:
            _as_of_now(collection)  # it may have been deleted just now
            raise
        return Written(
            changed=tuple(item.id for item in changed),
            unchanged=len(checked) - len(changed),
            files=files,
            run_ids=run_ids,
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
) -> tuple[TokenCounter | None, dict[str, PreparedDocument]]:
    """Those without vector, by id, and what counts tokens if there are any."""
    texts = [item for item in changed if item.vector is None]
    if not texts:
        return None, {}
    embedder = embedder_for(collection.space)
    counter, embed = embedder.token_counter(), embedder.embed_documents
    prepared: dict[str, PreparedDocument] = {}
    problems: list[ItemProblem] = []
    for item in texts:
        try:
            prepared[item.id] = prepare_item(item, recipe=recipe, counter=counter, embed=embed)
        except ParseError as error:
            problems.append(_problem(item.id, items, str(error)))
    if problems:
        raise InvalidItems(problems)
    return counter, prepared


def _problem(key: str, items: Sequence[Item], message: str) -> ItemProblem:
    index = max(place for place, item in enumerate(items) if item.id == key)
    return ItemProblem(index, key, "text", message)


def _embed(
    texts: dict[str, PreparedDocument],
    items: Sequence[Item],
    collection: Collection,
    concurrency: int,
) -> Vectors:
    """The model's vectors for texts without."""
    if not texts:
        return {}
    known = _known_documents(collection, list(texts))
    # No document has the id 0: one that is not there yet has no chunk to keep.
    documents = [
        (known[key].id if key in known else 0, prepared) for key, prepared in texts.items()
    ]
    embedder = embedder_for(collection.space)
    try:
        return embed_new(documents, embedder=embedder, concurrency=concurrency)
    except InvalidVector:
        problems = []
        for key, document in zip(texts, documents, strict=True):
            try:
                embed_new([document], embedder=embedder)
            except InvalidVector as error:
                problems.append(_problem(key, items, str(error)))
        if problems:
            raise InvalidItems(problems) from None
        raise


@transaction.atomic
def _load(batch: _Batch, there: Container[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Load all, and note it; files left over, and runs that waited. `there` are ids that some
    document has."""
    new = [key for key in batch.items if key not in there]
    if new:
        load_new(batch.collection, batch.new_jobs(new), batch.vectors)
    known = [_source(item) for key, item in batch.items.items() if key in there]
    files, run_ids = _replace(batch, known) if known else ((), ())
    note_change(
        action=Action.INGESTED,
        kind=Kind.DOCUMENT,
        workspace_id=batch.collection.workspace_id,
        count=len(batch.items),
        collection_id=batch.collection.pk,
    )
    return files, run_ids


def _replace(batch: _Batch, sources: Sequence[Source]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The same of documents that are there."""
    token = uuid4()
    registered = register_documents(batch.collection, sources, run=None, token=token)
    documents = sorted(registered.values(), key=lambda document: document.pk)
    ids = [document.pk for document in documents]
    files = tuple(str(document.file.name) for document in documents if document.file)
    if files:
        Document.objects.filter(pk__in=ids).update(file="")
    run_ids = tuple(runs.open_runs(ids))
    load([batch.job(document) for document in documents], batch.vectors, token=token)
    return files, run_ids


def _source(item: CheckedItem) -> Source:
    return Source(
        key=item.id,
        name=item.id,
        size=len(item.text.encode()),
        read=item.text.encode,
        declared=item.declared,
    )

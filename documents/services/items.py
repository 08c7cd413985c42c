"""Items of a program's own: stored, read and removed by id, at once and without a queue."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from common.errors import Conflict, InvalidInput
from documents.ingestion import settling
from documents.ingestion.items import Item, is_storable
from documents.ingestion.media import delete_files
from documents.ingestion.storing import write_items
from documents.lexical_index import PENDING, index_pending
from documents.models import Chunk, Collection, Document
from documents.services.deletion import delete_documents
from documents.services.documents import joined_text

MAX_BATCH = 1000
MAX_CONCURRENCY = 64


@dataclass(frozen=True, slots=True)
class Stored:
    """What a batch did: the ids that were written, and how many items were there just so."""

    ids: tuple[str, ...]
    unchanged: int


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it is in the tables. `text` is without the white space around it, and between
    passages only its line ends are kept. `vector` is that of its passage; None where its text takes
    several, `chunks`."""

    id: str
    text: str
    vector: NDArray[np.float32] | None
    metadata: dict[str, Any]
    title: str
    language: str
    chunks: int
    document_id: int
    updated_at: datetime


def store_items(
    *, collection: Collection, items: Iterable[Item], user: Any = None, concurrency: int = 4
) -> Stored:
    """Store a batch: all of it, searchable when this returns, or nothing.

    What is there under an id is replaced; an item that is there just so is left alone. `user` None
    is the site itself. Raises InvalidItems that names each item at fault, Conflict for an id of a
    document that `user` may not see, and InferenceError where a text cannot be embedded.
    """
    batch = list(items)
    if len(batch) > MAX_BATCH:
        raise InvalidInput(
            f"A batch may have {MAX_BATCH:,} items, not {len(batch):,}. Send several.",
            field="items",
        )
    if not 1 <= concurrency <= MAX_CONCURRENCY:
        raise InvalidInput(f"concurrency may be 1 to {MAX_CONCURRENCY}.", field="concurrency")
    if user is not None:
        _refuse_hidden(collection, [item.id for item in batch], user)
    written = write_items(collection, batch, concurrency=concurrency)
    transaction.on_commit(lambda: delete_files(written.files))
    for run_id in written.run_ids:
        settling.finish_run(run_id)
    if written.changed:
        index_pending(collection.pk, at_least=PENDING)
    return Stored(written.changed, written.unchanged)


def _refuse_hidden(collection: Collection, keys: Sequence[str], user: Any) -> None:
    there = Document.objects.current().filter(
        collection=collection, key__in=[key for key in keys if is_storable(key)]
    )
    hidden = there.exclude(pk__in=there.visible_to(user).values("pk")).first()
    if hidden is not None:
        raise Conflict(
            f"The id “{hidden.key}” is taken by a document that you may not see. Use another."
        )


def get_item(*, collection: Collection, key: str, user: Any = None) -> StoredItem | None:
    """The item, whoever brought it; None where there is none, or none that `user` may see."""
    return get_items(collection=collection, keys=[key], user=user).get(key)


def get_items(
    *, collection: Collection, keys: Sequence[str], user: Any = None
) -> dict[str, StoredItem]:
    """Those of the items that there are, by id."""
    documents = list(_documents(collection, keys, user))
    chunks: dict[int, list[Chunk]] = {document.text_id: [] for document in documents}
    for chunk in (
        Chunk.objects.filter(document__in=chunks)
        .defer("search_vector", "context")
        .order_by("document_id", "ordinal")
    ):
        chunks[chunk.document_id].append(chunk)
    return {document.key: _stored(document, chunks[document.text_id]) for document in documents}


def _documents(collection: Collection, keys: Iterable[str], user: Any) -> Any:
    possible = [key for key in keys if is_storable(key)]
    documents = Document.objects.current().filter(collection=collection, key__in=possible)
    return documents if user is None else documents.visible_to(user)


def _stored(document: Document, chunks: Sequence[Chunk]) -> StoredItem:
    return StoredItem(
        id=document.key,
        text=joined_text(chunks).strip("\n"),
        vector=_vector(chunks[0]) if len(chunks) == 1 else None,
        metadata=document.metadata,
        title=document.title,
        language=document.language,
        chunks=len(chunks),
        document_id=document.pk,
        updated_at=document.updated_at,
    )


def _vector(chunk: Chunk) -> NDArray[np.float32] | None:
    return None if chunk.embedding is None else np.asarray(chunk.embedding, dtype=np.float32)


def count_items(*, collection: Collection, user: Any = None) -> int:
    """How many documents of the collection `user` may see."""
    documents = Document.objects.current().filter(collection=collection)
    return (documents if user is None else documents.visible_to(user)).count()


def delete_items(*, collection: Collection, keys: Iterable[str], user: Any = None) -> int:
    """Remove those of the items that there are; how many that were."""
    documents = list(_documents(collection, keys, user))
    if documents:
        delete_documents(documents=documents)
    return len(documents)

"""Items of programs: stored, read and deleted by id, synchronously and without a queue."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from common.errors import Conflict, InvalidInput
from common.translation import format_number, gettext
from documents.ingestion.items import (
    InvalidItems,
    Item,
    ItemProblem,
    StoreResult,
    is_storable,
    write_items,
)
from documents.ingestion.text_changes import join_passages
from documents.models import Chunk, Collection, Document
from documents.services.deletion import delete_documents
from documents.services.documents import checked_access_lists

MAX_BATCH = 1000
MAX_CONCURRENCY = 64


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as stored. `text` has no surrounding white space, and between passages only line ends
    are kept. `vector` is that of its passage; None if its text has several `chunks`."""

    id: str
    text: Annotated[str, "Empty for a vector without text."]
    vector: NDArray[np.float32] | None
    metadata: dict[str, Any]
    title: str
    language: Annotated[str, "ISO code, or empty."]
    chunks: Annotated[int, "How many passages it has."]
    document_id: int
    updated_at: datetime


def store_items(
    *, collection: Collection, items: Iterable[Item], user: Any = None, concurrency: int = 4
) -> StoreResult:
    """Store a batch: all of it, searchable when this returns, or nothing.

    An existing item is replaced; an unchanged one is skipped. Access lists name people as in
    `checked_access`. `user` None is the site itself. Raises InvalidItems that names each invalid
    item, Conflict for an id of a document that `user`
    may not see, and InferenceError if a text cannot be embedded.
    """
    batch = list(items)
    if len(batch) > MAX_BATCH:
        raise InvalidInput(
            gettext(
                "A batch may have {limit} items; this one has {count}. Send several batches."
            ).format(limit=format_number(MAX_BATCH), count=format_number(len(batch))),
            field="items",
        )
    if not 1 <= concurrency <= MAX_CONCURRENCY:
        raise InvalidInput(
            gettext("{name} must be a whole number from {least} to {most}.").format(
                name="concurrency", least=1, most=MAX_CONCURRENCY
            ),
            field="concurrency",
        )
    if user is not None:
        keys = [item.id for item in batch]
        there = Document.objects.current().filter(
            collection=collection, key__in=[key for key in keys if is_storable(key)]
        )
        hidden = there.exclude(pk__in=there.visible_to(user).values("pk")).first()
        if hidden is not None:
            raise Conflict(
                gettext(
                    "The id “{id}” belongs to a document that you cannot see. Use another id."
                ).format(id=hidden.key)
            )
    lists = checked_access_lists(
        [item.access for item in batch], workspace_id=collection.workspace_id, user=user
    )
    problems = [
        ItemProblem(index, str(item.id), "access", str(access))
        for index, (item, access) in enumerate(zip(batch, lists, strict=True))
        if isinstance(access, InvalidInput)
    ]
    if problems:
        raise InvalidItems(problems)
    batch = [
        item if item.access is None else replace(item, access=access)
        for item, access in zip(batch, lists, strict=True)
        if not isinstance(access, InvalidInput)
    ]
    return write_items(collection, batch, concurrency=concurrency)


def get_item(*, collection: Collection, key: str, user: Any = None) -> StoredItem | None:
    """The item, whoever stored it; None if there is none that `user` may see."""
    return get_items(collection=collection, keys=[key], user=user).get(key)


def get_items(
    *, collection: Collection, keys: Sequence[str], user: Any = None
) -> dict[str, StoredItem]:
    """The existing ones of the items, by id."""
    documents = list(_visible_documents(collection, keys, user))
    chunks: dict[int, list[Chunk]] = {document.text_id: [] for document in documents}
    for chunk in (
        Chunk.objects.filter(document__in=chunks)
        .defer("search_vector", "context")
        .order_by("document_id", "ordinal")
    ):
        chunks[chunk.document_id].append(chunk)
    items: dict[str, StoredItem] = {}
    for document in documents:
        own = chunks[document.text_id]
        embedding = own[0].embedding if len(own) == 1 else None
        items[document.key] = StoredItem(
            id=document.key,
            text=join_passages(own).strip("\n"),
            vector=None if embedding is None else np.asarray(embedding, dtype=np.float32),
            metadata=document.metadata,
            title=document.title,
            language=document.language,
            chunks=len(own),
            document_id=document.pk,
            updated_at=document.updated_at,
        )
    return items


def _visible_documents(collection: Collection, keys: Iterable[str], user: Any) -> Any:
    possible = [key for key in keys if is_storable(key)]
    documents = Document.objects.current().filter(collection=collection, key__in=possible)
    return documents if user is None else documents.visible_to(user)


def count_items(*, collection: Collection, user: Any = None) -> int:
    """Number of the collection's documents that `user` may see."""
    documents = Document.objects.current().filter(collection=collection)
    return (documents if user is None else documents.visible_to(user)).count()


def delete_items(*, collection: Collection, keys: Iterable[str], user: Any = None) -> int:
    """Delete the existing ones of the items; returns how many were deleted."""
    documents = list(_visible_documents(collection, keys, user))
    if documents:
        delete_documents(documents=documents)
    return len(documents)

"""The tools that store and remove documents."""

from collections.abc import Mapping, Sequence
from typing import Any

from accounts.services import require_editor
from common.errors import InvalidInput, NotFound
from documents.ingestion.items import Item
from documents.models import Collection
from rag.context import RagContext
from rag.tools.wording import name
from search.stores.store import Store

#: A longer text would keep the model waiting; files are uploaded.
MAX_CONTENT_CHARACTERS = 100_000
#: In one call. All arguments together are bounded too.
MAX_DOCUMENTS = 100


def index_document(
    *,
    scope: RagContext,
    id: str = "",
    content: str = "",
    metadata: Mapping[str, Any] | None = None,
    title: str = "",
    documents: Sequence[Mapping[str, Any]] = (),
    texts: Sequence[str] = (),
    id_prefix: str = "",
    collection: str = "",
) -> str:
    """Store one text, several documents, or bare texts under ids, in place of what was there, all
    or none; they are searchable when this returns."""
    store = _writable(scope, collection)
    forms = [bool(id or content), bool(documents), bool(texts)]
    if sum(forms) != 1 or bool(id) != bool(content) or bool(texts) != bool(id_prefix):
        raise InvalidInput(
            "Give id and content, or documents with an id and content each, or texts and an"
            " id_prefix."
        )
    if documents:
        items = [
            Item(
                id=each["id"],
                text=each["content"],
                metadata=each.get("metadata") or {},
                title=each.get("title") or "",
            )
            for each in documents
        ]
    elif texts:
        items = [
            Item(id=f"{id_prefix}:{place}", text=text, metadata=metadata or {}, title=title)
            for place, text in enumerate(texts)
        ]
    else:
        items = [Item(id=id, text=content, metadata=metadata or {}, title=title)]
    stored = store.index_many(items)
    into = name(store.collection.slug)
    if len(items) == 1:
        what = "Unchanged" if stored.unchanged else "Indexed"
        return f"{what}: {name(items[0].id)} in collection {into}. It can be searched now."
    new = len(items) - stored.unchanged
    return (
        f"Indexed {new} of {len(items)} documents in collection {into}, the others are unchanged:"
        f" {name(items[0].id)} to {name(items[-1].id)}. They can be searched now."
    )


def remove_document(*, scope: RagContext, id: str, collection: str = "") -> str:
    """Remove a document; it is found no more when this returns. Raises NotFound."""
    store = _writable(scope, collection)
    if not store.remove(id):
        raise NotFound(
            f"There is no document {name(id)} in collection {name(store.collection.slug)}."
        )
    return f"Removed: {name(id)} from collection {name(store.collection.slug)}."


def _writable(scope: RagContext, collection: str) -> Store:
    scope.require("write")
    require_editor(user=scope.user, workspace=scope.workspace)
    return Store(_collection(scope, collection), user=scope.user)


def _collection(context: RagContext, slug: str) -> Collection:
    """The named one, else the only one that there is. Raises NotFound and InvalidInput.

    Not `context.search_scope`: a key may have the right to write and none to read.
    """
    there = Collection.objects.visible_to(context.user).filter(workspace=context.workspace)
    if context.collections:
        there = there.filter(slug__in=context.collections)
    collections = list(there.select_related("space", "workspace").order_by("slug"))
    slugs = ", ".join(collection.slug for collection in collections[:20])
    if not collections:
        raise NotFound("There is no collection yet. Ask the user to make one.")
    if slug:
        collections = [collection for collection in collections if collection.slug == slug]
        if not collections:
            raise NotFound(f"There is no collection {name(slug)}. There are: {slugs}.")
    if len(collections) > 1:
        raise InvalidInput(f"There are several collections. Name one of {slugs}.")
    return collections[0]

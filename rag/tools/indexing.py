"""The tool that stores a document."""

from collections.abc import Mapping
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


def index_document(
    *,
    scope: RagContext,
    id: str,
    content: str,
    metadata: Mapping[str, Any] | None = None,
    title: str = "",
    collection: str = "",
) -> str:
    """Store a text under an id, in place of what was there; it is searchable when this returns."""
    scope.require("write")
    require_editor(user=scope.user, workspace=scope.workspace)
    into = _collection(scope, collection)
    store = Store(into, user=scope.user)
    item = Item(id=id, text=content, metadata=metadata or {}, title=title)
    stored = store.index_many([item])
    what = "Unchanged" if stored.unchanged else "Indexed"
    return f"{what}: {name(id)} in collection {name(into.slug)}. It can be searched now."


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

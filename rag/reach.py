"""What a retriever does, once it is known on whose behalf: in this thread, with its connection."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from numpy.typing import ArrayLike

from common.errors import InvalidInput
from documents.models import Collection
from documents.services import MAX_BATCH, StoredItem
from rag.answering.passages import passage_url
from rag.context import RagContext
from rag.document import Document, Filter, passage_metadata
from rag.tools.sight import readable
from search.filters import all_of, read_filter, to_json
from search.results import Hit, Mode, Scope
from search.services import search
from search.stores import Item, Match, Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reach:
    """What the context sees, narrowed to `collections` and, in searches, by `filter`.

    Everything raises Forbidden where the user, or the API key, may not, and Cancelled once the
    context is.
    """

    context: RagContext
    collections: tuple[str, ...] = ()
    filter: Filter = None

    def search(
        self, query: str, top_k: int, filter: Filter, mode: Mode, rerank: bool | None
    ) -> list[Document]:
        """Passages, best first."""
        result = search(
            query, scope=self._scope(filter), mode=mode, k=top_k, rerank=rerank, snippets=False
        )
        self.context.check()
        if result.degraded:
            logger.warning("a search had to do without: %s", ", ".join(result.degraded))
        return [_of_hit(hit) for hit in result.hits]

    def similar(self, query: str | ArrayLike, top_k: int, filter: Filter) -> list[Document]:
        """Documents of one collection by their nearest passage; never fewer than there are."""
        store = self._store()
        vector = store.embed(query) if isinstance(query, str) else query
        self.context.check()
        node = self._scope(filter)
        narrowed = to_json(node.filter) if node.is_filtered else None
        matches = store.similarity_search(vector, top_k, narrowed)
        return [_of_match(match, store.collection) for match in matches]

    def add(
        self, documents: Sequence[Document], vectors: Sequence[ArrayLike] | None = None
    ) -> list[str]:
        """Store documents, with vectors of the caller's or embedded; their ids."""
        self.context.require("write")
        store = self._store()
        items = [
            Item(
                id=str(uuid4()) if document.id is None else document.id,
                text=document.content,
                vector=None if vectors is None else vectors[place],
                metadata=document.metadata,
                title=document.title,
            )
            for place, document in enumerate(documents)
        ]
        for start in range(0, len(items), MAX_BATCH):
            self.context.check()
            store.index_many(items[start : start + MAX_BATCH])
        return [item.id for item in items]

    def delete(self, ids: Sequence[str]) -> int:
        """How many there were."""
        self.context.require("write")
        store = self._store()
        return store.delete(self._fitting([store.collection.pk], ids).values())

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Those that there are, whole, in the order of `ids`."""
        collections = self._visible()
        fit = self._fitting([collection.pk for collection in collections], ids)
        found: dict[str, Document] = {}
        for collection in collections:
            items = Store(collection, user=self.context.user).get_many(ids)
            for key, item in items.items():
                if item.document_id in fit:
                    found.setdefault(key, _of_item(item, collection))
        return [found[key] for key in dict.fromkeys(ids) if key in found]

    # --- within ---------------------------------------------------------------------------------

    def _scope(self, filter: Filter = None) -> Scope:
        scope = self.context.search_scope(self.collections, filter=self.filter)
        if filter is None:
            return scope
        return replace(scope, filter=all_of([scope.filter, read_filter(filter)]))

    def _fitting(self, collection_ids: Sequence[int], ids: Sequence[str]) -> dict[int, str]:
        """Keys of the documents that may be read, by the documents' own ids."""
        possible = [key for key in ids if "\x00" not in key]
        rows = readable(self.context, collection_id__in=collection_ids, key__in=possible)
        return dict(rows.values_list("pk", "key"))

    def _visible(self) -> list[Collection]:
        ids = self.context.search_scope(self.collections).collection_ids
        rows = Collection.objects.filter(pk__in=ids).select_related("space", "workspace")
        return list(rows.order_by("slug"))

    def _store(self) -> Store:
        """Of the one collection. Raises InvalidInput where there are several."""
        visible = self._visible()
        if len(visible) == 1:
            return Store(visible[0], user=self.context.user)
        there = ", ".join(collection.slug for collection in visible[:20]) or "none"
        raise InvalidInput(
            f"This needs one collection: give the retriever `collections=[…]`. There are: {there}.",
            field="collections",
        )


def _of_hit(hit: Hit) -> Document:
    return Document(
        content=hit.text,
        metadata=passage_metadata(
            hit.metadata,
            summary=hit.summary,
            token_count=hit.token_count,
            rerank_score=hit.rerank,
        ),
        id=hit.chunk_key or hit.document_key,
        document_key=hit.document_key,
        title=hit.title,
        collection=hit.collection_slug,
        url=hit.url or passage_url(hit.collection_slug, hit.document_id, hit.chunk_id),
        score=hit.fused if hit.rerank is None else hit.rerank,
        similarity=hit.similarity,
        chunk=hit.chunk_id,
        heading_path=hit.heading_path,
        page=hit.page,
        start=hit.start,
        end=hit.end,
    )


def _of_match(match: Match, collection: Collection) -> Document:
    return Document(
        content=match.text,
        metadata=match.metadata,
        id=match.id,
        document_key=match.id,
        title=match.title,
        collection=collection.slug,
        url=passage_url(collection.slug, match.document_id, match.chunk_id),
        score=match.score,
        similarity=match.similarity,
        chunk=match.chunk_id,
    )


def _of_item(item: StoredItem, collection: Collection) -> Document:
    return Document(
        content=item.text,
        metadata=item.metadata,
        id=item.id,
        document_key=item.id,
        title=item.title,
        collection=collection.slug,
    )

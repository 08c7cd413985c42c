"""Search, add, read and delete documents from Python, async and sync. Begin with `Retriever`."""

import logging
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from threading import Event
from typing import Any, TypeVar
from uuid import uuid4

from django.utils.translation import gettext
from numpy.typing import ArrayLike

from accounts.models import User
from accounts.services import current_workspace
from common.errors import InvalidInput, NotFound
from documents.ingestion.items import Item
from documents.models import Collection
from documents.services import MAX_BATCH
from rag.answering.evidence import passage_url
from rag.context import RagContext
from rag.document import Document, Filter, passage_metadata, resolve_rerank
from rag.tools.document_tools import readable_documents
from rag.worker_pool import WorkerPool
from search.filters import all_of, read_filter, to_json
from search.results import Mode, Scope
from search.services import search
from search.stores import Store

logger = logging.getLogger(__name__)


__all__ = ["Document", "Retriever"]

T = TypeVar("T")

#: Calls of one event loop that run at once, each with its own database connection; further ones
#: wait.
MAX_CONCURRENT_CALLS = 8

_pool = WorkerPool("rag.retriever", max_workers=MAX_CONCURRENT_CALLS)


class Retriever:
    """The documents a user sees in a workspace, optionally limited.

        retriever = Retriever("alice", collections=["handbook"])
        documents = await retriever.search("How much leave is carried over?", top_k=3)

    `user` is a user or a user name; what it may not see does not exist for it, what it may not do
    is refused. A `context` may be given instead. `collections` are slugs, empty for all; `filter`
    limits every search, and `mode` and `rerank` are defaults of the calls. A script calls
    `ragsite.script.setup()` before it imports this.

    Each method exists twice. The async one does not block the event loop, may be called
    concurrently, and stops when its task is cancelled. The blocking one, `…_sync`, works in the
    calling thread with that thread's database connection; not inside an event loop.
    """

    def __init__(
        self,
        user: User | str | None = None,
        *,
        workspace: str = "",
        collections: Sequence[str] = (),
        mode: Mode = "hybrid",
        filter: Filter = None,
        rerank: bool | None = None,
        use_reranking: bool | None = None,
        context: RagContext | None = None,
    ) -> None:
        if (user is None) == (context is None):
            raise InvalidInput(gettext("Give either a user or a context."), field="user")
        self._user = user
        self._workspace = workspace
        self.collections = tuple(collections)
        self._filter = filter
        self._context = context
        self.mode = mode
        self.rerank = resolve_rerank(rerank, use_reranking)

    async def search(
        self,
        query: str,
        top_k: int = 5,
        filter: Filter = None,
        *,
        mode: Mode | None = None,
        rerank: bool | None = None,
        use_reranking: bool | None = None,
    ) -> list[Document]:
        """At most `top_k` passages that best answer `query`. `rerank` (or `use_reranking`): whether
        a model reranks them; None does if one is configured, True requires it."""
        options: dict[str, Any] = {"mode": mode, "rerank": rerank, "use_reranking": use_reranking}
        return await self._run_in_pool(
            lambda local: local.search_sync(query, top_k, filter, **options)
        )

    def search_sync(
        self,
        query: str,
        top_k: int = 5,
        filter: Filter = None,
        *,
        mode: Mode | None = None,
        rerank: bool | None = None,
        use_reranking: bool | None = None,
    ) -> list[Document]:
        context = self._own_context()
        result = search(
            query,
            scope=self._scope(context, filter),
            mode=self.mode if mode is None else mode,
            k=top_k,
            rerank=resolve_rerank(rerank, use_reranking, self.rerank),
            snippets=False,
        )
        context.check()
        if result.degraded:
            logger.warning("a search had to do without: %s", ", ".join(result.degraded))
        return [
            Document(
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
                score=hit.score,
                similarity=hit.similarity,
                chunk=hit.chunk_id,
                heading_path=hit.heading_path,
                page=hit.page,
                location=hit.location,
                start=hit.start,
                end=hit.end,
            )
            for hit in result.hits
        ]

    async def similar(
        self, query: str | ArrayLike, top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        """Documents of one collection most similar in meaning to a text or vector."""
        return await self._run_in_pool(lambda local: local.similar_sync(query, top_k, filter))

    def similar_sync(
        self, query: str | ArrayLike, top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        context = self._own_context()
        store = self._store(context)
        vector = store.embed(query) if isinstance(query, str) else query
        context.check()
        scope = self._scope(context, filter)
        narrowed = to_json(scope.filter) if scope.is_filtered else None
        matches = store.similarity_search(vector, top_k, narrowed)
        return [
            Document(
                content=match.text,
                metadata=match.metadata,
                id=match.id,
                document_key=match.id,
                title=match.title,
                collection=store.collection.slug,
                url=passage_url(store.collection.slug, match.document_id, match.chunk_id),
                score=match.score,
                similarity=match.similarity,
                chunk=match.chunk_id,
            )
            for match in matches
        ]

    async def add_documents(
        self, documents: Sequence[Document], vectors: Sequence[ArrayLike] | None = None
    ) -> list[str]:
        """Store documents in the one collection, embedded unless they come with `vectors`; they can
        be found when this returns.

        Returns their ids, new ones for documents without. Documents with the same ids are replaced.
        Up to 1,000 are stored in one transaction.
        """
        return await self._run_in_pool(lambda local: local.add_documents_sync(documents, vectors))

    def add_documents_sync(
        self, documents: Sequence[Document], vectors: Sequence[ArrayLike] | None = None
    ) -> list[str]:
        context = self._own_context()
        context.require("write")
        store = self._store(context)
        items = [
            Item(
                id=str(uuid4()) if document.id is None else document.id,
                text=document.content,
                vector=None if vectors is None else vectors[place],
                metadata=document.metadata,
                title=document.title,
                access=document.access,
            )
            for place, document in enumerate(documents)
        ]
        for start in range(0, len(items), MAX_BATCH):
            context.check()
            store.index_many(items[start : start + MAX_BATCH])
        return [item.id for item in items]

    async def delete(self, ids: Sequence[str]) -> int:
        """Delete documents of the one collection; returns how many existed."""
        return await self._run_in_pool(lambda local: local.delete_sync(ids))

    def delete_sync(self, ids: Sequence[str]) -> int:
        context = self._own_context()
        context.require("write")
        store = self._store(context)
        return store.delete(self._readable_keys(context, [store.collection], ids).values())

    async def get(self, ids: Sequence[str]) -> list[Document]:
        """The documents that exist, whole, in the order of `ids`."""
        return await self._run_in_pool(lambda local: local.get_sync(ids))

    def get_sync(self, ids: Sequence[str]) -> list[Document]:
        context = self._own_context()
        collections = self._visible(context)
        fit = self._readable_keys(context, collections, ids)
        found: dict[str, Document] = {}
        for collection in collections:
            items = Store(collection, user=context.user).get_many(ids)
            for key, item in items.items():
                if item.document_id in fit:
                    document = Document(
                        content=item.text,
                        metadata=item.metadata,
                        id=item.id,
                        document_key=item.id,
                        title=item.title,
                        collection=collection.slug,
                    )
                    found.setdefault(key, document)
        return [found[key] for key in dict.fromkeys(ids) if key in found]

    # --- within ---------------------------------------------------------------------------------

    async def _run_in_pool(self, work: Callable[["Retriever"], T]) -> T:
        """`work` in a thread, with a copy of this retriever that ends when this task does."""

        def run(cancelled: Event) -> T:
            local = copy(self)
            local._context = replace(self._own_context(), cancelled=cancelled)
            return work(local)

        return await _pool.run(run)

    def _own_context(self) -> RagContext:
        """The given context, or that of the user. Raises NotFound for an unknown user."""
        if self._context is not None:
            return self._context
        user = self._user
        if isinstance(user, str):
            user = User.objects.filter(username=user, is_active=True).first()
            if user is None:
                raise NotFound(gettext("There is no user “{user}”.").format(user=self._user))
        return RagContext(user=user, workspace=current_workspace(user=user, slug=self._workspace))

    def _scope(self, context: RagContext, filter: Filter) -> Scope:
        scope = context.search_scope(self.collections, filter=self._filter)
        if filter is None:
            return scope
        return replace(scope, filter=all_of([scope.filter, read_filter(filter)]))

    def _readable_keys(
        self, context: RagContext, collections: Sequence[Collection], ids: Sequence[str]
    ) -> dict[int, str]:
        """Keys of the documents that may be read, by document id."""
        possible = [key for key in ids if "\x00" not in key]
        rows = readable_documents(context, collection__in=collections, key__in=possible)
        return dict(rows.values_list("pk", "key"))

    def _visible(self, context: RagContext) -> list[Collection]:
        ids = context.search_scope(self.collections).collection_ids
        rows = Collection.objects.filter(pk__in=ids).select_related("space", "workspace")
        return list(rows.order_by("slug"))

    def _store(self, context: RagContext) -> Store:
        """The store of the one collection. Raises InvalidInput if there are several."""
        visible = self._visible(context)
        if len(visible) == 1:
            return Store(visible[0], user=context.user)
        there = ", ".join(collection.slug for collection in visible[:20]) or "none"
        raise InvalidInput(
            gettext(
                "This call needs one collection. Give the retriever `collections=[…]`. The"
                " collections are: {there}."
            ).format(there=there),
            field="collections",
        )

"""Search, add, read and delete documents from Python: for agents, async, and for plain code."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from accounts.models import User
from accounts.services import current_workspace
from common.errors import InvalidInput, NotFound
from rag.context import RagContext
from rag.document import Document, Filter, chosen_rerank
from rag.reach import Reach
from rag.threads import Lane
from search.results import Mode

__all__ = ["Document", "Retriever"]

T = TypeVar("T")

#: How many calls of one event loop are worked on at once, each with a database connection of its
#: own; further ones wait their turn.
AT_A_TIME = 8

_lane = Lane("rag.retriever", at_a_time=AT_A_TIME)


class Retriever:
    """The documents that a user sees in a workspace, perhaps narrowed.

        retriever = Retriever("alice", collections=["handbook"])
        documents = await retriever.search("How much leave is carried over?", top_k=3)

    `user` is a user or a user name; what it may not see is not there, what it may not do is
    refused. A `context` may be given instead. `collections` are slugs, none for all; `filter`
    narrows every search, and `mode` and `rerank` are how it is asked where a call does not say. A
    script calls `ragsite.script.setup()` before it imports this.

    Each method comes twice. The async one does not block the event loop, may be called any number
    of times at once, and its work ends when the task is cancelled. The other, `…_sync`, works in
    the calling thread with that thread's database connection; not within an event loop.
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
            raise InvalidInput("Name either a user or a context, on whose behalf.", field="user")
        self._user = user
        self._workspace = workspace
        self.collections = tuple(collections)
        self._filter = filter
        self._context = context
        self.mode = mode
        self.rerank = chosen_rerank(rerank, use_reranking)

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
        """The passages that answer `query` best, at most `top_k`. `rerank`, which `use_reranking`
        is another name of: whether a model reads the best ones again; None does where one is set
        up, True demands it."""
        reranks = chosen_rerank(rerank, use_reranking, self.rerank)
        return await self._beside(
            lambda reach: reach.search(query, top_k, filter, self._by(mode), reranks)
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
        """As `search`."""
        reranks = chosen_rerank(rerank, use_reranking, self.rerank)
        return self._reach().search(query, top_k, filter, self._by(mode), reranks)

    async def similar(
        self, query: str | ArrayLike, top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        """The documents of one collection that are nearest in meaning to a text, or to a vector."""
        return await self._beside(lambda reach: reach.similar(query, top_k, filter))

    def similar_sync(
        self, query: str | ArrayLike, top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        """As `similar`."""
        return self._reach().similar(query, top_k, filter)

    async def add_documents(
        self, documents: Sequence[Document], vectors: Sequence[ArrayLike] | None = None
    ) -> list[str]:
        """Store documents in the one collection, embedded unless they come with `vectors`; they are
        found when this returns.

        Returns their ids, new ones for those without. What had an id before is replaced. Up to
        1,000 go together, all or none.
        """
        return await self._beside(lambda reach: reach.add(documents, vectors))

    def add_documents_sync(
        self, documents: Sequence[Document], vectors: Sequence[ArrayLike] | None = None
    ) -> list[str]:
        """As `add_documents`."""
        return self._reach().add(documents, vectors)

    async def delete(self, ids: Sequence[str]) -> int:
        """Remove documents of the one collection; how many there were."""
        return await self._beside(lambda reach: reach.delete(ids))

    def delete_sync(self, ids: Sequence[str]) -> int:
        """As `delete`."""
        return self._reach().delete(ids)

    async def get(self, ids: Sequence[str]) -> list[Document]:
        """Those of the documents that there are, whole, in the order of `ids`."""
        return await self._beside(lambda reach: reach.get(ids))

    def get_sync(self, ids: Sequence[str]) -> list[Document]:
        """As `get`."""
        return self._reach().get(ids)

    def _by(self, mode: Mode | None) -> Mode:
        return self.mode if mode is None else mode

    async def _beside(self, work: Callable[[Reach], T]) -> T:
        return await _lane.run(lambda cancelled: work(self._reach(cancelled)))

    def _reach(self, cancelled: Event | None = None) -> Reach:
        context = self._context or self._found()
        if cancelled is not None:
            context = replace(context, cancelled=cancelled)
        return Reach(context, self.collections, self._filter)

    def _found(self) -> RagContext:
        """The context of the user. Raises NotFound."""
        user: Any = self._user
        if isinstance(user, str):
            user = User.objects.filter(username=user, is_active=True).first()
            if user is None:
                raise NotFound(f"There is no user “{self._user}”.")
        return RagContext(user=user, workspace=current_workspace(user=user, slug=self._workspace))

"""The retriever for programs elsewhere: the same calls, over the site's API. Without Django."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from common.errors import InvalidInput
from rag.document import Document, Filter, chosen_rerank
from rag.remote_answers import (
    SiteRefused,
    SiteUnreachable,
    both,
    given,
    of_hit,
    of_item,
    of_match,
    parts,
    read,
)

__all__ = ["Document", "RemoteRetriever", "SiteRefused", "SiteUnreachable"]

#: Method, path below the API, and JSON or parameters.
Request = tuple[str, str, dict[str, Any]]

#: As many as the API takes, or shows, at a time.
MAX_BATCH = 1000
MAX_IDS = 100


class RemoteRetriever:
    """What the owner of an API key sees in its workspace, perhaps narrowed.

        retriever = RemoteRetriever("https://rag.example.org", "rs_…", collections=["handbook"])
        documents = await retriever.search("How much leave is carried over?", top_k=3)

    It does what `rag.retriever.Retriever` does, async and, by `…_sync`, not. The key needs the
    scope `read`, to add and delete documents also `write`. `timeout` is in seconds, for each
    request. Everything raises SiteRefused and SiteUnreachable.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        collections: Sequence[str] = (),
        mode: str = "hybrid",
        filter: Filter = None,
        rerank: bool | None = None,
        use_reranking: bool | None = None,
        timeout: float = 60.0,
    ) -> None:
        if urlsplit(url).scheme not in {"http", "https"}:
            raise InvalidInput(f"“{url}” is no address such as https://rag.example.org.")
        self._url = url.rstrip("/")
        self._options: dict[str, Any] = {
            "base_url": f"{self._url}/api/v1/",
            "headers": {"Authorization": f"Bearer {api_key}"},
            "timeout": timeout,
        }
        self._collections = list(collections)
        self._filter = filter
        self.mode = mode
        self.rerank = chosen_rerank(rerank, use_reranking)

    async def search(
        self,
        query: str,
        top_k: int = 5,
        filter: Filter = None,
        *,
        mode: str | None = None,
        rerank: bool | None = None,
        use_reranking: bool | None = None,
    ) -> list[Document]:
        """The passages that answer `query` best, at most `top_k`. `rerank`, which `use_reranking`
        is another name of: whether a model reads the best ones again; None does where one is set
        up, True demands it."""
        reranks = chosen_rerank(rerank, use_reranking, self.rerank)
        (answer,) = await self._ask([self._search(query, top_k, filter, mode, reranks)])
        return [of_hit(hit, self._url) for hit in answer["hits"]]

    def search_sync(
        self,
        query: str,
        top_k: int = 5,
        filter: Filter = None,
        *,
        mode: str | None = None,
        rerank: bool | None = None,
        use_reranking: bool | None = None,
    ) -> list[Document]:
        """As `search`."""
        reranks = chosen_rerank(rerank, use_reranking, self.rerank)
        (answer,) = self._ask_sync([self._search(query, top_k, filter, mode, reranks)])
        return [of_hit(hit, self._url) for hit in answer["hits"]]

    async def similar(
        self, query: str | Sequence[float], top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        """The documents of the one collection that are nearest in meaning to a text, or vector."""
        (answer,) = await self._ask([self._similar(query, top_k, filter)])
        return self._matched(answer)

    def similar_sync(
        self, query: str | Sequence[float], top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        """As `similar`."""
        (answer,) = self._ask_sync([self._similar(query, top_k, filter)])
        return self._matched(answer)

    async def add_documents(
        self, documents: Sequence[Document], vectors: Sequence[Sequence[float]] | None = None
    ) -> list[str]:
        """Store documents in the one collection, embedded there unless they come with `vectors`;
        they are found when this returns. Their ids."""
        ids, requests = self._add(documents, vectors)
        await self._ask(requests)
        return ids

    def add_documents_sync(
        self, documents: Sequence[Document], vectors: Sequence[Sequence[float]] | None = None
    ) -> list[str]:
        """As `add_documents`."""
        ids, requests = self._add(documents, vectors)
        self._ask_sync(requests)
        return ids

    async def delete(self, ids: Sequence[str]) -> int:
        """Remove documents of the one collection; how many there were."""
        return sum(answer["deleted"] for answer in await self._ask(self._delete(ids)))

    def delete_sync(self, ids: Sequence[str]) -> int:
        """As `delete`."""
        return sum(answer["deleted"] for answer in self._ask_sync(self._delete(ids)))

    async def get(self, ids: Sequence[str]) -> list[Document]:
        """Those of the documents of the one collection that there are, whole, in this order."""
        return self._got(await self._ask(self._get(ids)))

    def get_sync(self, ids: Sequence[str]) -> list[Document]:
        """As `get`."""
        return self._got(self._ask_sync(self._get(ids)))

    # --- what is asked --------------------------------------------------------------------------

    def _search(
        self, query: str, top_k: int, filter: Filter, mode: str | None, rerank: bool | None
    ) -> Request:
        asked = {
            "q": query,
            "k": top_k,
            "mode": self.mode if mode is None else mode,
            "rerank": rerank,
            "collection": self._collections,
            "filter": both(self._filter, filter),
        }
        return "POST", "search/", {"json": given(asked)}

    def _similar(self, query: str | Sequence[float], top_k: int, filter: Filter) -> Request:
        question = (
            {"query": query} if isinstance(query, str) else {"vector": [float(x) for x in query]}
        )
        asked = {
            **question,
            "mode": "vector",
            "k": top_k,
            "filter": both(self._filter, filter),
        }
        return "POST", f"{self._store}search/", {"json": given(asked)}

    def _add(
        self, documents: Sequence[Document], vectors: Sequence[Sequence[float]] | None
    ) -> tuple[list[str], list[Request]]:
        items = [
            {
                "id": str(uuid4()) if document.id is None else document.id,
                "text": document.content,
                "vector": None if vectors is None else [float(x) for x in vectors[place]],
                "metadata": dict(document.metadata),
                "title": document.title,
            }
            for place, document in enumerate(documents)
        ]
        path = f"{self._store}items/"
        requests: list[Request] = [
            ("POST", path, {"json": {"items": part}}) for part in parts(items, MAX_BATCH)
        ]
        return [str(item["id"]) for item in items], requests

    def _delete(self, ids: Sequence[str]) -> list[Request]:
        path = f"{self._store}delete/"
        return [("POST", path, {"json": {"ids": part}}) for part in parts(ids, MAX_BATCH)]

    def _get(self, ids: Sequence[str]) -> list[Request]:
        path = f"{self._store}items/"
        unique = list(dict.fromkeys(ids))
        return [("GET", path, {"params": {"id": part}}) for part in parts(unique, MAX_IDS)]

    @property
    def _store(self) -> str:
        if len(self._collections) != 1:
            raise InvalidInput(
                "This needs one collection: give the retriever `collections=[…]`.",
                field="collections",
            )
        return f"collections/{self._collections[0]}/store/"

    # --- how it is asked ------------------------------------------------------------------------

    async def _ask(self, requests: Sequence[Request]) -> list[Any]:
        try:
            async with httpx2.AsyncClient(**self._options) as client:
                return [
                    read(await client.request(method, path, **sent))
                    for method, path, sent in requests
                ]
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    def _ask_sync(self, requests: Sequence[Request]) -> list[Any]:
        try:
            with httpx2.Client(**self._options) as client:
                return [
                    read(client.request(method, path, **sent)) for method, path, sent in requests
                ]
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> SiteUnreachable:
        what = str(error) or type(error).__name__
        return SiteUnreachable(f"{self._url} did not answer: {what}. Is the site up?")

    def _matched(self, answer: Any) -> list[Document]:
        collection = self._collections[0]
        return [of_match(match, collection, self._url) for match in answer["matches"]]

    def _got(self, answers: Sequence[Any]) -> list[Document]:
        items = [item for answer in answers for item in answer["items"]]
        return [of_item(item, self._collections[0]) for item in items]

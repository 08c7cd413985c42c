"""The retriever for programs on other machines: the same calls over the site's API.
Begin with `RemoteRetriever`. Without Django.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from common.errors import InvalidInput, RagsiteError
from rag.document import Document, Filter, passage_metadata, resolve_rerank


class SiteRefused(RagsiteError):
    """The site refused the request; `code` and `status` are those of its answer."""

    def __init__(self, message: str, *, code: str, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class SiteUnreachable(RagsiteError):
    """No answer came, or one that is not from the site."""

    code = "unreachable"
    status = 503


def read_response(response: httpx2.Response) -> Any:
    """The JSON of a response. Raises SiteRefused and SiteUnreachable."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if response.is_success and isinstance(body, dict):
        return body
    if isinstance(body, dict) and "detail" in body:
        code = str(body.get("code", "error"))
        raise SiteRefused(str(body["detail"]), code=code, status=response.status_code)
    raise SiteUnreachable(
        f"{response.request.url} answered {response.status_code}, but not as the site does. Is the"
        " address right?"
    )


def combine_filters(one: Filter, other: Filter) -> Filter:
    """A filter that requires both. Raises InvalidInput if they are not of the same form."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, str) and isinstance(other, str):
        if not any(text.lstrip().startswith("{") for text in (one, other)):
            return f"({one}); ({other})"
    elif isinstance(one, Mapping) and isinstance(other, Mapping):
        return {"$and": [one, other]}
    raise InvalidInput("Give both filters as text, or both as objects.", field="filter")


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def batches(items: Sequence[Any], size: int) -> list[list[Any]]:
    """Split into lists of at most `size`."""
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def document_from_hit(hit: Mapping[str, Any], site: str) -> Document:
    """A passage from a search response."""
    document, scores, collection = hit["document"], hit["scores"], hit["collection"]["slug"]
    page = _page_url(site, collection, document["id"], hit["chunk_id"])
    return Document(
        content=hit["text"],
        metadata=passage_metadata(
            hit["metadata"],
            summary=hit["summary"],
            token_count=hit["token_count"],
            rerank_score=scores["rerank"],
        ),
        id=hit["chunk_key"] or document["key"],
        document_key=document["key"],
        title=document["title"],
        collection=collection,
        url=document["source_url"] or page,
        score=scores["score"],
        similarity=scores["similarity"],
        chunk=hit["chunk_id"],
        heading_path=tuple(hit["heading_path"]),
        page=hit["page"],
        location=hit.get("location", ""),
        start=hit["start"],
        end=hit["end"],
    )


def _page_url(site: str, collection: str, document: int, chunk: int) -> str:
    return f"{site}/documents/{collection}/{document}/?chunk={chunk}#passage"


__all__ = ["Document", "RemoteRetriever", "SiteRefused", "SiteUnreachable"]

#: Method, path below the API, and JSON or parameters.
Request = tuple[str, str, dict[str, Any]]

#: Limits of the API per request.
MAX_BATCH = 1000
MAX_IDS = 100


class RemoteRetriever:
    """The documents that the owner of an API key sees, optionally limited.

        retriever = RemoteRetriever("https://rag.example.org", "rs_…", collections=["handbook"])
        documents = await retriever.search("How much leave is carried over?", top_k=3)

    It has the methods of `rag.retriever.Retriever`: async, and blocking with `…_sync`. The key
    needs the scope `read`, and `write` to add and delete documents. `timeout` is in seconds per
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
        self.rerank = resolve_rerank(rerank, use_reranking)

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
        """At most `top_k` passages that best answer `query`. `rerank` (or `use_reranking`): whether
        a model reranks them; None does if one is configured, True requires it."""
        reranks = resolve_rerank(rerank, use_reranking, self.rerank)
        (answer,) = await self._ask([self._search(query, top_k, filter, mode, reranks)])
        return [document_from_hit(hit, self._url) for hit in answer["hits"]]

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
        reranks = resolve_rerank(rerank, use_reranking, self.rerank)
        (answer,) = self._ask_sync([self._search(query, top_k, filter, mode, reranks)])
        return [document_from_hit(hit, self._url) for hit in answer["hits"]]

    async def similar(
        self, query: str | Sequence[float], top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        """Documents of the one collection most similar in meaning to a text or vector."""
        (answer,) = await self._ask([self._similar(query, top_k, filter)])
        return self._matched_documents(answer)

    def similar_sync(
        self, query: str | Sequence[float], top_k: int = 5, filter: Filter = None
    ) -> list[Document]:
        (answer,) = self._ask_sync([self._similar(query, top_k, filter)])
        return self._matched_documents(answer)

    async def add_documents(
        self, documents: Sequence[Document], vectors: Sequence[Sequence[float]] | None = None
    ) -> list[str]:
        """Store documents in the one collection, embedded there unless they come with `vectors`;
        they can be found when this returns. Returns their ids."""
        ids, requests = self._add(documents, vectors)
        await self._ask(requests)
        return ids

    def add_documents_sync(
        self, documents: Sequence[Document], vectors: Sequence[Sequence[float]] | None = None
    ) -> list[str]:
        ids, requests = self._add(documents, vectors)
        self._ask_sync(requests)
        return ids

    async def delete(self, ids: Sequence[str]) -> int:
        """Delete documents of the one collection; returns how many existed."""
        return sum(answer["deleted"] for answer in await self._ask(self._delete(ids)))

    def delete_sync(self, ids: Sequence[str]) -> int:
        return sum(answer["deleted"] for answer in self._ask_sync(self._delete(ids)))

    async def get(self, ids: Sequence[str]) -> list[Document]:
        """The documents of the one collection that exist, whole, in this order."""
        return self._item_documents(await self._ask(self._get(ids)))

    def get_sync(self, ids: Sequence[str]) -> list[Document]:
        return self._item_documents(self._ask_sync(self._get(ids)))

    # --- requests --------------------------------------------------------------------------

    def _search(
        self, query: str, top_k: int, filter: Filter, mode: str | None, rerank: bool | None
    ) -> Request:
        parameters = {
            "q": query,
            "k": top_k,
            "mode": self.mode if mode is None else mode,
            "rerank": rerank,
            "collection": self._collections,
            "filter": combine_filters(self._filter, filter),
        }
        return "POST", "search/", {"json": without_none(parameters)}

    def _similar(self, query: str | Sequence[float], top_k: int, filter: Filter) -> Request:
        question = (
            {"query": query} if isinstance(query, str) else {"vector": [float(x) for x in query]}
        )
        parameters = {
            **question,
            "mode": "vector",
            "k": top_k,
            "filter": combine_filters(self._filter, filter),
        }
        return "POST", f"{self._store}search/", {"json": without_none(parameters)}

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
                **({} if document.access is None else {"access": list(document.access)}),
            }
            for place, document in enumerate(documents)
        ]
        path = f"{self._store}items/"
        requests: list[Request] = [
            ("POST", path, {"json": {"items": part}}) for part in batches(items, MAX_BATCH)
        ]
        return [str(item["id"]) for item in items], requests

    def _delete(self, ids: Sequence[str]) -> list[Request]:
        path = f"{self._store}delete/"
        return [("POST", path, {"json": {"ids": part}}) for part in batches(ids, MAX_BATCH)]

    def _get(self, ids: Sequence[str]) -> list[Request]:
        path = f"{self._store}items/"
        unique = list(dict.fromkeys(ids))
        return [("GET", path, {"params": {"id": part}}) for part in batches(unique, MAX_IDS)]

    @property
    def _store(self) -> str:
        if len(self._collections) != 1:
            raise InvalidInput(
                "This needs one collection: give the retriever `collections=[…]`.",
                field="collections",
            )
        return f"collections/{self._collections[0]}/store/"

    # --- transport ------------------------------------------------------------------------

    async def _ask(self, requests: Sequence[Request]) -> list[Any]:
        try:
            async with httpx2.AsyncClient(**self._options) as client:
                return [
                    read_response(await client.request(method, path, **sent))
                    for method, path, sent in requests
                ]
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    def _ask_sync(self, requests: Sequence[Request]) -> list[Any]:
        try:
            with httpx2.Client(**self._options) as client:
                return [
                    read_response(client.request(method, path, **sent))
                    for method, path, sent in requests
                ]
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> SiteUnreachable:
        what = str(error) or type(error).__name__
        return SiteUnreachable(f"{self._url} did not answer: {what}. Is the site up?")

    def _matched_documents(self, answer: Any) -> list[Document]:
        collection = self._collections[0]
        return [
            Document(
                content=match["text"],
                metadata=match["metadata"],
                id=match["id"],
                document_key=match["id"],
                title=match["title"],
                collection=collection,
                url=_page_url(self._url, collection, match["document"], match["chunk"]),
                score=match["score"],
                similarity=match["similarity"],
                chunk=match["chunk"],
            )
            for match in answer["matches"]
        ]

    def _item_documents(self, answers: Sequence[Any]) -> list[Document]:
        return [
            Document(
                content=item["text"],
                metadata=item["metadata"],
                id=item["id"],
                document_key=item["id"],
                title=item["title"],
                collection=self._collections[0],
            )
            for answer in answers
            for item in answer["items"]
        ]

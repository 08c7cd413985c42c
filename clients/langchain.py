"""LangChain integration: a retriever and a vector store. Needs the package langchain-core."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
except ImportError as error:
    raise ImportError(
        "clients.langchain needs LangChain, which the site itself does without:"
        " .venv/bin/pip install langchain-core"
    ) from error
from pydantic import AliasChoices, Field

from common.text import pluralized
from rag.document import Document, Filter, resolve_rerank


class RagsiteRetriever(BaseRetriever):
    """Passages that answer a question, best first, as `retriever` finds them: one of
    `rag.retriever`, or of `clients.remote_retriever` on other machines.

    To the document's own metadata it adds, unless a key exists already, `title`, `document_key`,
    `collection`, `url`, `score`, `similarity`, `chunk`, `heading_path`, of that `chapter`,
    `section` and `subsection` (the others, joined by “ > ”), `page`, `start`, `end`, `token_count`
    and, if known, `summary` and `rerank_score`. `rerank` (or `use_reranking`) is that
    of the retriever's own search.
    """

    retriever: Any
    k: int = Field(default=5, ge=1)
    filter: Any = None
    rerank: bool | None = Field(
        default=None, validation_alias=AliasChoices("rerank", "use_reranking")
    )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[LangChainDocument]:
        found = self.retriever.search_sync(query, **self._search_arguments(**options))
        return [_passage_document(document) for document in found]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[LangChainDocument]:
        found = await self.retriever.search(query, **self._search_arguments(**options))
        return [_passage_document(document) for document in found]

    def _search_arguments(
        self,
        k: int | None = None,
        filter: Filter = None,
        rerank: bool | None = None,
        use_reranking: bool | None = None,
    ) -> dict[str, Any]:
        return {
            "top_k": k or self.k,
            "filter": self.filter if filter is None else filter,
            "rerank": resolve_rerank(rerank, use_reranking, self.rerank),
        }


class RagsiteVectorStore(VectorStore):
    """One collection as a LangChain vector store: whole documents by id, most similar first.
    `retriever` says whose collection it is. The collection's own model embeds unless `embedding` is
    given; its vectors must have the collection's dimensions. Scores are similarities."""

    def __init__(self, retriever: Any, *, embedding: Embeddings | None = None) -> None:
        self._retriever = retriever
        self._embedding = embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A store with these texts; `retriever` is required among the arguments."""
        store = cls(kwargs.pop("retriever"), embedding=embedding)
        store.add_texts(texts, metadatas, ids=ids, **kwargs)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        store = cls(kwargs.pop("retriever"), embedding=embedding)
        await store.aadd_texts(texts, metadatas, ids=ids, **kwargs)
        return store

    @property
    def embeddings(self) -> Embeddings | None:
        """The embedder used instead of the collection's model."""
        return self._embedding

    # --- writing --------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts, replacing documents with the same ids; returns the ids. `access=[…]` is who
        alone may see them."""
        documents = _documents(list(texts), metadatas, ids, kwargs.get("access"))
        vectors = None
        if self._embedding is not None:
            vectors = self._embedding.embed_documents([one.content for one in documents])
        stored: list[str] = self._retriever.add_documents_sync(documents, vectors)
        return stored

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        documents = _documents(list(texts), metadatas, ids, kwargs.get("access"))
        vectors = None
        if self._embedding is not None:
            vectors = await self._embedding.aembed_documents([one.content for one in documents])
        stored: list[str] = await self._retriever.add_documents(documents, vectors)
        return stored

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents; unknown ids are ignored."""
        self._retriever.delete_sync(_require_ids(ids))
        return True

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        await self._retriever.delete(_require_ids(ids))
        return True

    # --- reading --------------------------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[LangChainDocument]:
        """The documents that exist, in this order."""
        return [_stored_document(document) for document in self._retriever.get_sync(ids)]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[LangChainDocument]:
        return [_stored_document(document) for document in await self._retriever.get(ids)]

    def similarity_search(
        self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[LangChainDocument]:
        """The documents most similar in meaning."""
        scored = self.similarity_search_with_score(query, k, filter)
        return [document for document, _ in scored]

    async def asimilarity_search(
        self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[LangChainDocument]:
        scored = await self.asimilarity_search_with_score(query, k, filter)
        return [document for document, _ in scored]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[tuple[LangChainDocument, float]]:
        """Documents with their similarities: −1 to 1 for cosine, higher is nearer."""
        question: Any = query if self._embedding is None else self._embedding.embed_query(query)
        return _scored_documents(self._retriever.similar_sync(question, k, filter))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[tuple[LangChainDocument, float]]:
        question: Any = (
            query if self._embedding is None else await self._embedding.aembed_query(query)
        )
        return _scored_documents(await self._retriever.similar(question, k, filter))

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[LangChainDocument]:
        """The documents most similar to a vector."""
        return [
            _stored_document(found) for found in self._retriever.similar_sync(embedding, k, filter)
        ]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Filter = None, **kwargs: Any
    ) -> list[LangChainDocument]:
        return [
            _stored_document(found) for found in await self._retriever.similar(embedding, k, filter)
        ]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """LangChain expects scores from 0 to 1 for thresholds: negative similarities become 0."""
        return lambda similarity: min(1.0, max(0.0, similarity))


def _documents(
    texts: list[str],
    metadatas: list[dict[str, Any]] | None,
    ids: Sequence[str | None] | None,
    access: Sequence[str] | None,
) -> list[Document]:
    for name, values in (("metadatas", metadatas), ("ids", ids)):
        if values is not None and len(values) != len(texts):
            raise ValueError(f"{pluralized(len(texts), 'text')} came with {name}: {len(values)}.")
    return [
        Document(text, metadata or {}, id=key or None, access=access)
        for text, metadata, key in zip(
            texts, metadatas or [{}] * len(texts), ids or [None] * len(texts), strict=True
        )
    ]


def _require_ids(ids: list[str] | None) -> list[str]:
    if ids is None:
        raise ValueError("Name the documents to delete: the site deletes no whole collection here.")
    return ids


def _passage_document(document: Document) -> LangChainDocument:
    """A passage, with its location among its metadata."""
    path = document.heading_path
    about = {
        "title": document.title,
        "document_key": document.document_key,
        "collection": document.collection,
        "url": document.url,
        "score": document.score,
        "similarity": document.similarity,
        "chunk": document.chunk,
        "heading_path": list(path),
        "chapter": path[0] if path else None,
        "section": path[1] if len(path) > 1 else None,
        "subsection": " > ".join(path[2:]) or None,
        "page": document.page,
        "location": document.location,
        "start": document.start,
        "end": document.end,
    }
    metadata = {**about, **document.metadata}
    return LangChainDocument(page_content=document.content, metadata=metadata, id=document.id)


def _stored_document(document: Document) -> LangChainDocument:
    """A stored document with its own metadata only."""
    return LangChainDocument(
        page_content=document.content, metadata=dict(document.metadata), id=document.id
    )


def _scored_documents(found: Iterable[Document]) -> list[tuple[LangChainDocument, float]]:
    return [(_stored_document(document), document.score or 0.0) for document in found]

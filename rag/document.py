"""Documents as agents read and write them. Without Django, for clients elsewhere too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.errors import InvalidInput

#: As JSON or as text: docs/reference/filters.md.
Filter = Mapping[str, Any] | str | None


@dataclass(frozen=True, slots=True)
class Document:
    """A document to be stored, one that is stored, or a passage of one that was found.

    `content` and `metadata` are the caller's own; a passage that was found has `token_count` among
    its metadata, and `summary` and `rerank_score` (0 to 1) where it has them. `id` names the
    document in its `collection`. Of a passage that came as chunk JSON it is the chunk's own
    `chunk_id`; `document_key` is the document's in any case. The rest is known of what was found:
    `score` orders it and is higher for better, `similarity` is −1 to 1, offsets are of the
    document's text.
    """

    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    document_key: str = ""
    title: str = ""
    collection: str = ""
    url: str = ""
    score: float | None = None
    similarity: float | None = None
    chunk: int | None = None
    heading_path: tuple[str, ...] = ()
    page: int | None = None
    start: int | None = None
    end: int | None = None


def passage_metadata(
    metadata: Mapping[str, Any], *, summary: str, token_count: int, rerank_score: float | None
) -> dict[str, Any]:
    """A passage's metadata, with what its search tells of it in place of what is called alike."""
    return {
        **metadata,
        "token_count": token_count,
        **({"summary": summary} if summary else {}),
        **({} if rerank_score is None else {"rerank_score": rerank_score}),
    }


def chosen_rerank(
    rerank: bool | None, use_reranking: bool | None, default: bool | None = None
) -> bool | None:
    """Whether to rerank, by either name. Raises InvalidInput where they disagree."""
    given = {choice for choice in (rerank, use_reranking) if choice is not None}
    if len(given) > 1:
        raise InvalidInput(
            "rerank and use_reranking are two names of one choice and disagree. Give one of them.",
            field="rerank",
        )
    return given.pop() if given else default


class Source(Protocol):
    """Where documents are: `rag.retriever.Retriever`, or elsewhere
    `rag.remote_retriever.RemoteRetriever`, which say more of each call."""

    async def search(
        self, query: str, top_k: int = ..., filter: Filter = ..., *, rerank: bool | None = ...
    ) -> list[Document]:
        """Passages, best first."""

    def search_sync(
        self, query: str, top_k: int = ..., filter: Filter = ..., *, rerank: bool | None = ...
    ) -> list[Document]:
        """As `search`."""

    async def similar(self, query: Any, top_k: int = ..., filter: Filter = ...) -> list[Document]:
        """Whole documents of one collection, nearest first."""

    def similar_sync(self, query: Any, top_k: int = ..., filter: Filter = ...) -> list[Document]:
        """As `similar`."""

    async def add_documents(self, documents: Sequence[Document], vectors: Any = ...) -> list[str]:
        """Store documents; their ids."""

    def add_documents_sync(self, documents: Sequence[Document], vectors: Any = ...) -> list[str]:
        """As `add_documents`."""

    async def delete(self, ids: Sequence[str]) -> int:
        """How many there were."""

    def delete_sync(self, ids: Sequence[str]) -> int:
        """As `delete`."""

    async def get(self, ids: Sequence[str]) -> list[Document]:
        """Those that there are."""

    def get_sync(self, ids: Sequence[str]) -> list[Document]:
        """As `get`."""

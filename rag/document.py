"""Documents as agents read and write them. Without Django, for clients elsewhere too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

#: As JSON or as text: docs/reference/filters.md.
Filter = Mapping[str, Any] | str | None


@dataclass(frozen=True, slots=True)
class Document:
    """A document to be stored, one that is stored, or a passage of one that was found.

    `content` and `metadata` are the caller's own. `id` names the document in its `collection`;
    several passages of one may be found. The rest is known of what was found: `score` orders it and
    is higher for better, `similarity` is −1 to 1, offsets are of the document's text.
    """

    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
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


class Source(Protocol):
    """Where documents are: `rag.retriever.Retriever`, or elsewhere
    `rag.remote_retriever.RemoteRetriever`, which say more of each call."""

    async def search(self, query: str, top_k: int = ..., filter: Filter = ...) -> list[Document]:
        """Passages, best first."""

    def search_sync(self, query: str, top_k: int = ..., filter: Filter = ...) -> list[Document]:
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

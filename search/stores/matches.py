"""What a store answers a search with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from search.results import Hit, Mode, SearchResult


@dataclass(frozen=True, slots=True)
class Match:
    """An item, by its best passage. `score` orders the matches, and higher is better.

    Of a search it is the fused score, of one by meaning alone the similarity, and the reranker's
    where one read the item again; of a similarity search it is that of the metric asked for.
    `similarity` and `lexical` are None where that arm did not see it. `snippet` is the telling part
    of the text, where it was asked for.
    """

    id: str
    score: float
    text: str
    metadata: Mapping[str, Any]
    title: str
    similarity: float | None
    lexical: float | None
    document_id: int
    chunk_id: int
    snippet: str | None = None


@dataclass(frozen=True, slots=True)
class Matches(Sequence[Match]):
    """Matches, best first. `degraded` names what should have worked and did not."""

    found: tuple[Match, ...]
    degraded: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Match, ...]: ...

    def __getitem__(self, index: int | slice) -> Match | tuple[Match, ...]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    @classmethod
    def of(cls, result: SearchResult, *, snippets: bool) -> "Matches":
        """The hits of a search by document."""
        return cls(
            tuple(_match(hit, result.mode, snippets=snippets) for hit in result.hits),
            result.degraded,
        )


def _match(hit: Hit, mode: Mode, *, snippets: bool) -> Match:
    by_meaning = hit.similarity if mode == "vector" else None
    score = hit.fused if by_meaning is None else by_meaning
    return Match(
        id=hit.document_key,
        score=score if hit.rerank is None else hit.rerank,
        text=hit.text,
        metadata=hit.metadata,
        title=hit.title,
        similarity=hit.similarity,
        lexical=hit.lexical,
        document_id=hit.document_id,
        chunk_id=hit.chunk_id,
        snippet=hit.snippet.text if snippets else None,
    )

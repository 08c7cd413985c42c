"""How much of what a question says its best passages hold. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

#: Among fewer chunks nothing would be rare: they are taken for as many.
LEAST_CHUNKS = 100


@dataclass(frozen=True, slots=True)
class Term:
    """A lexeme of the question in one language: of that language's `chunks` it stands in
    `chunk_count`, and in those with the ids `holders` of what was found."""

    language: str
    chunks: float
    chunk_count: float
    holders: frozenset[int]

    @property
    def weight(self) -> float:
        """Inverse document frequency, as BM25 has it; the most for what stands nowhere."""
        chunks = max(self.chunks, LEAST_CHUNKS)
        return log(1 + (max(chunks - self.chunk_count, 0) + 0.5) / (self.chunk_count + 0.5))


@dataclass(frozen=True, slots=True)
class Coverage:
    """`share` (0..1) of the question's words, by weight, is held by the passage that holds most;
    `terms` is how many words there are."""

    share: float = 0.0
    terms: int = 0


def coverage(terms: Iterable[Term], chunk_ids: Sequence[int]) -> Coverage:
    """By the best of these chunks, in the language in which that is the most."""
    by_language: dict[str, list[Term]] = defaultdict(list)
    for term in terms:
        by_language[term.language].append(term)
    covered = (_in_one_language(found, chunk_ids) for found in by_language.values())
    return max(covered, key=lambda each: (each.share, each.terms), default=Coverage())


def _in_one_language(terms: Sequence[Term], chunk_ids: Sequence[int]) -> Coverage:
    total = sum(term.weight for term in terms)
    held = (sum(term.weight for term in terms if pk in term.holders) for pk in chunk_ids)
    return Coverage(max(held, default=0.0) / total if total else 0.0, len(terms))

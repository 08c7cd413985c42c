"""Diversity: a list that does not say the same thing from one document ten times. Pure."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")

#: What each hit chosen before, of the same document or source, takes from a hit's score.
SAME_DOCUMENT = 0.75
SAME_SOURCE = 0.25


def diversified(
    hits: Sequence[T],
    *,
    score: Callable[[T], float],
    document: Callable[[T], Hashable],
    source: Callable[[T], Hashable],
) -> list[T]:
    """`hits` in a new order: always the one with the greatest
    `score / (1 + 0.75 · chosen of its document + 0.25 · chosen of its source)` next.

    Scores are not negative; a source that is falsy is nobody's. Ties keep the given order.
    """
    left = list(hits)
    documents: Counter[Hashable] = Counter()
    sources: Counter[Hashable] = Counter()

    def worth(hit: T) -> float:
        repeated = SAME_DOCUMENT * documents[document(hit)]
        repeated += SAME_SOURCE * sources[source(hit)] if source(hit) else 0
        return max(score(hit), 0.0) / (1 + repeated)

    chosen: list[T] = []
    while left:
        best = max(left, key=worth)  # the first of several
        left.remove(best)
        chosen.append(best)
        documents[document(best)] += 1
        sources[source(best)] += 1
    return chosen

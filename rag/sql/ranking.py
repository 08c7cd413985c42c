"""Which tables a question is about. Pure."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

#: Tables answer together with others of their database: a table counts for more where another one
#: of its database fits well. On the questions of Spider any share from 0.1 to 0.3 helps.
SHARED = 0.3


def ranked(scored: Sequence[tuple[T, Hashable, float]]) -> list[T]:
    """Tables, best first, from (table, its database, its own score) best first."""
    best: dict[Hashable, float] = {}
    for _, database, score in scored:
        best[database] = max(score, best.get(database, score))
    order = sorted(scored, key=lambda each: -(each[2] + SHARED * best[each[1]]))
    return [table for table, _, _ in order]

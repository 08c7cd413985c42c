"""From what a question found to one order, and how much each row has to do with it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row, and what words and meaning say of it."""

    id: int
    created_at: datetime
    text: str
    lexical: float
    coverage: float
    similarity: float | None
    likeness: float | None
    previous: int | None = None
    following: int | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row's place: score = relevance × recency."""

    id: int
    score: float
    relevance: float
    recency: float


def rank(
    question: str,
    candidates: Sequence[Candidate],
    *,
    background: float | None,
    now: datetime,
    recency_weight: float,
    half_life_days: float,
) -> list[Ranked]:
    ranked = []
    for each in candidates:
        relevance = max(0.0, min(1.0, (each.coverage + max(each.similarity or 0.0, 0.0)) / 2))
        age = max((now - each.created_at).total_seconds() / 86400, 0.0)
        recency = 1 - recency_weight + recency_weight / (1 + age / half_life_days)
        ranked.append(Ranked(each.id, relevance * recency, relevance, recency))
    return sorted(ranked, key=lambda entry: (-entry.score, entry.id))

"""Rerankers that need no model."""

from collections.abc import Sequence
from math import isfinite

from inference.interfaces import InferenceError


class NoReranker:
    """No reranking: every text gets the same score, so the order stays."""

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        return [1.0] * len(texts)


class ScoreReranker:
    """Sorts by the score each text came with, scaled to 0..1: best of the list 1, worst 0."""

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """Raises InferenceError unless `stored` has one finite score for each text."""
        if len(stored) != len(texts):
            raise InferenceError(
                f"{len(texts)} texts came with {len(stored)} stored scores: pass one for each,"
                " or configure another reranker."
            )
        if not all(map(isfinite, stored)):
            raise InferenceError("a stored score is NaN or infinite: leave that text out.")
        if not stored:
            return []
        low, high = min(stored), max(stored)
        # Halved, so that the span of two huge scores of opposite sign stays finite.
        span = high / 2 - low / 2
        return [(score / 2 - low / 2) / span if span > 0 else 1.0 for score in stored]

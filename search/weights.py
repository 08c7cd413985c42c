"""Weights of words and meaning that collections have learnt from judgements. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

#: A record's `lexical` holds for a question whose nearest passage is this close. Part of what a
#: record means, so it stays as it is, whatever becomes of the default's own constants.
CENTRE = 0.55


def learnt_lexical(lexical: float, pull: float, nearest: float | None) -> float:
    """The weight of words, 0..1, for a question whose nearest passage is `nearest` close.

    `lexical` holds at `CENTRE`; for each 1.0 that the passage is closer, `pull` moves to meaning.
    """
    if nearest is None:
        return lexical
    return min(1.0, max(0.0, lexical - pull * (nearest - CENTRE)))


def tuned_weights(
    tunings: Sequence[Mapping[str, Any] | None],
    nearest: float | None,
    *,
    untuned: Mapping[str, float],
) -> dict[str, float]:
    """Weights for one question asked of collections with these records, None where one has none.

    `untuned` are what the question would get by default, and `nearest` is how close its nearest
    passage is (`Retrieved.nearest`). Several collections get the mean of their weights; the sum is
    that of `untuned`.
    """
    if not any(tunings):
        return dict(untuned)
    total = untuned["lexical"] + untuned["vector"]
    shares = [
        learnt_lexical(tuning["lexical"], tuning["pull"], nearest) * total
        if tuning
        else untuned["lexical"]
        for tuning in tunings
    ]
    lexical = sum(shares) / len(shares)
    return {"lexical": lexical, "vector": total - lexical}


def current_tuning(tuning: Mapping[str, Any] | None, space_id: int) -> Mapping[str, Any] | None:
    """The record, unless it was learnt with another model than the collection has by now."""
    return tuning if tuning and tuning.get("space") == space_id else None

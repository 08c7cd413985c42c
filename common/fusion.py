"""Fusion of ranked lists. Pure functions; higher is better; order of the arms never matters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Method = Literal["score", "rrf"]
METHODS: tuple[Method, ...] = ("score", "rrf")

#: Cormack, Clarke and Büttcher, “Reciprocal Rank Fusion outperforms …” (SIGIR 2009).
RRF_K = 60

#: Beside arms whose weights sum to 1: how much it counts that a hit holds the question's letters,
#: and that it is like what the arms found best. Evidence lists nothing: its arms have no ranks.
#: Measured, with the weights that go with it, in docs/decisions/0017.
EVIDENCE: Mapping[str, float] = {"letters": 0.25, "likeness": 0.3}
#: So many of the best hits are compared by letters. The rest of the list gained nothing from it.
LETTERS_DEPTH = 50

#: How much the weight of words gives way to meaning where the nearest passage is closer than usual,
#: and how far it may go.
PULL = 0.5
USUALLY_NEAREST = 0.55
LEXICAL_WEIGHTS = (0.15, 0.65)


def adapted_weights(weights: Mapping[str, float], nearest: float | None) -> dict[str, float]:
    """Weights of words and meaning for one question, from those that hold in general.

    `nearest` is how close the nearest passage is, 0 as close as any, 1 the same text. A model that
    knows the language and the kind of text finds something near; one that does not finds nothing,
    and words count for more. The sum of the weights stays.
    """
    if nearest is None or weights.keys() != {"lexical", "vector"}:
        return dict(weights)
    total = weights["lexical"] + weights["vector"]
    least, most = (share * total for share in LEXICAL_WEIGHTS)
    lexical = weights["lexical"] - PULL * total * (nearest - USUALLY_NEAREST)
    lexical = min(most, max(least, lexical))
    return {"lexical": lexical, "vector": total - lexical}


@dataclass(frozen=True, slots=True)
class Arm:
    """What one arm says: `ranks` of the hits that it listed (1-based), and `scores` of every hit
    that it knows one for, listed or not. Without ranks it only speaks of what others listed."""

    name: str
    ranks: Mapping[int, int]
    scores: Mapping[int, float]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fused:
    """A hit's fused score, and what each arm added to it."""

    hit: int
    score: float
    contributions: Mapping[str, float]
    best_rank: int


def fuse(arms: Sequence[Arm], *, method: Method = "score") -> list[Fused]:
    """All hits that any arm listed, best first.

    Ties break by the best rank in any arm, then by id, so the same arms give the same list.
    """
    contribute = {"score": _score_contributions, "rrf": _rrf_contributions}[method]
    by_arm = [(arm.name, contribute(arm)) for arm in sorted(arms, key=lambda arm: arm.name)]
    best_ranks: dict[int, int] = {}
    for arm in arms:
        for hit, rank in arm.ranks.items():
            best_ranks[hit] = min(rank, best_ranks.get(hit, rank))
    fused = []
    for hit, best in best_ranks.items():
        contributions = {name: values.get(hit, 0.0) for name, values in by_arm}
        fused.append(Fused(hit, sum(contributions.values()), contributions, best))
    return sorted(fused, key=_place)


def with_evidence(fused: Sequence[Fused], evidence: Arm) -> list[Fused]:
    """As if this arm without ranks had been fused with the others by score: for evidence that is
    gathered only of the best. Of the other hits it says nothing."""
    values = _score_contributions(evidence)
    added = [
        _with(entry, evidence.name, values[entry.hit]) if entry.hit in values else entry
        for entry in fused
    ]
    return sorted(added, key=_place)


def _with(entry: Fused, name: str, value: float) -> Fused:
    contributions = {**entry.contributions, name: value}
    return Fused(entry.hit, entry.score + value, contributions, entry.best_rank)


def _place(entry: Fused) -> tuple[float, int, int]:
    return -entry.score, entry.best_rank, entry.hit


def _rrf_contributions(arm: Arm) -> dict[int, float]:
    """`weight / (60 + rank)`; a hit that the arm did not list gets nothing."""
    return {hit: arm.weight / (RRF_K + rank) for hit, rank in arm.ranks.items()}


def _score_contributions(arm: Arm) -> dict[int, float]:
    """`weight · score / best score of the arm`, floor 0.

    Divided by the arm's best and not spread over its range: the least of a hundred good hits is
    not worthless. Hits that only other arms listed are measured by this arm's own score of them
    where it is known; guessing the lowest listed one instead lost up to 1.4 points of nDCG@10.
    """
    best = max(arm.scores.values(), default=0.0)
    if best <= 0:
        return {}
    return {hit: arm.weight * max(score, 0.0) / best for hit, score in arm.scores.items()}

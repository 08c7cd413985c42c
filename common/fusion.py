"""Fusion of ranked lists, in arrays. Pure; higher is better; order of the arms never matters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.bm25 import Ids
from common.fusion_options import RRF_K, Method

Numbers = NDArray[np.float64]

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
    """What one arm says of the hits: the `scores` that it knows, NaN for others, listed or not, and
    `ranks` of those that it listed (1-based, 0 for others). Without ranks it only speaks of what
    others listed."""

    name: str
    scores: Numbers
    ranks: Ids | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fused:
    """A hit's fused score, and what each arm added to it."""

    hit: int
    score: float
    contributions: Mapping[str, float]
    best_rank: int


@dataclass(frozen=True, slots=True)
class Fusion:
    """What each arm, and each piece of evidence, added to the hits: arrays of one length."""

    hits: Ids
    contributions: Mapping[str, Numbers]
    best_ranks: Ids
    listed: NDArray[np.bool_]

    @property
    def scores(self) -> Numbers:
        """Added up in one order, so that the same contributions have the same sum."""
        total = np.zeros(len(self.hits))
        for _, values in sorted(self.contributions.items()):
            total += values
        return total

    def order(self) -> NDArray[np.intp]:
        """Places of what an arm listed, best first; ties by the best rank in an arm, then by id."""
        order = np.lexsort((self.hits, self.best_ranks, -self.scores))
        return order[self.listed[order]]

    def with_evidence(
        self, name: str, places: NDArray[np.intp] | slice, values: Numbers
    ) -> "Fusion":
        """With what is known of some hits only."""
        added = np.zeros(len(self.hits))
        added[places] = values
        return replace(self, contributions={**self.contributions, name: added})


def fuse(hits: Ids, arms: Sequence[Arm], *, method: Method = "score", rrf_k: int = RRF_K) -> Fusion:
    """What the arms say of `hits` together."""
    unlisted = np.iinfo(np.int64).max
    best = np.full(len(hits), unlisted)
    contributions = {}
    for arm in sorted(arms, key=lambda arm: arm.name):
        if arm.ranks is not None:
            best = np.where(arm.ranks > 0, np.minimum(arm.ranks, best), best)
        contributions[arm.name] = contribution(arm, method, rrf_k)
    return Fusion(hits, contributions, best, best < unlisted)


def contribution(arm: Arm, method: Method = "score", rrf_k: int = RRF_K) -> Numbers:
    """By score `weight · score / best score of the arm`, floor 0; by rank `weight / (k + rank)`,
    and nothing for a hit that the arm did not list.

    Divided by the arm's best and not spread over its range: the least of a hundred good hits is
    not worthless. Hits that only other arms listed are measured by this arm's own score of them
    where it is known; guessing the lowest listed one instead lost up to 1.4 points of nDCG@10.
    """
    if method == "rrf":
        ranks = np.zeros(len(arm.scores)) if arm.ranks is None else arm.ranks
        return np.where(ranks > 0, arm.weight / (rrf_k + ranks), 0.0)
    known = np.maximum(np.nan_to_num(arm.scores, nan=0.0), 0.0)
    best = known.max(initial=0.0)
    return arm.weight * known / best if best > 0 else known

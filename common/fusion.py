"""Scores of retrieval: similarities of several models on one scale, fusion of ranked lists, and the
likelihood that the passages hold an answer. Pure, in arrays; higher is better. Begin with `fuse`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common.bm25 import Ids
from common.fusion_options import RRF_K, Method

Numbers = NDArray[np.float64]

#: Weights of the reranking features, added to arms whose weights sum to 1: trigram overlap with the
#: question, and similarity to the best hits (pseudo-relevance feedback). Features have no ranks and
#: list no hits. Measured in docs/decisions/0017.
RERANK_FEATURES: Mapping[str, float] = {"letters": 0.25, "likeness": 0.3}
#: Number of best hits for which trigram overlap is computed; more gained nothing.
TRIGRAM_DEPTH = 50

#: How much the lexical weight shrinks where the best passage is more similar than usual, and its
#: bounds.
LEXICAL_DAMPING = 0.5
USUAL_TOP_SIMILARITY = 0.55
LEXICAL_WEIGHT_BOUNDS = (0.15, 0.65)


def adapted_weights(weights: Mapping[str, float], top_similarity: float | None) -> dict[str, float]:
    """Weights of the lexical and vector arm for one question.

    `top_similarity` is the normalised similarity of the best passage (0 unrelated, 1 identical). A
    model that knows the language finds something similar; where it does not, the lexical weight
    grows. The sum of the weights stays.
    """
    if top_similarity is None or weights.keys() != {"lexical", "vector"}:
        return dict(weights)
    total = weights["lexical"] + weights["vector"]
    least, most = (share * total for share in LEXICAL_WEIGHT_BOUNDS)
    lexical = weights["lexical"] - LEXICAL_DAMPING * total * (top_similarity - USUAL_TOP_SIMILARITY)
    lexical = min(most, max(least, lexical))
    return {"lexical": lexical, "vector": total - lexical}


@dataclass(frozen=True, slots=True)
class Arm:
    """One ranked list: `scores` of the hits (NaN where unknown) and `ranks` of those it listed
    (1-based, 0 for others). Without ranks it only scores what other arms listed.
    """

    name: str
    scores: Numbers
    ranks: Ids | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fusion:
    """Contributions of each arm and each reranking feature to the hits: arrays of one length."""

    hits: Ids
    contributions: Mapping[str, Numbers]
    best_ranks: Ids
    listed: NDArray[np.bool_]

    @property
    def scores(self) -> Numbers:
        """Sums in a fixed order, so that equal contributions have equal sums."""
        total = np.zeros(len(self.hits))
        for _, values in sorted(self.contributions.items()):
            total += values
        return total

    def order(self) -> NDArray[np.intp]:
        """Indices of the listed hits, best first; ties by the best rank in an arm, then by id."""
        order = np.lexsort((self.hits, self.best_ranks, -self.scores))
        return order[self.listed[order]]

    def with_evidence(
        self, name: str, places: NDArray[np.intp] | slice, values: Numbers
    ) -> "Fusion":
        """With a feature known for some hits only."""
        added = np.zeros(len(self.hits))
        added[places] = values
        return replace(self, contributions={**self.contributions, name: added})


def fuse(hits: Ids, arms: Sequence[Arm], *, method: Method = "score", rrf_k: int = RRF_K) -> Fusion:
    """Fuse the arms' scores or ranks of `hits`."""
    unlisted = np.iinfo(np.int64).max
    best = np.full(len(hits), unlisted)
    contributions = {}
    for arm in sorted(arms, key=lambda arm: arm.name):
        if arm.ranks is not None:
            best = np.where(arm.ranks > 0, np.minimum(arm.ranks, best), best)
        contributions[arm.name] = contribution(arm, method, rrf_k)
    return Fusion(hits, contributions, best, best < unlisted)


def contribution(arm: Arm, method: Method = "score", rrf_k: int = RRF_K) -> Numbers:
    """By score `weight · score / best score of the arm`, at least 0; by rank `weight / (k + rank)`,
    0 for hits that the arm did not list.

    Divided by the best score and not by the range: the last of a hundred good hits is not
    worthless. Hits that only other arms listed use this arm's own score where known; assuming the
    lowest listed one lost up to 1.4 points of nDCG@10.
    """
    if method == "rrf":
        ranks = np.zeros(len(arm.scores)) if arm.ranks is None else arm.ranks
        return np.where(ranks > 0, arm.weight / (rrf_k + ranks), 0.0)
    known = np.maximum(np.nan_to_num(arm.scores, nan=0.0), 0.0)
    best = known.max(initial=0.0)
    return arm.weight * known / best if best > 0 else known


FloatOrArray = TypeVar("FloatOrArray", float, Numbers)

#: Minimum of 1 − baseline: where all texts are similar, a smaller divisor would only magnify noise.
MIN_RANGE = 0.05


def normalized_similarity(similarity: FloatOrArray, baseline_similarity: float) -> FloatOrArray:
    """(similarity − baseline) / (1 − baseline): 0 = unrelated, 1 = identical.

    Models differ in scale: for one any two texts have 0.05 and a good answer 0.6, for another 0.75
    and 0.88. `baseline_similarity` is the mean similarity of the question to any passages of the
    scope.
    """
    return (similarity - baseline_similarity) / max(1 - baseline_similarity, MIN_RANGE)


def normalize_across_spaces(
    similarities: Numbers, spaces: Ids, baselines: Mapping[int, float]
) -> Numbers:
    """Normalised similarities of hits from several spaces, by each space's baseline.

    Within one space they are comparable as they are, and returned unchanged.
    """
    if len(baselines) < 2:
        return similarities
    usual = np.array([baselines.get(space, 0.0) for space in spaces.tolist()])
    close: Numbers = (similarities - usual) / np.maximum(1 - usual, MIN_RANGE)
    return close


#: Coefficients of the logistic regression of docs/decisions/0032 (answers have newer ones).
TOP_WEIGHT, BASELINE_WEIGHT, COVERAGE_WEIGHT, BIAS = 7.5, 5.75, 6.3, -8.6


def required_top_similarity(*, baseline_similarity: float, coverage: float) -> float:
    """The similarity of the most similar passage at which an answer is as likely as none.

    `baseline_similarity` is the mean of all: 0 is unrelated, 1 a typical answer. `coverage` is the
    share (0..1) of the question's words in the best passage.
    """
    return -(BASELINE_WEIGHT * baseline_similarity + COVERAGE_WEIGHT * coverage + BIAS) / TOP_WEIGHT

"""Fusion obeys its laws whatever the arms bring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import fusion
from common.fusion import Fusion, adapted_weights
from common.fusion_options import METHODS, RRF_K, Method

SCORES = st.dictionaries(
    st.integers(1, 30), st.floats(0.01, 100, allow_nan=False), min_size=1, max_size=20
)
#: Sums and quotients of these are exact, so that laws hold to the last digit.
EXACT_SCORES = st.dictionaries(
    st.integers(1, 12), st.integers(1, 64).map(float), min_size=1, max_size=10
)
EXACT_WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0])


@dataclass(frozen=True)
class Arm:
    """Ranks and scores by hit."""

    name: str
    ranks: Mapping[int, int]
    scores: Mapping[int, float]
    weight: float = 1.0


@dataclass(frozen=True)
class Fused:
    """A hit's fused score, and what each arm contributed."""

    hit: int
    score: float
    contributions: Mapping[str, float]
    best_rank: int


def fused_arrays(arms: Sequence[Arm], method: Method = "score") -> Fusion:
    hits = list(dict.fromkeys(hit for arm in arms for hit in (*arm.ranks, *arm.scores)))
    return fusion.fuse(
        np.array(hits, np.int64),
        [
            fusion.Arm(
                each.name,
                np.array([each.scores.get(hit, np.nan) for hit in hits], np.float64),
                np.array([each.ranks.get(hit, 0) for hit in hits], np.int64),
                each.weight,
            )
            for each in arms
        ],
        method=method,
    )


def in_order(fused: Fusion) -> list[Fused]:
    return [
        Fused(
            hit=int(fused.hits[place]),
            score=float(fused.scores[place]),
            contributions={name: float(of[place]) for name, of in fused.contributions.items()},
            best_rank=int(fused.best_ranks[place]),
        )
        for place in fused.order()
    ]


def fuse(arms: Sequence[Arm], *, method: Method = "score") -> list[Fused]:
    return in_order(fused_arrays(arms, method))


def arm(name: str, scores: dict[int, float], weight: float = 1.0) -> Arm:
    ordered = sorted(scores, key=lambda hit: (-scores[hit], hit))
    return Arm(name, {hit: rank for rank, hit in enumerate(ordered, start=1)}, scores, weight)


def places(fused: Sequence[Fused]) -> dict[int, int]:
    return {entry.hit: place for place, entry in enumerate(fused)}


@given(SCORES, SCORES, st.sampled_from(METHODS), st.randoms())
def test_order_of_arms_and_hits_does_not_matter(
    first: dict[int, float], second: dict[int, float], method: Method, random: Random
) -> None:
    def shuffled(given: Arm) -> Arm:
        ranks, scores = list(given.ranks.items()), list(given.scores.items())
        random.shuffle(ranks)
        random.shuffle(scores)
        return Arm(given.name, dict(ranks), dict(scores), given.weight)

    arms = [arm("one", first), arm("two", second)]
    expected = fuse(arms, method=method)
    assert fuse(arms[::-1], method=method) == expected
    assert fuse([shuffled(each) for each in arms], method=method) == expected


@given(EXACT_SCORES, EXACT_SCORES, EXACT_WEIGHTS, st.data())
def test_a_hit_that_scores_more_in_an_arm_never_falls(
    first: dict[int, float], second: dict[int, float], weight: float, data: st.DataObject
) -> None:
    method = data.draw(st.sampled_from(METHODS))
    hit = data.draw(st.sampled_from(sorted(first)))
    raised = {**first, hit: first[hit] + data.draw(st.integers(1, 64))}
    other = arm("two", second)
    before = places(fuse([arm("one", first, weight), other], method=method))
    after = places(fuse([arm("one", raised, weight), other], method=method))
    assert after[hit] <= before[hit]


@given(SCORES, SCORES, st.integers(-8, 8), st.floats(0.01, 1))
def test_the_unit_of_an_arm_does_not_matter(
    first: dict[int, float], second: dict[int, float], power: int, weight: float
) -> None:
    other = arm("two", second)
    scaled = {hit: score * 2.0**power for hit, score in first.items()}
    assert fuse([arm("one", scaled, weight), other]) == fuse([arm("one", first, weight), other])


@given(SCORES, SCORES, st.sampled_from(METHODS))
def test_an_arm_without_weight_changes_no_score(
    first: dict[int, float], second: dict[int, float], method: Method
) -> None:
    alone = {entry.hit: entry.score for entry in fuse([arm("one", first)], method=method)}
    both = fuse([arm("one", first), arm("two", second, 0.0)], method=method)
    assert {entry.hit: entry.score for entry in both} == {
        **dict.fromkeys(second, 0.0),
        **alone,
    }


@given(SCORES, SCORES, st.sampled_from(METHODS))
def test_evidence_lists_no_hit_and_without_any_changes_nothing(
    listed: dict[int, float], known: dict[int, float], method: Method
) -> None:
    only = arm("one", listed)
    fused = fuse([only, Arm("letters", {}, known, 0.3)], method=method)
    assert {entry.hit for entry in fused} == set(listed)
    empty = fuse([only, Arm("letters", {}, {}, 0.3)], method=method)
    assert [entry.hit for entry in empty] == [entry.hit for entry in fuse([only], method=method)]


@given(SCORES, SCORES, SCORES)
def test_evidence_may_as_well_come_later(
    first: dict[int, float], second: dict[int, float], known: dict[int, float]
) -> None:
    arms = [arm("one", first, 0.4), arm("two", second, 0.6)]
    letters = Arm("letters", {}, known, 0.25)
    at_once = fused_arrays([*arms, letters])
    scores = np.array([known.get(hit, np.nan) for hit in at_once.hits.tolist()])
    added = fusion.contribution(fusion.Arm("letters", scores, weight=0.25))
    without = fused_arrays([*arms, Arm("letters", {}, known, 0.0)])
    assert in_order(without.with_evidence("letters", slice(None), added)) == in_order(at_once)


def test_evidence_moves_a_hit_by_its_share_of_the_best() -> None:
    words = Arm("lexical", {1: 1, 2: 2}, {1: 10.0, 2: 8.0})
    likeness = Arm("likeness", {}, {1: 0.2, 2: 0.8, 3: 0.4}, 0.3)
    best, second = fuse([words, likeness])
    assert (best.hit, best.contributions) == (2, {"lexical": 0.8, "likeness": 0.3})
    assert second.contributions["likeness"] == pytest.approx(0.075)


@given(SCORES, SCORES, st.sampled_from(METHODS))
def test_every_hit_has_the_sum_of_its_contributions_and_no_better_one_is_below(
    first: dict[int, float], second: dict[int, float], method: Method
) -> None:
    one, two = arm("one", first, 0.3), arm("two", second, 0.7)
    fused = fuse([one, two], method=method)
    scores = {entry.hit: entry.score for entry in fused}
    assert scores.keys() == first.keys() | second.keys()
    assert len(fused) == len(scores)
    for entry in fused:
        assert sum(entry.contributions.values()) == pytest.approx(entry.score)
    both = set(first) & set(second)
    for a in both:
        for b in both:
            if one.ranks[a] < one.ranks[b] and two.ranks[a] < two.ranks[b]:
                assert scores[a] >= scores[b]


@given(SCORES, st.sampled_from(METHODS))
def test_one_arm_alone_keeps_its_order(scores: dict[int, float], method: Method) -> None:
    only = arm("one", scores)
    assert [entry.hit for entry in fuse([only], method=method)] == sorted(
        scores, key=only.ranks.__getitem__
    )


def test_ties_break_by_the_best_rank_and_then_by_id() -> None:
    tied = [Arm("one", {7: 1, 5: 2}, {}), Arm("two", {5: 1, 7: 2}, {})]
    assert [entry.hit for entry in fuse(tied, method="rrf")] == [5, 7]


def test_rrf_is_the_published_formula() -> None:
    (best, *_) = fuse([Arm("one", {1: 1}, {}), Arm("two", {1: 3}, {})], method="rrf")
    assert best.score == pytest.approx(1 / (RRF_K + 1) + 1 / (RRF_K + 3))


def test_a_hit_counts_with_the_score_of_an_arm_that_did_not_list_it() -> None:
    vector = Arm("vector", {1: 1}, {1: 0.8, 2: 0.6})
    lexical = Arm("lexical", {2: 1}, {2: 5.0})
    scores = {entry.hit: entry.contributions for entry in fuse([vector, lexical])}
    assert scores[2]["vector"] == pytest.approx(0.75)
    assert scores[1]["lexical"] == 0.0


def test_negative_similarities_count_as_nothing() -> None:
    fused = fuse([Arm("vector", {1: 1, 2: 2}, {1: 0.5, 2: -0.4})])
    assert [entry.score for entry in fused] == [1.0, 0.0]


def test_an_arm_without_a_positive_score_adds_nothing() -> None:
    fused = fuse([Arm("vector", {1: 1}, {1: -0.1}), Arm("lexical", {2: 1}, {2: 3.0})])
    assert [(entry.hit, entry.score) for entry in fused] == [(2, 1.0), (1, 0.0)]


@given(lexical=st.floats(0.15, 0.65), nearest=st.floats(-2, 2), nearer=st.floats(0, 2))
def test_the_nearer_the_nearest_passage_the_more_meaning_weighs(
    lexical: float, nearest: float, nearer: float
) -> None:
    weights = {"lexical": lexical, "vector": 1 - lexical}
    far = adapted_weights(weights, nearest)
    near = adapted_weights(weights, nearest + nearer)
    assert near["vector"] >= far["vector"]
    for adapted in (far, near):
        assert sum(adapted.values()) == pytest.approx(1)
        assert 0.15 <= round(adapted["lexical"], 9) <= 0.65
    assert adapted_weights(weights, 0.55) == pytest.approx(weights)


def test_weights_stay_where_nothing_was_found_by_meaning_or_one_arm_works_alone() -> None:
    weights = {"lexical": 0.41, "vector": 0.59}
    assert adapted_weights(weights, None) == weights
    assert adapted_weights({"lexical": 1.0}, 0.9) == {"lexical": 1.0}

"""Learning weights: honest about what it has not seen, and the same every time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.evaluation.evaluate import dcg, measure
from search.evaluation.learned_weights import (
    FOLDS,
    GRID,
    JudgedQuestion,
    best_point,
    bootstrap_interval,
    cross_validated,
    folds,
    learn_weights,
)

grades = st.lists(st.integers(0, 2), min_size=1, max_size=12)


def question(number: int, *, right_by: str, nearest: float | None = 0.55) -> JudgedQuestion:
    """Document 1 is right; one arm puts it first, the other puts document 2 first."""
    documents = [1, 2] if number % 2 else [2, 1]
    right = np.array([1.0 if document == 1 else 0.5 for document in documents])
    both = np.array([True, True])
    return JudgedQuestion(
        id=str(number),
        documents=documents,
        contributions={
            arm: right if arm == right_by else 1.5 - right for arm in ("words", "meaning")
        },
        listed={"words": both, "meaning": both},
        similarity=np.zeros(2),
        holds=np.zeros((2, 1), dtype=bool),
        grades={1: 1},
        nearest=nearest,
        untuned=0.41,
    )


def test_words_gain_where_words_are_right() -> None:
    learnt = learn_weights([question(number, right_by="words") for number in range(20)])
    assert (learnt.words, learnt.tuned) == (1, 1)
    assert learnt.meaning == learnt.untuned == pytest.approx(0.6309, abs=1e-4)
    assert learnt.lexical > 0.5
    low, high = learnt.interval
    assert low == pytest.approx(learnt.gain) == pytest.approx(high)


def test_meaning_that_is_right_already_gains_nothing() -> None:
    learnt = learn_weights([question(number, right_by="meaning") for number in range(20)])
    assert learnt.lexical < 0.5
    assert (learnt.untuned, learnt.tuned, learnt.gain) == (1, 1, 0)


def test_the_nearest_passage_may_decide() -> None:
    """Where near ones want meaning and far ones words, neither fixed weight serves both."""
    near = [question(number, right_by="meaning", nearest=0.95) for number in range(10)]
    far = [question(number, right_by="words", nearest=0.15) for number in range(10, 20)]
    learnt = learn_weights([*near, *far])
    assert learnt.pull > 0
    assert learnt.tuned == 1


def test_what_cannot_be_known_is_not_promised() -> None:
    """Coin flips: the best weights look good on the questions seen, and are worth nothing."""
    chance = np.random.default_rng(3)
    scores = chance.random((40, len(GRID)))
    held_out = cross_validated(scores, folds([str(number) for number in range(40)]))
    assert scores[:, best_point(scores)].mean() > 0.55
    assert abs(held_out.mean() - 0.5) < 0.1


def test_no_question_is_measured_with_weights_learnt_from_it() -> None:
    scores = np.zeros((10, len(GRID)))
    scores[0, 5] = 1.0  # only question 0 likes this point
    fold = folds([str(number) for number in range(10)])
    assert cross_validated(scores, fold)[0] == 0


def test_folds_are_equal_and_depend_on_ids_alone() -> None:
    ids = [f"question {number}" for number in range(23)]
    fold = dict(zip(ids, folds(ids), strict=True))
    assert dict(zip(ids[::-1], folds(ids[::-1]), strict=True)) == fold
    sizes = np.bincount(list(fold.values()))
    assert len(sizes) == FOLDS
    assert set(sizes) == {4, 5}


def test_of_equal_weights_the_middle_is_taken() -> None:
    points = np.array(GRID)
    scores = ((points[:, 0] >= 0.6) & (points[:, 1] == 0)).astype(float)[None, :]
    assert GRID[best_point(scores)] == (0.8, 0.0)


def test_the_interval_holds_the_mean_and_is_the_same_again() -> None:
    differences = np.random.default_rng(1).normal(0.1, 1.0, 200)
    low, high = bootstrap_interval(differences)
    assert low < differences.mean() < high
    assert (low, high) == bootstrap_interval(differences)
    # twice the standard error to each side
    assert high - low == pytest.approx(4 * differences.std() / 200**0.5, rel=0.1)


@given(grades)
def test_dcg_is_the_measures_own(ranked: list[int]) -> None:
    names = [f"d{place}" for place in range(len(ranked))]
    judged = dict(zip(names, ranked, strict=True))
    ideal = dcg(sorted(ranked, reverse=True)[:10])
    if not ideal:
        return
    expected = measure({"q": names}, {"q": judged}, k=10)["ndcg@10"]
    assert dcg(ranked[:10]) / ideal == pytest.approx(expected, abs=1e-4)

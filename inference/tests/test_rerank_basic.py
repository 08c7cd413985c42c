"""Rerankers without a model: they score, they never drop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.backends.rerank_basic import NoReranker, ScoreReranker
from inference.interfaces import InferenceError

SCORES = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20)


def reranked(texts, scores):
    return [text for _, text in sorted(zip(scores, texts, strict=True), key=lambda pair: -pair[0])]


def test_no_reranker_keeps_the_order():
    texts = ["c", "a", "b"]
    assert reranked(texts, NoReranker().score("anything", texts)) == texts


@given(SCORES)
def test_stored_scores_order_the_texts_as_they_did(stored):
    texts = [str(position) for position in range(len(stored))]
    scores = ScoreReranker().score("", texts, stored=stored)
    assert len(scores) == len(texts)
    assert all(0 <= score <= 1 for score in scores)
    for position in range(1, len(stored)):
        if stored[position - 1] <= stored[position]:
            assert scores[position - 1] <= scores[position]


def test_stored_scores_spread_from_worst_to_best():
    assert ScoreReranker().score("", ["a", "b", "c"], stored=[7, 3, 5]) == [1.0, 0.0, 0.5]
    assert ScoreReranker().score("", ["a", "b"], stored=[2, 2]) == [1.0, 1.0]


def test_missing_stored_scores_are_an_error_and_not_a_guess():
    with pytest.raises(InferenceError, match="2 texts came with 0 stored scores"):
        ScoreReranker().score("", ["a", "b"])


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(score):
    with pytest.raises(InferenceError, match="NaN or infinite"):
        ScoreReranker().score("", ["a", "b"], stored=[1.0, score])

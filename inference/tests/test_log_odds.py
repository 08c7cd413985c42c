"""Log-odds as scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.interfaces import InvalidScore
from inference.local.reranker import sigmoid_scores


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_scores_lie_in_0_to_1_and_keep_the_order(odds):
    scores = sigmoid_scores(np.array(odds, dtype=np.float32))
    assert all(0 <= score <= 1 for score in scores)
    assert [scores[row] for row in np.argsort(odds)] == sorted(scores)


def test_they_are_the_logistic_and_two_good_texts_stay_apart():
    assert sigmoid_scores(np.float32([0, -np.log(3)])) == pytest.approx([0.5, 0.25])
    good, better = sigmoid_scores(np.float32([20, 21]))
    assert good < better < 1


@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_by_its_index(fault):
    with pytest.raises(InvalidScore, match="text 1 is NaN or infinite"):
        sigmoid_scores(np.float32([0, fault]))

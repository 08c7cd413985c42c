"""What is let through as a vector."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inference.interfaces import DimensionMismatch, InvalidVector
from inference.vectors import check_vectors

FINITE = st.floats(-1e6, 1e6, width=32).filter(lambda number: abs(number) > 1e-6)


@given(arrays(np.float32, st.tuples(st.integers(0, 6), st.just(5)), elements=FINITE))
def test_finite_vectors_pass_unchanged(rows):
    checked = check_vectors(rows, dimensions=5)
    assert checked.dtype == np.float32
    np.testing.assert_array_equal(checked, rows)


def test_a_single_vector_and_lists_of_numbers_pass():
    assert check_vectors([3, 4], dimensions=2).tolist() == [3.0, 4.0]
    assert check_vectors([[3, 4]], dimensions=2).shape == (1, 2)
    assert check_vectors(np.empty((0, 2)), dimensions=2).shape == (0, 2)


@pytest.mark.parametrize("vectors", [[1.0, 2.0], [[1.0, 2.0]], [], [[]]])
def test_another_length_is_refused_with_both_lengths(vectors):
    actual = np.shape(vectors)[-1]
    with pytest.raises(DimensionMismatch, match=f"Expected 3 dimensions, got {actual}") as refused:
        check_vectors(vectors, dimensions=3)
    assert (refused.value.expected, refused.value.actual) == (3, actual)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ([0.0, 0.0], "all zeros"),
        ([np.nan, 1.0], "not finite"),
        ([np.inf, 1.0], "not finite"),
        ([-np.inf, np.inf], "not finite"),
        ([1e300, 1.0], "not finite"),  # too big for float32
        ([1e-300, 0.0], "all zeros"),  # too small for it
    ],
)
def test_the_first_unusable_row_is_named(bad, fault):
    rows = [[1.0, 0.0], bad, [0.0, 1.0], bad]
    with pytest.raises(InvalidVector, match=f"vector 1 is {fault}"):
        check_vectors(np.array(rows), dimensions=2)


def test_very_small_and_very_large_vectors_are_still_vectors():
    check_vectors([[1e-30, 0.0], [3e38, 3e38]], dimensions=2)


def test_more_than_two_axes_are_refused():
    with pytest.raises(InvalidVector, match="3 axes"):
        check_vectors(np.ones((1, 1, 2)), dimensions=2)

"""Learnt weights: followed, moved by the nearest passage, and joined over collections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.ranking import TUNING_CENTRE, current_tuning, tuned_weights

UNTUNED = {"lexical": 0.4, "vector": 0.6}
shares = st.floats(0, 1)
records = st.none() | st.fixed_dictionaries({"lexical": shares, "pull": st.floats(0, 0.5)})


def test_without_a_record_the_default_holds() -> None:
    assert tuned_weights([None, None], 0.9, untuned=UNTUNED) == UNTUNED
    assert tuned_weights([], None, untuned=UNTUNED) == UNTUNED


def test_a_record_holds_as_it_is_for_the_usual_question() -> None:
    weights = tuned_weights([{"lexical": 0.9, "pull": 0.5}], TUNING_CENTRE, untuned=UNTUNED)
    assert weights == pytest.approx({"lexical": 0.9, "vector": 0.1})


def test_the_nearer_the_passage_the_less_words_weigh() -> None:
    record = {"lexical": 0.5, "pull": 0.5}
    near = tuned_weights([record], TUNING_CENTRE + 0.2, untuned=UNTUNED)
    far = tuned_weights([record], TUNING_CENTRE - 0.2, untuned=UNTUNED)
    assert near["lexical"] == pytest.approx(0.4)
    assert far["lexical"] == pytest.approx(0.6)


def test_collections_without_a_record_count_with_the_default() -> None:
    record = {"lexical": 1.0, "pull": 0.0}
    weights = tuned_weights([record, None], 0.7, untuned=UNTUNED)
    assert weights["lexical"] == pytest.approx(0.7)


@given(st.lists(records, max_size=5), st.none() | st.floats(-2, 2), shares)
def test_the_sum_stays_and_none_is_negative(
    tunings: list[dict[str, float] | None], nearest: float | None, lexical: float
) -> None:
    untuned = {"lexical": lexical, "vector": 1 - lexical}
    weights = tuned_weights(tunings, nearest, untuned=untuned)
    assert sum(weights.values()) == pytest.approx(1)
    assert all(weight >= -1e-12 for weight in weights.values())
    assert tuned_weights(tunings[::-1], nearest, untuned=untuned) == pytest.approx(weights)


def test_a_record_of_another_model_does_not_count() -> None:
    record = {"lexical": 0.9, "pull": 0.0, "space": 3}
    assert current_tuning(record, 3) == record
    assert current_tuning(record, 4) is None
    assert current_tuning(None, 4) is None

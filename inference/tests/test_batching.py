"""Batches by token budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.interfaces import InferenceError
from inference.local.batches import run_in_batches

LENGTHS = st.lists(st.integers(1, 300), max_size=40)


def run(lengths, *, budget, room=10**9):
    """Batches run on a machine with memory for `room` padded tokens, and the budget that held."""
    batches = []

    def forward(rows):
        if len(rows) * max(lengths[row] for row in rows) > room:
            raise MemoryError
        batches.append(rows)

    held = run_in_batches(
        lengths,
        forward,
        budget=budget,
        is_out_of_memory=lambda error: isinstance(error, MemoryError),
    )
    return batches, held


@given(LENGTHS, st.integers(1, 2000))
def test_each_row_runs_once_within_the_budget_longest_first(lengths, budget):
    batches, held = run(lengths, budget=budget)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    assert held == budget
    for rows in batches:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= budget
    longest = [max(lengths[row] for row in rows) for rows in batches]
    assert longest == sorted(longest, reverse=True)


@given(LENGTHS, st.integers(300, 1000))
def test_out_of_memory_halves_until_it_fits_and_still_runs_each_row_once(lengths, room):
    batches, held = run(lengths, budget=2000, room=room)
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    assert held <= 2000
    assert run(lengths, budget=held, room=room)[1] == held  # remembered, so it is not met again


def test_the_halving_is_said(caplog):
    run([100] * 8, budget=800, room=450)
    assert [record.getMessage() for record in caplog.records] == [
        "out of memory: 400 tokens in a batch from now on"
    ]


def test_one_text_that_does_not_fit_is_an_error_with_its_cure():
    with pytest.raises(InferenceError, match=r"one text of 100 tokens.*smaller max_length"):
        run([100, 5], budget=800, room=50)


def test_another_error_is_not_taken_for_lack_of_memory():
    def broken(rows):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        run_in_batches([1, 2], broken, budget=9, is_out_of_memory=lambda error: False)

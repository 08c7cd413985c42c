"""Counting for a model that runs elsewhere, and cutting texts in two."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.interfaces import BackendUnavailable
from inference.local.model_folder import locate_model
from inference.remote.retry import halve
from inference.tokens import token_counter

TEXT = st.text(min_size=1).filter(lambda text: not text.isspace())
ESTIMATE = token_counter(None, max_tokens=100)
EXACT = token_counter(str(locate_model(None)[0]), max_tokens=100)


@given(TEXT)
def test_every_text_with_something_in_it_counts(text):
    assert ESTIMATE.count(text) >= 1


@given(TEXT, TEXT)
def test_counts_nearly_add_up(first, second):
    apart = ESTIMATE.count(first) + ESTIMATE.count(second)
    assert abs(ESTIMATE.count(f"{first} {second}") - apart) <= 4


@given(TEXT)
def test_the_estimate_is_never_far_below_the_characters(text):
    assert ESTIMATE.count(text) >= len("".join(text.split())) / 3


@pytest.mark.parametrize(
    "text",
    [
        "Common side effects of aripiprazole are drowsiness, nausea and restlessness.",
        "Die Patientin nimmt die Tabletten seit drei Wochen jeden Abend nach dem Essen.",
        "def count(self, text: str) -> int:\n    return len(PIECE.findall(text)) + 1\n",
        "2026-11-05 13:37:59 10.0.0.255 4711 0815 3.14159265",
        "{{ a.b['c'] }} | !!! ### == <=> && (x)->y; //",
        "常见的副作用包括嗜睡、恶心和烦躁不安。",
        "副作用には眠気、吐き気、落ち着きのなさがあります。",
    ],
)
def test_the_estimate_errs_on_the_high_side(text):
    assert ESTIMATE.count(text) >= EXACT.count(text)


def test_the_estimate_has_no_tokenizer_and_the_exact_one_does():
    assert ESTIMATE.tokenizer is None
    assert ESTIMATE.max_tokens == EXACT.max_tokens == 100
    assert EXACT.tokenizer is not None
    assert EXACT.count("heart heart heart") == 3


def test_a_tokenizer_is_named_by_its_folder_or_its_file(tmp_path):
    folder = locate_model(None)[0]
    by_file = token_counter(str(folder / "tokenizer.json"), max_tokens=9)
    assert by_file.count("aripiprazole") == EXACT.count("aripiprazole")
    with pytest.raises(BackendUnavailable, match=r"tokenizer\.json cannot be read"):
        token_counter(str(tmp_path), max_tokens=9)


@given(TEXT)
def test_halves_hold_all_but_white_space(text):
    halves = halve(text)
    assert "".join("".join(halves).split()) == "".join(text.split())
    assert all(half and half == half.strip() for half in halves)
    assert len(halves) == 2 or len(text.strip()) == 1


@given(st.lists(st.sampled_from(["a", "heart", "aripiprazole"]), min_size=10, max_size=80))
def test_halves_are_cut_between_words_near_the_middle(words):
    first, second = halve(" ".join(words))
    assert [*first.split(), *second.split()] == words
    assert np.ptp([len(first), len(second)]) <= 2 * len("aripiprazole")

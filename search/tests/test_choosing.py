"""Values picked from a list, within a filter of whatever else."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from search.filters import (
    ALL,
    chosen_values,
    is_chosen,
    read_filter,
    to_json,
    to_text,
    without_field,
)
from search.filters.tree import parse_field, toggle_value
from search.tests.filter_strategies import filters, scalars

AUTHOR = parse_field("author", at="")
LANGUAGE = parse_field("lang", at="")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("", "Ann", "author=Ann"),
        ("author=Ann", "Ann", ""),
        ("author=Ann", "Bob", "author=Ann,Bob"),
        ("author=Ann,Bob", "Ann", "author=Bob"),
        ("author=Ann; year>2000", "Bob", "author=Ann,Bob; year>2000"),
        ("author=1", "1", 'author=1,"1"'),
        ("author!=Ann", "Bob", "author!=Ann; author=Bob"),
    ],
)
def test_a_value_is_picked_and_taken_back(text: str, value: str, expected: str) -> None:
    assert to_text(toggle_value(read_filter(text), AUTHOR, value)) == expected


def test_only_a_choice_at_the_top_is_one() -> None:
    tree = read_filter("author=Ann | year=2020; author!=Bob; author~Car; !(author=Dan)")
    assert chosen_values(tree, AUTHOR) == ()
    assert without_field(tree, AUTHOR) == tree


def test_a_language_is_the_same_in_any_spelling() -> None:
    tree = read_filter("lang=DE,fr-CH")
    assert is_chosen(tree, LANGUAGE, "de")
    assert is_chosen(tree, LANGUAGE, "fr")
    assert to_text(toggle_value(tree, LANGUAGE, "de")) == "language=fr-CH"


@given(asked=filters, value=scalars)
def test_picking_twice_picks_nothing(asked: dict[str, object], value: str) -> None:
    tree = read_filter(asked)
    assume(not chosen_values(tree, AUTHOR))
    once = toggle_value(tree, AUTHOR, value)
    assert is_chosen(once, AUTHOR, value)
    assert without_field(once, AUTHOR) == tree
    assert toggle_value(once, AUTHOR, value) == tree
    assert read_filter(to_json(once)) == once


@given(values=st.lists(scalars, unique_by=lambda value: (type(value), value), max_size=4))
def test_what_is_picked_one_after_the_other_is_picked_together(values: list[str]) -> None:
    tree = ALL
    for value in values:
        if not is_chosen(tree, AUTHOR, value):
            tree = toggle_value(tree, AUTHOR, value)
    assert all(is_chosen(tree, AUTHOR, value) for value in values)
    assert without_field(tree, AUTHOR) == ALL

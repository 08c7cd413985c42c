"""JSON from strangers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import bounded_json
from common.errors import InvalidInput

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(anything)
def test_what_passes_the_check_can_be_stored(value: Any) -> None:
    """Neither NUL, nor half a surrogate pair, nor a number that JSON lacks comes through."""
    try:
        bounded_json.check(value)
    except InvalidInput:
        return
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    assert "\\u0000" not in text
    text.encode()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text("abc"), st.lists))
def test_what_is_ordinary_passes_unchanged(value: Any) -> None:
    assert bounded_json.parse(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": {"b": ["x", "nul\\u0000"]}}', "a.b.1"),
        ('{"a": {"\\u0000": 1}}', "a"),
        ('{"half": "\\ud800"}', "half"),
        ('{"huge": 1e999}', "huge"),
        (f'{{"whole": 1{"0" * 400}}}', "whole"),
        ('["\\u0000"]', "0"),
    ],
)
def test_the_place_of_a_fault_is_named(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        bounded_json.parse(text)
    assert caught.value.field == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "-Infinity",
        "9" * 5000,
        "[" * 100_000,
        "[" * 34 + "]" * 34,
        "[" + "1," * bounded_json.MAX_VALUES + "1]",
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_json_or_without_bounds_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        bounded_json.parse(text)

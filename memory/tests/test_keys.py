"""Ways to write a key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from memory.fact_keys import MAX_KEY_CHARACTERS, InvalidKey, fact_key


@pytest.mark.parametrize(
    "raw",
    [
        "favouriteColor",
        "FavouriteColor",
        "favourite_color",
        "FAVOURITE_COLOR",
        "Favourite Color",
        "  favourite - color!",
        "__favourite__color__",
        "favourite\u200bColor",
        "ｆavourite　color",
    ],
)
def test_one_key_has_many_spellings(raw: str) -> None:
    assert fact_key(raw) == "favourite_color"


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("Lieblingsstraße", "lieblingsstraße"),
        ("любимыйЦвет", "любимый_цвет"),
        ("お気に入りの色", "お気に入りの色"),
        ("पसंदीदा रंग", "पसंदीदा_रंग"),
        ("HTTPServer2Port", "http_server2_port"),
        ("e\u0301cole", "\u00e9cole"),
        ("wife's name", "wife_s_name"),
        ("2nd address", "2nd_address"),
    ],
)
def test_letters_of_every_script_are_kept(raw: str, key: str) -> None:
    assert fact_key(raw) == key


@pytest.mark.parametrize("raw", ["", " ", "___", "!?", "\u0301", "\u200b", "\x00", "\ud800"])
def test_a_key_of_no_letter_is_refused(raw: str) -> None:
    with pytest.raises(InvalidKey, match="needs a letter or digit"):
        fact_key(raw)


@pytest.mark.parametrize("raw", ["a" * 201, "a " * 101, "a" * 1_000_000, "\ufdfa" * 12])
def test_a_key_that_is_too_long_is_refused_as_invalid_input(raw: str) -> None:
    with pytest.raises(InvalidInput, match="longer than 200") as caught:
        fact_key(raw)
    assert caught.value.field == "key"


def test_the_longest_key_is_taken() -> None:
    assert fact_key("ä" * MAX_KEY_CHARACTERS) == "ä" * MAX_KEY_CHARACTERS


@given(st.text(max_size=300))
def test_a_key_stays_as_it_is_when_it_is_made_a_key_again(raw: str) -> None:
    try:
        key = fact_key(raw)
    except InvalidKey:
        return
    assert fact_key(key) == key
    assert 0 < len(key) <= MAX_KEY_CHARACTERS
    assert not set(key) & set(" \x00\n[]=,|")
    assert key.strip("_") == key
    assert "__" not in key


@given(st.text(alphabet="abzäéжλ019", max_size=40))
def test_the_case_of_a_whole_word_does_not_count(word: str) -> None:
    assert _key_or_none(word.lower()) == _key_or_none(word.upper())


def _key_or_none(raw: str) -> str | None:
    try:
        return fact_key(raw)
    except InvalidKey:
        return None

"""What of a message is searched for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.injection import keywords, words_of
from memory.injection.keywords import MAX_CHARACTERS
from memory.tests.hostile import TEXTS

STOP = frozenset({"when", "did", "to", "the", "what", "is", "s", "don", "t", "of", "my", "who"})


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("When did Caroline go to the support group?", "Caroline go support group?"),
        ("What's the name of Caroline's dog?", "name Caroline's dog?"),
        ("I don't like TO go", "I like go"),
        ("AI or IT, the UK", "AI or IT, UK"),
        ("東京大学はどこですか", "東京大学はどこですか"),
        ("मेरा नाम क्या है", "मेरा नाम क्या है"),
        ("who ? is — ana@example.org !", "ana@example.org"),
    ],
)
def test_stop_words_and_lone_signs_go(message: str, kept: str) -> None:
    assert keywords(message, stop_words=STOP) == kept


@pytest.mark.parametrize("message", ["Who is the?", "👋", "?!", "to the"])
def test_where_nothing_would_be_left_nothing_goes(message: str) -> None:
    assert keywords(f" {message}\n", stop_words=STOP) == message


def test_words_keep_their_marks_and_joiners() -> None:
    assert words_of("हिन्दी, می‌خواهم! Größe_2 (O'Brien)") == {
        *("हिन्दी", "می‌خواهم", "grösse", "2", "o", "brien")
    }


@given(st.lists(TEXTS, max_size=4).map("".join), st.frozensets(TEXTS))
def test_only_pieces_of_the_message_are_searched_for(message: str, stop: frozenset[str]) -> None:
    found = keywords(message, stop_words=stop)
    assert len(found) <= MAX_CHARACTERS
    assert set(found.split()) <= set(message.split())
    assert bool(found) == bool(message.strip())


@given(st.text(st.sampled_from("ab 日`\n"), min_size=MAX_CHARACTERS, max_size=MAX_CHARACTERS + 50))
def test_a_long_message_is_bounded(message: str) -> None:
    assert len(keywords(message)) <= MAX_CHARACTERS


PASTED = "The committee met again and nothing was decided. " * 200


def test_a_pasted_text_is_searched_by_what_stands_around_it() -> None:
    found = keywords(f"Summarise this for Zbigniew: {PASTED}")
    assert found.startswith("Summarise this for Zbigniew: The")
    asked = keywords(f"{PASTED} What would Zbigniew say?")
    assert "What would Zbigniew say?" in asked[: MAX_CHARACTERS // 2]


def test_quoted_code_is_not_what_somebody_asks() -> None:
    code = "```python\n" + "print('hello')\n" * 400 + "```\n"
    assert keywords(f"Why is this slow?\n{code}It ran on my laptop.") == (
        "Why is this slow? It ran on my laptop."
    )
    assert len(keywords(code)) <= MAX_CHARACTERS
    assert "print('hello')" in keywords(code)

"""What of a message is searched for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.injection import MAX_QUESTION_CHARACTERS, question_part
from memory.tests.hostile import TEXTS


@pytest.mark.parametrize(
    "message",
    [
        "When did Caroline go?",
        "AI or IT",
        "東京大学はどこですか",
        "मेरा नाम क्या है",
        "👋",
        "who is it",
    ],
)
def test_an_ordinary_message_stays_as_it_is(message: str) -> None:
    assert question_part(f" {message}\n") == message


@given(st.lists(TEXTS, max_size=4).map("".join), st.integers(1, 300))
def test_only_words_of_the_message_are_searched_for(message: str, times: int) -> None:
    long = f"{message} " * times
    found = question_part(long)
    assert len(found) <= MAX_QUESTION_CHARACTERS
    assert set(found.split()) <= set(long.split())
    assert bool(found) == bool(message.strip())


@given(st.text(st.sampled_from("ab 日`\n"), min_size=1, max_size=50), st.integers(0, 50))
def test_a_long_message_is_bounded(piece: str, more: int) -> None:
    size = MAX_QUESTION_CHARACTERS + more
    message = (piece * size)[:size]
    assert len(question_part(message)) <= MAX_QUESTION_CHARACTERS


PASTED = "The committee met again and nothing was decided. " * 200


def test_a_pasted_text_is_searched_by_what_stands_around_it() -> None:
    found = question_part(f"Summarise this for Zbigniew: {PASTED}")
    assert found.startswith("Summarise this for Zbigniew: The")
    asked = question_part(f"{PASTED} What would Zbigniew say?")
    assert "What would Zbigniew say?" in asked[: MAX_QUESTION_CHARACTERS // 2]


def test_quoted_code_is_not_what_somebody_asks() -> None:
    code = "```python\n" + "print('hello')\n" * 400 + "```\n"
    assert question_part(f"Why is this slow?\n{code}It ran on my laptop.") == (
        "Why is this slow?\n\n\nIt ran on my laptop."
    )
    assert len(question_part(code)) <= MAX_QUESTION_CHARACTERS
    assert "print('hello')" in question_part(code)

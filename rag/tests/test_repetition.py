"""Answers that repeat themselves or do not end are ended; nothing else of them is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answering.repetition import MAX_PERIOD, AnswerBounds

STAFF = "Staff may carry five days over [1]. "
LEAVE = "社員は五日間の有給休暇を来年に繰り越すことができます。"
FORMS = "They fill in the form by December [2]. "


def shown(text: str, *, most: int | None = None, size: int = 3) -> tuple[str, str]:
    """What is shown of a text that comes in pieces of `size` characters, and how it ended."""
    bounds = AnswerBounds(most)
    pieces = [bounds.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return "".join([*pieces, bounds.finish()]), bounds.ended


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (STAFF * 9, STAFF),
        (STAFF + FORMS * 2, STAFF + FORMS),
        ((STAFF + FORMS) * 2 + "The end.", STAFF + FORMS),
        (STAFF + STAFF.replace("[1]", "[3]") + FORMS, STAFF),
        (f"{STAFF.strip()}\n\n" * 3, f"{STAFF.strip()}\n\n"),
        (LEAVE * 3, LEAVE),
    ],
)
def test_an_answer_ends_where_it_repeats_itself(text: str, kept: str, size: int) -> None:
    assert shown(text, size=size) == (kept, "loop")


@pytest.mark.parametrize("size", [1, 7])
def test_an_answer_ends_where_it_repeats_a_phrase(size: int) -> None:
    text, ended = shown(f"{STAFF}You can use family{'-leave-family' * 60}.", size=size)
    assert ended == "loop"
    assert text.startswith(f"{STAFF}You can use family-leave-family")
    assert len(text) < 160


@pytest.mark.parametrize(
    "text",
    [
        STAFF + FORMS,
        "| a | b |\n|---|---|---|---|---|---|---|---|---|---|\n",
        "For leave:\n- Ask your manager first.\nFor travel:\n- Ask your manager first.\n",
        "Yes. Yes. Staff may.",
        "| a | b |\n|---|---|\n| 0 | 0 |\n| 0 | 0 |\n| 0 | 0 |\n",
        "```\n" + "frame.tighten(clamp, force=8)\n" * 4 + "```\n",
        "1. Open the box.\n2. Open the lid.\n3. Open the box.\n",
        "Staff may carry five days over [1]. Staff may carry",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_what_is_no_repetition_is_shown_whole(text: str, size: int) -> None:
    assert shown(text, size=size) == (text, "")


@given(st.text(alphabet="ab .\n[1]`", max_size=200), st.integers(1, 50))
def test_what_is_shown_is_the_beginning_however_it_is_cut(text: str, size: int) -> None:
    whole, ended = shown(text, size=size)
    assert text.startswith(whole)
    assert ended or whole == text
    assert (whole, ended) == shown(text, size=1)


def test_words_are_shown_as_they_come_unless_they_may_repeat() -> None:
    bounds = AnswerBounds(None)
    assert bounds.feed("Staff may ") == "Staff may "
    assert bounds.feed("carry five days over. ") == "carry five days over. "
    assert bounds.feed("Staff may ") == ""
    assert bounds.feed("not sell them") == "Staff may not sell them"


def test_an_answer_has_so_many_tokens_at_most() -> None:
    numbered = "".join(f"Row {number} is about leave. " for number in range(400))
    text, ended = shown(numbered, most=100)
    assert (len(text), ended) == (300, "length")
    assert shown(numbered, most=10_000) == (numbered, "")
    assert shown("é" * 90, most=10)[0] == "é" * 15


def test_longer_cycles_than_are_looked_for_end_by_length() -> None:
    cycle = "".join(f"Sentence {number} of many others. " for number in range(MAX_PERIOD + 1))
    assert shown(cycle * 3)[1] == ""
    assert shown(cycle * 3, most=300)[1] == "length"

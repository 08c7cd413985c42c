"""What is new in a conversation that is sent again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.messages import overlap


@pytest.mark.parametrize(
    ("known", "sent", "expected"),
    [
        ("", "abc", (0, 0)),
        ("abc", "abcde", (3, 3)),
        ("abc", "abc", (3, 3)),
        ("abc", "ab", (3, 2)),  # an older request that comes late
        ("abc", "bc", (3, 2)),
        ("abc", "bcd", (3, 2)),  # the last part of the conversation
        ("cde", "abcdef", (3, 5)),  # known are the last ones only
        ("abc", "d", (3, 0)),  # only what is new
        ("abc", "abx", (2, 2)),  # the user went back and said something else
        ("abc", "abxy", (2, 2)),
        ("a", "aba", (1, 1)),
        ("abab", "ababab", (4, 4)),
    ],
)
def test_what_is_new_is_told_from_what_is_known(
    known: str, sent: str, expected: tuple[int, int]
) -> None:
    assert overlap(list(known), list(sent)) == expected


TURNS = st.lists(st.integers(), unique=True, max_size=12)


@given(TURNS, st.integers(0, 12), st.integers(0, 12))
def test_of_a_conversation_that_grew_all_that_was_added_is_new(
    said: list[int], read: int, cut: int
) -> None:
    talk = [str(number) for number in said]
    known, window = talk[:read], talk[min(cut, read) :]
    kept, start = overlap(known, window)
    assert window[start:] == talk[read:]
    assert kept == len(known)


@given(TURNS, TURNS)
def test_nothing_that_was_not_known_is_passed_over(known: list[int], sent: list[int]) -> None:
    before, now = ([str(number) for number in turns] for turns in (known, sent))
    kept, start = overlap(before, now)
    assert set(now[:start]) <= set(before)
    assert 0 <= kept <= len(before)

"""Markdown in the few lines that a list has room for."""

import pytest

from common.plain_words import END, START, without_signs


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("## Set up\n\nRun `make`.", "Run make."),
        ("First.\n\n## Then\n\nGo on.", "First.\n\nThen: Go on."),
        ("First.\n\n## And then?\nGo on.", "First.\n\nAnd then? Go on."),
        ("First.\n\n## Nothing follows", "First.\nNothing follows"),
        ("## Alone", "Alone"),
        ("Run:\n\n```sh\nmake run\n```\n\nThen look.", "Run:\n\nmake run\n\nThen look."),
        ("- one\n* two", "• one\n• two"),
        ("-1 and a-b", "-1 and a-b"),
    ],
)
def test_what_stands_for_the_look_of_a_text_is_left_out(text: str, words: str) -> None:
    assert without_signs(text) == words


def test_a_first_heading_stays_where_nothing_else_is_highlighted() -> None:
    heading, rest = f"# The {START}move{END}\n\n", "At seven."
    assert without_signs(heading + rest) == f"The {START}move{END}: At seven."
    assert without_signs(f"{heading}The {START}movers{END}.") == f"The {START}movers{END}."


def test_no_highlight_is_torn() -> None:
    torn = f"```{START}sh\nmake{END} run"
    assert without_signs(torn).count(START) == without_signs(torn).count(END) == 1

"""Markdown in the few lines that a list has room for."""

import pytest

from common.text import HIGHLIGHT_END, HIGHLIGHT_START, strip_markdown


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
        (r"2\*3\*4 \| \[x\](y)", "2*3*4 | [x](y)"),
        ("as in [12] and [the log](http://a.b)", "as in [12] and the log"),
    ],
)
def test_what_stands_for_the_look_of_a_text_is_left_out(text: str, words: str) -> None:
    assert strip_markdown(text) == words


def test_a_first_heading_stays_where_nothing_else_is_highlighted() -> None:
    heading, rest = f"# The {HIGHLIGHT_START}move{HIGHLIGHT_END}\n\n", "At seven."
    assert strip_markdown(heading + rest) == f"The {HIGHLIGHT_START}move{HIGHLIGHT_END}: At seven."
    assert (
        strip_markdown(f"{heading}The {HIGHLIGHT_START}movers{HIGHLIGHT_END}.")
        == f"The {HIGHLIGHT_START}movers{HIGHLIGHT_END}."
    )


def test_no_highlight_is_torn() -> None:
    torn = f"```{HIGHLIGHT_START}sh\nmake{HIGHLIGHT_END} run"
    assert (
        strip_markdown(torn).count(HIGHLIGHT_START)
        == strip_markdown(torn).count(HIGHLIGHT_END)
        == 1
    )

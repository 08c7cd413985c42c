"""How a snippet reads on a page."""

import pytest

from search.results import Snippet
from search.templatetags.passages import marked


def show(text: str, *words: str, rendering: str = "plain") -> str:
    spans = tuple((text.index(word), text.index(word) + len(word)) for word in words)
    return marked(Snippet(text, 0, spans), rendering)


def test_everything_is_escaped_and_highlights_are_marked() -> None:
    assert show("<b>aspirin</b> & co", "aspirin") == (
        "&lt;b&gt;<mark>aspirin</mark>&lt;/b&gt; &amp; co"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [Add workers](how-to/add.md) now", "see Add <mark>workers</mark> now"),
        ("[how to](../add-workers.md): more", "how to: more"),
        ("run `workers` *well*", "run <mark>workers</mark> well"),
        ("# Heading\nworkers", "<mark>workers</mark>"),
        ("a 2 * 3 and a-b workers", "a 2 * 3 and a-b <mark>workers</mark>"),
    ],
)
def test_markdown_reads_as_a_sentence(text: str, shown: str) -> None:
    assert show(text, "workers", rendering="markdown") == shown


def test_plain_text_is_left_alone() -> None:
    assert show("a[1] = `x` | y", rendering="plain") == "a[1] = `x` | y"


@pytest.mark.parametrize("rule", ["|---|:-:|", "| - | - |"])
def test_a_table_reads_as_rows_of_cells(rule: str) -> None:
    text = f"| option | workers |\n{rule}\n| a | b |\n\nThen text."
    assert show(text, "workers", rendering="markdown") == (
        "option · <mark>workers</mark>;\na · b;\n\nThen text."
    )


def test_a_piece_of_a_table_reads_on_behind_a_highlight() -> None:
    assert show("workers | 7 |\n| b | 8 |", "workers", rendering="markdown") == (
        "<mark>workers</mark> · 7;\nb · 8"
    )


def test_no_text_can_pretend_to_be_a_highlight() -> None:
    assert "<mark>" not in show("\ue000<script>\ue001")

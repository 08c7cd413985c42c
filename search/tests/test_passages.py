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
        ("run `workers` *well*", "run <mark>workers</mark> well"),
        ("# Heading\nworkers", "Heading\n<mark>workers</mark>"),
        ("a 2 * 3 and a-b workers", "a 2 * 3 and a-b <mark>workers</mark>"),
    ],
)
def test_markdown_reads_as_a_sentence(text: str, shown: str) -> None:
    assert show(text, "workers", rendering="markdown") == shown


def test_plain_text_is_left_alone() -> None:
    assert show("a[1] = `x` | y", rendering="plain") == "a[1] = `x` | y"


def test_a_table_reads_as_cells() -> None:
    text = "| option | workers |\n|---|---|\n| a | b |"
    assert "---" not in show(text, "workers", rendering="markdown")
    assert "option  · " in show(text, "workers", rendering="markdown")

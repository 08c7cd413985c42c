"""Answers as HTML: Markdown, citations, doubts, and nothing that a text could do to a page."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.views.turns import render_answer

SOURCES = {1: "The move", 2: 'A "title" <b>'}
ALLOWED = re.compile(
    r"</?(?:a|blockquote|br|code|del|div|em|h[3-6]|hr|li|mark|ol|p|pre|s|span|strong|table|tbody|td"
    r"|th|thead|tr|ul|b|i|ins|kbd|small|sub|sup|u)(?:\s[^<>]*)?/?>"
)


def at(text: str, part: str) -> tuple[int, int]:
    start = text.index(part)
    return start, start + len(part)


def test_a_citation_is_a_link_to_its_source() -> None:
    html = render_answer("On 14 March [1].", turn=7, sources=SOURCES, citations=[(12, 1)])
    assert '<a class="cite" href="#source-7-1" data-cite="1"' in html
    assert 'aria-label="Source 1: The move">1</a>.' in html


def test_only_what_was_resolved_is_a_citation() -> None:
    text = "`[1]` and x[1] and [1](address) and [9] and [1]."
    html = render_answer(
        text, turn=7, sources=SOURCES, citations=[(text.rindex("[1]"), 1), (40, 9)]
    )
    assert html.count('class="cite"') == 1
    assert "<code>[1]</code>" in html
    assert "[9]" in html


def test_titles_cannot_leave_the_label() -> None:
    html = render_answer("[2]", turn=7, sources=SOURCES, citations=[(0, 2)])
    assert "<b>" not in html
    assert 'aria-label="Source 2: A &quot;title&quot; &lt;b&gt;"' in html


def test_links_and_images_are_words() -> None:
    text = "[out](https://evil.example/?q) ![pixel](https://evil.example/p) <https://a.example>"
    html = render_answer(text, turn=7, sources={})
    assert "href" not in html
    assert "src" not in html
    assert "out (https://evil.example/?q)" in html
    assert "pixel" in html


@pytest.mark.parametrize("address", ["how-to/add.md", "#set-up", "../add.md"])
def test_an_address_within_the_documents_is_left_out(address: str) -> None:
    html = render_answer(f"See [how to]({address}) first.", turn=7, sources={})
    assert "See how to first." in html


@pytest.mark.parametrize(
    "sentence", ["It rains.", "- It rains.", "## It rains.", "1. It rains.", "**It** rains."]
)
def test_a_doubt_is_marked_and_leaves_the_markdown_whole(sentence: str) -> None:
    text = f"Dry.\n\n{sentence}\n\nDry."
    html = render_answer(text, turn=7, sources={}, doubts=[at(text, sentence)])
    bare = render_answer(text, turn=7, sources={})
    assert 'class="doubt"' in html
    assert re.sub(r"</?mark[^>]*>", "", html) == bare


def test_a_doubt_holds_its_citation() -> None:
    text = "It rains [1]."
    html = render_answer(text, turn=7, sources=SOURCES, citations=[(9, 1)], doubts=[(0, 13)])
    assert re.search(r'<mark class="doubt"[^>]*>It rains <a class="cite".*</a>\.</mark>', html)


@given(
    st.text(alphabet="ab <>&\"'`*_[]()!#-1\n\ue000\ue001\ue002/:x", max_size=80),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=3),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3)), max_size=4),
)
def test_whatever_is_written_only_known_elements_come_out(
    text: str, doubts: list[tuple[int, int]], citations: list[tuple[int, int]]
) -> None:
    spans = [(min(doubt), max(doubt)) for doubt in doubts]
    html = render_answer(text, turn=7, sources=SOURCES, citations=citations, doubts=spans)
    assert not re.search("[\ue000-\ue002]", html)
    assert "<" not in ALLOWED.sub("", html)
    assert not re.search(r"<[^>]*\son\w+=|href=\"(?!#source-7-)", html)

"""Answers and their sources as HTML, and nothing that a text could do to a page."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.events import Citation, passage_data
from rag.tests import answering
from rag.views.turns import render_answer, source_views
from reading.location import WORKBOOK

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


def passage(text: str, *, headings: tuple[str, ...] = ()) -> dict[str, Any]:
    where = {"url": "/documents/notes/1/", "page": None, "start": 0, "end": len(text)}
    of = {"title": "The move", "document_key": "move.md", "collection": "office"}
    return {"number": 1, "text": text, "heading_path": list(headings), **of, **where}


def test_a_teaser_is_words_and_a_title_is_said_once() -> None:
    text = "# The move\n\nThe [firm](firm.md) leaves `Mill Street`."
    (source,) = source_views(
        [passage(text, headings=("The move", "When"))],
        [{"number": 1, "start": 12, "end": 20}],
        collections={"office": "Office"},
    )
    assert source["teaser"] == "The firm leaves Mill Street."
    assert source["place"] == "Office · When"
    assert "".join(part["text"] for part in source["parts"]) == text


def test_what_is_not_cited_has_no_teaser() -> None:
    (source,) = source_views([passage("Words.")], [], collections={})
    assert source["teaser"] == ""


def test_a_source_is_where_its_first_quotation_is() -> None:
    text = "| Item | Price |\n| - | - |\n| Desk | 90 |\n| Lamp | 20 |"
    found = replace(
        answering.passage(text, start=40), page=7, media_type=WORKBOOK, heading_path=("Prices",)
    )
    at = 40 + text.index("| Lamp")
    citation = Citation(found, at=0, start=at, end=40 + len(text), quote=text[at - 40 :]).data()
    assert (passage_data(found)["location"], citation["location"]) == ("Prices!A7", "Prices!A8")
    (source,) = source_views([passage_data(found)], [citation], collections={})
    assert source["place"] == "shelf · Prices · Prices!A8"
    (source,) = source_views([passage("Words.") | {"page": 3}], [], collections={})
    assert source["place"] == "office · page 3"  # an answer from before there were locations

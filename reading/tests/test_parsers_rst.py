"""reStructuredText stays as it is; section titles and fields are read from it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import ParsedDocument, ParseError, parse
from reading.parsers.text_formats import rst_headings

GUIDE = """\
.. A comment
   of two lines

.. _start:

=======
 Guide
=======

:Author: Ada
:Version: 1.2
   and more
:lang: de

What it is about.

Part ``one`` and :ref:`two <x>`
================================

Some text that
goes on
=======

::

    Not a title
    ===========

Sub
---

=====  =====
a      b
=====  =====
1      2
=====  =====

Ünder
~~~~~

Part 2
======
"""


def read(text: str, name: str = "docs/getting-started.rst") -> ParsedDocument:
    return parse(text.encode(), name=name)


def test_the_text_is_kept_and_titles_become_headings() -> None:
    document = read(GUIDE)
    assert document.text == GUIDE
    assert (document.media_type, document.rendering) == ("text/x-rst", "plain")
    found = [(heading.level, heading.title) for heading in document.headings]
    assert found == [
        (1, "Guide"),
        (2, "Part one and two"),
        (3, "Sub"),
        (4, "Ünder"),
        (2, "Part 2"),
    ]
    starts = [GUIDE[heading.offset :].split("\n", maxsplit=1)[0] for heading in document.headings]
    assert starts == ["=======", "Part ``one`` and :ref:`two <x>`", "Sub", "Ünder", "Part 2"]


def test_fields_at_the_top_are_metadata() -> None:
    document = read(GUIDE)
    assert document.metadata == {"author": "Ada", "version": "1.2 and more", "lang": "de"}
    assert document.language == "de"
    assert read("Text.\n\n:Author: Ada\n").metadata == {}


def test_the_title_is_given_or_the_first_or_the_name() -> None:
    assert read(GUIDE).title == "Guide"
    assert read(".. title:: The Book\n\nText.").title == "The Book"
    assert read("Only text.").title == "Getting started"


def test_directives_read_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP SECRET")
    text = (
        f".. include:: {secret}\n\n.. literalinclude:: {secret}\n\n"
        f".. raw:: html\n   :file: {secret}\n\n.. csv-table::\n   :file: {secret}\n"
    )
    assert read(text).text == text


@pytest.mark.parametrize(
    ("title", "plain"),
    [
        ("**Bold** and *thin*", "Bold and thin"),
        ("`Python <https://python.org>`__", "Python"),
        (":mod:`json` — JSON", "json — JSON"),
        ("The |name| thing", "The name thing"),
        (r"A \* star", "A * star"),
    ],
)
def test_titles_lose_their_marks(title: str, plain: str) -> None:
    (heading,) = rst_headings(f"{title}\n{'=' * 60}\n")
    assert heading.title == plain


@pytest.mark.parametrize(
    "text",
    ["-----\n", "a\n\n====\n", "text\nmore\n====\n", "  indented\n==========\n", "A title\n==\n",
     "====\n====\n", "...\n"],
)  # fmt: skip
def test_what_only_looks_like_a_title_is_none(text: str) -> None:
    assert rst_headings(text) == ()


def test_an_underline_may_be_a_little_short_as_writers_forget() -> None:
    assert [heading.title for heading in rst_headings("A longer title\n=========\n")] == [
        "A longer title"
    ]


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(ParseError, match="no text") as caught:
        read("\ufeff\n  \n")
    assert caught.value.code == "empty"


_LINES = st.sampled_from(
    ["Title", "=====", "-----", "~", "", "", "   text", ".. note:: x", ":a: b", "* item", "`x <y",
     "==", "été", "::", "|a|", "\t"]
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(lines=st.lists(_LINES, max_size=30))
def test_headings_point_at_their_lines_in_any_text(lines: list[str]) -> None:
    text = "\n".join(lines)
    headings = rst_headings(text)
    assert [heading.offset for heading in headings] == sorted({h.offset for h in headings})
    for heading in headings:
        assert heading.offset == 0 or text[heading.offset - 1] == "\n"
        shown = text[heading.offset :].split("\n")[:2]
        assert any(heading.title.split()[0] in line for line in shown) or not heading.title

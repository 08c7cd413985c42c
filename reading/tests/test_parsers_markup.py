"""Markdown, reStructuredText, RTF and subtitles: headings, and noise; see also `cases`."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import Heading, ParseError, parse
from reading.parsers.text_formats import MAX_LINES, markdown_blocks, markdown_headings, rst_headings
from reading.tests.factories_chunkers import random_texts


def test_headings_of_both_kinds_have_levels_titles_and_offsets() -> None:
    text = (
        "# One *two* `x` [link](http://a.b) #\n\nSetext\nof two lines\n---\n\n"
        "###Not one\n### Three\n"
    )
    assert markdown_headings(text) == (
        Heading(text.index("# One"), 1, "One two x link"),
        Heading(text.index("Setext"), 2, "Setext of two lines"),
        Heading(text.index("### Three"), 3, "Three"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "```\n# code\n```",
        "    # code",
        "> # quoted",
        "- # in a list",
        "<div>\n# html\n</div>",
        "\\# no",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert markdown_headings(text) == ()


@given(text=random_texts(markup=True))
@settings(deadline=None)
def test_heading_offsets_are_line_starts_in_order(text: str) -> None:
    offsets = [heading.offset for heading in markdown_headings(text)]
    assert offsets == sorted(set(offsets))
    assert all(offset == 0 or text[offset - 1] == "\n" for offset in offsets)


def test_structure_is_not_read_from_a_mass_of_lines() -> None:
    assert markdown_blocks("# h\n" * (MAX_LINES + 1)) == []


def test_directives_read_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP SECRET")
    text = (
        f".. include:: {secret}\n\n.. literalinclude:: {secret}\n\n"
        f".. raw:: html\n   :file: {secret}\n\n.. csv-table::\n   :file: {secret}\n"
    )
    assert parse(text.encode(), name="a.rst").text == text


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


RTF = (
    rb"\u8364 ",
    rb"\'81",
    b"{",
    b"}",
    rb"\cell",
    rb"\row",
    rb"\intbl",
    rb"\par",
    rb"\ilvl9 ",
    b"x",
)
RTF += (
    b"x",
    rb"\trowd",
    rb"\clvmrg",
    rb"\cellx1 ",
    rb"{\listtext ",
    rb"{\footnote ",
    rb"\s1 ",
    b"\\",
)
CUES = (b"00:01.000 --> 00:02.000\n", b"\n", b"<v A>\n", b"x.\n", b"--> \n", b"{\\\n", b"7\n")


@settings(max_examples=60, deadline=None)
@given(noise=st.lists(st.sampled_from(RTF)).map(b"".join))
def test_any_rtf_is_read_or_refused(noise: bytes) -> None:
    head = rb"{\rtf1\ansi\deff0{\fonttbl{\f0\fcharset0 A;}}{\stylesheet{\s1\outlinelevel0 Kop;}}"
    with suppress(ParseError):
        parse(head + noise + b"}", name="rules.rtf")


@settings(max_examples=60, deadline=None)
@given(noise=st.lists(st.sampled_from(CUES)).map(b"".join))
def test_any_subtitles_begin_with_a_time_or_are_refused(noise: bytes) -> None:
    with suppress(ParseError):
        assert parse(noise, name="talk.srt").text.startswith("[00:0")

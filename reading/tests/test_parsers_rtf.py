"""RTF as word processors write it, and as nobody should."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.parsers import ParsedDocument, ParseError, parse

HEAD = rb"""{\rtf1\ansi\ansicpg1252\deff0
{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}}
{\colortbl;\red0;}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 Kop;}{\*\cs10 Default;}{\s2 heading 2;}}
{\info{\title Travel rules}{\author Ada}{\creatim\yr2024}}{\header Page 1}"""


def read(body: bytes, head: bytes = HEAD) -> ParsedDocument:
    return parse(head + body + b"}", name="rules.rtf")


def text_of(body: bytes) -> str:
    return read(body).text.strip()


def test_styles_with_an_outline_level_are_headings() -> None:
    document = read(rb"\pard\s1 Rules\par\pard\s2 Who\par\pard Everybody.\par")
    assert document.text == "# Rules\n\n## Who\n\nEverybody.\n"
    assert [heading.title for heading in document.headings] == ["Rules", "Who"]
    assert (document.title, document.media_type) == ("Travel rules", "application/rtf")
    assert document.metadata == {"title": "Travel rules", "author": "Ada"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb"Z\'fcrich \u8364 ?5 \u-10179 ?\u-8704 ?", "Zürich €5 😀"),
        (rb"{\uc2\u8364 \'80\'80x}{\uc0\u8364 y}", "€x€y"),
        (rb"{\f1\'cf\'f0\'e8} \'e9", "При é"),
        (rb"a\~b\_c\-d\{\}\\ \ldblquote x\rdblquote", "a b\u2011cd{}\\ “x”"),
        (rb"seen {\v hidden}{\deleted gone}{\pict 00\bin3 }}}}\v not\v0 again", "seen again"),
        (rb"a{\*\x y}b", "ab"),
        (rb"{\field{\*\fldinst HYPERLINK x}{\fldrslt the site}}", "the site"),
        (rb"A.{\footnote\pard Since 2023.} B.\par C.", "A. B.\n\nSince 2023.\n\nC."),
    ],
)  # fmt: skip
def test_characters_are_those_that_a_reader_sees(body: bytes, text: str) -> None:
    assert text_of(body) == text


def test_lists_and_tables_stay_lists_and_tables() -> None:
    assert text_of(
        rb"{\listtext\'95\tab}\pard\ls1 first\par{\listtext 2.\tab}\pard\ls1 second\par"
        rb"{\listtext -\tab}\pard\ls1\ilvl1 inner\par\pard after"
    ) == "- first\n2. second\n   - inner\n\nafter"  # fmt: skip
    row = rb"\trowd\cellx1\cellx2\pard\intbl %b\cell %b\cell\row"
    merged = rb"\trowd\clvmrg\cellx1\cellx2\pard\intbl\cell 90\cell\row"
    table = row % (b"City", b"Limit") + row % (b"Rome", b"120") + merged
    assert text_of(table + rb"\pard end") == (
        "| City | Limit |\n| - | - |\n| Rome | 120 |\n| Rome | 90 |\n\nend"
    )


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (rb"{\rtf1 cut off", "truncated"),
        (rb"{\rtf1\bin9999999999 x}", "truncated"),
        (rb"{\rtf1 " + b"{" * 5000, "malformed"),
        (rb"{\rtf1 {\pict 00ff}}", "no_text"),
        (b"a note", "wrong_type"),
    ],
)
def test_a_broken_file_is_refused_by_name(data: bytes, code: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(data, name="rules.rtf")
    assert caught.value.code == code


def test_brackets_forgotten_at_the_end_cost_nothing() -> None:
    data = HEAD + rb"{shown\par}{\pict\bin2 }}}"  # of which two are bytes of the picture
    assert parse(data, name="a.rtf").text == "shown\n"


def test_pictures_may_be_bytes() -> None:
    assert text_of(rb"{\pict\bin400 " + b"\0\1\2\3" * 100 + b"}seen") == "seen"


WORDS = [
    rb"\u8364 ",
    rb"\'81",
    "{",
    "}",
    rb"\cell",
    rb"\row",
    rb"\intbl",
    rb"\par",
    rb"\ilvl9 ",
    "x",
]
WORDS += [rb"\trowd", rb"\clvmrg", rb"\cellx1 ", rb"{\listtext ", rb"{\footnote ", rb"\s1 ", "\\"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([w if isinstance(w, bytes) else w.encode() for w in WORDS])))
def test_nothing_but_a_parse_error_is_raised(parts: list[bytes]) -> None:
    try:
        read(b"".join(parts))
    except ParseError:
        return

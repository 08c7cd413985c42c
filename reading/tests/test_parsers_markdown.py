"""Markdown stays as it is; headings and front matter are read from it."""

import json

import pytest
from hypothesis import given, settings

from reading.parsers import Heading, ParsedDocument, ParseError, parse
from reading.parsers.text_formats import MAX_LINES, markdown_blocks, markdown_headings
from reading.tests.factories_chunkers import random_texts


def markdown(text: str, *, name: str = "some-notes.md") -> ParsedDocument:
    return parse(text.encode(), name=name)


def test_the_source_is_the_text() -> None:
    source = "# One *two*\n\nText with `code`.\n"
    document = markdown(source)
    assert document.text == source
    assert document.rendering == "markdown"
    assert document.media_type == "text/markdown"


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


def test_front_matter_becomes_metadata_and_leaves_the_text() -> None:
    document = markdown(
        "---\ntitle: Guide\ndate: 2024-02-03\ntags: [a, b]\nlang: de-AT\n---\n# Other\n"
    )
    assert document.text == "# Other\n"
    assert document.title == "Guide"
    assert document.language == "de"
    assert document.metadata["date"] == "2024-02-03"
    assert document.metadata["tags"] == ["a", "b"]
    assert document.headings == (Heading(0, 1, "Other"),)


@pytest.mark.parametrize(
    "start",
    [
        "---\ntitle: [broken\n---\n",
        "---\njust words\n---\n",
        "---\nnever closed\n",
        "---\n!!python/object:os.system x\n---\n",
    ],
)
def test_broken_front_matter_is_text(start: str) -> None:
    document = markdown(f"{start}Body.\n")
    assert document.text == f"{start}Body.\n"
    assert document.metadata == {}


def test_front_matter_that_multiplies_itself_is_text() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    bomb = "---\n" + "\n".join(lines) + "\n---\nBody.\n"
    assert markdown(bomb).text == bomb


def test_metadata_is_safe_for_json() -> None:
    metadata = markdown(
        '---\na: .nan\nb: !!binary aGk=\n1: "\\0x"\nc: !!set {d}\n---\nText.'
    ).metadata
    assert json.loads(json.dumps(metadata, allow_nan=False)) == metadata
    assert metadata["a"] is None
    assert metadata["1"] == "x"


@pytest.mark.parametrize(
    ("text", "title"),
    [("## Two\n# One\n", "One"), ("## Two\n", "Some notes"), ("plain", "Some notes")],
)
def test_the_title_is_the_first_top_heading_else_the_file_name(text: str, title: str) -> None:
    assert markdown(text).title == title


def test_front_matter_alone_is_empty() -> None:
    with pytest.raises(ParseError, match="no text") as caught:
        markdown("---\ntitle: x\n---\n")
    assert caught.value.code == "empty"


def test_structure_is_not_read_from_a_mass_of_lines() -> None:
    assert markdown_blocks("# h\n" * (MAX_LINES + 1)) == []


def test_comments_on_lines_of_their_own_are_not_text() -> None:
    text = (
        "# A\n\n<!-- status: 1 -->\nSaid <!-- within --> here.\n\n<!-- two\n\nlines -->\n\n"
        "```\n<!-- shown -->\n```\n\n<!-- and --> said\n"
    )
    parsed = parse(text.encode(), name="a.md")
    assert parsed.text == (
        "# A\n\nSaid <!-- within --> here.\n\n\n```\n<!-- shown -->\n```\n\n<!-- and --> said\n"
    )
    assert [heading.offset for heading in parsed.headings] == [0]


def test_a_file_of_comments_alone_has_no_text() -> None:
    with pytest.raises(ParseError):
        parse(b"<!-- nothing -->\n", name="a.md")

"""The Markdown chunker: sections, code and tables stay whole where they can."""

import pytest

from reading.chunkers import get_chunker
from reading.chunkers.base import Span
from reading.parsers import ParsedDocument
from reading.tests.factories_chunkers import marked, minilm, texts

COUNTER = minilm()
PROSE = "Ten plain words make up this short sentence about things. " * 3
CODE = "```py\n" + "".join(f"value_{n} = {n}\n\n" for n in range(5)) + "```"
TABLE = "| name | dose |\n|---|---|\n" + "\n".join(f"| drug {n} | {n} mg |" for n in range(6))


def split(document: ParsedDocument, max_tokens: int, overlap: int = 0) -> list[Span]:
    chunker = get_chunker("markdown", counter=COUNTER, max_tokens=max_tokens, overlap=overlap)
    return chunker.split(document)


def cut(text: str, max_tokens: int, overlap: int = 0) -> list[str]:
    document = marked(text)
    return texts(document, split(document, max_tokens, overlap))


def test_sections_begin_their_chunk_and_give_its_heading_path() -> None:
    document = marked(f"# Guide\n\n{PROSE}\n\n## One\n\n{PROSE}\n\n## Two\n\n{PROSE}")
    spans = split(document, 50, overlap=20)
    assert [text.split("\n")[0] for text in texts(document, spans)] == [
        "# Guide",
        "## One",
        "## Two",
    ]
    assert [span.heading_path for span in spans] == [("Guide",), ("Guide", "One"), ("Guide", "Two")]


def test_small_sections_share_a_chunk() -> None:
    text = "\n\n".join(f"## Part {number}\n\nA line." for number in range(4))
    assert len(cut(text, 100)) == 1


@pytest.mark.parametrize(
    "block", [CODE, TABLE, f"    {CODE[6:-3].replace(chr(10), chr(10) + '    ')}"]
)
@pytest.mark.parametrize("filler", range(0, 30, 3))
def test_code_and_tables_that_fit_are_never_cut(block: str, filler: int) -> None:
    words = "filler " * filler
    text = f"{PROSE}\n\n{words}\n\n{block.rstrip()}\n\n{PROSE}"
    budget = COUNTER.count(block) + 5
    chunks = cut(text, budget, overlap=budget // 3)
    assert any(block.strip() in chunk for chunk in chunks)


def test_code_that_does_not_fit_is_cut_between_lines() -> None:
    lines = [f"print('some text', value_{n}.attribute)" for n in range(40)]
    chunks = cut("```\n" + "\n".join(lines) + "\n```", 60)
    shown = [line for chunk in chunks for line in chunk.split("\n")]
    assert len(chunks) > 5
    assert shown == ["```", *lines, "```"]


def test_a_table_that_does_not_fit_is_cut_between_rows() -> None:
    rows = [f"| Row {n}. It has. Sentences. | {n} |" for n in range(40)]
    chunks = cut("| a | b |\n|---|---|\n" + "\n".join(rows), 60)
    assert [line for chunk in chunks for line in chunk.split("\n")][2:] == rows


@pytest.mark.parametrize("heading", ["## Head", "Head\n----", "### **Head** of `it`"])
@pytest.mark.parametrize("filler", range(60))
def test_a_heading_never_ends_a_chunk_nor_fills_one(heading: str, filler: int) -> None:
    words, more = "filler " * filler, "more " * 100
    for chunk in cut(f"{words}\n\n# Top\n\n{heading}\n\n{more}\n\n{heading}\n\n{more}", 60, 20):
        assert not chunk.endswith(heading)
        assert not chunk.endswith("# Top")


def test_the_last_heading_without_text_stays_with_the_text_before_it() -> None:
    chunks = cut("word " * 66 + "\n\n# Appendix\n\n## See also", 66)
    assert len(chunks) == 2
    assert chunks[1].startswith("word word")


@pytest.mark.parametrize(
    "block", [CODE, TABLE, f"| a | b |\n|---|---|\n| one row | {'of words ' * 40} |"]
)
@pytest.mark.parametrize("room", range(12))
@pytest.mark.parametrize("behind", ["", f"\n\n{PROSE}"])
def test_code_or_a_table_is_torn_rather_than_its_heading_left_alone(
    block: str, room: int, behind: str
) -> None:
    head = "## Head of what follows"
    chunks = cut(f"{PROSE}\n\n{head}\n\n{block}{behind}", COUNTER.count(block) + room)
    (whole,) = [chunk for chunk in chunks if head in chunk]
    assert whole.startswith(head)
    assert len(whole) > len(head) + 20
    assert len(chunks[-1]) > 20, "a crumb at the end"


def test_overlap_never_reaches_over_a_heading_nor_into_a_code_block() -> None:
    text = f"{PROSE}\n\n# Head\n\n{PROSE}\n\n{CODE}\n\n{PROSE}\n\n{PROSE}"
    document = marked(text)
    for span in split(document, 70, overlap=40)[1:]:
        chunk = text[span.start : span.end]
        assert "# Head" not in chunk or chunk.startswith("# Head")
        assert not text[: span.start].count("```") % 2


def test_list_items_are_kept_together() -> None:
    items = [f"- item {n} which has some words to say" for n in range(12)]
    chunks = cut("\n".join(items), 40)
    assert "\n".join(chunks).split("\n") == items


def test_a_rendered_page_is_cut_as_markdown_by_auto() -> None:
    document = marked(f"{PROSE}\n\n{CODE}")
    auto = get_chunker("auto", counter=COUNTER, max_tokens=60, overlap=10)
    assert auto.split(document) == split(document, 60, 10)
    plain = ParsedDocument(text=document.text, media_type="text/plain", title="T")
    recursive = get_chunker("recursive", counter=COUNTER, max_tokens=60, overlap=10)
    assert auto.split(plain) == recursive.split(plain)

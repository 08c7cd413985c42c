"""Chunkers of Markdown and source code: sections, blocks, tables and functions stay whole where
they can."""

import pytest

from reading.chunkers import get_chunker
from reading.chunkers.base import Span
from reading.parsers import ParsedDocument, parse
from reading.tests.factories_chunkers import marked, minilm, plain, texts

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


IMPORTS = "import os\nimport sys\n"


def function(name: str, lines: int, *, indent: str = "") -> str:
    parameter = "self" if indent else "path"
    body = "".join(f"{indent}    value_{n} = compute({n})\n" for n in range(lines))
    return f"{indent}def {name}({parameter}):\n{body}{indent}    return value_0\n"


def python(text: str) -> ParsedDocument:
    return parse(text.encode(), name="module.py")


def split_code(document: ParsedDocument, max_tokens: int, overlap: int = 0) -> list[Span]:
    chunker = get_chunker("code", counter=COUNTER, max_tokens=max_tokens, overlap=overlap)
    return chunker.split(document)


@pytest.mark.parametrize("filler", range(0, 12, 2))
@pytest.mark.parametrize("overlap", [0, 40])
def test_a_function_that_fits_is_never_cut(filler: int, overlap: int) -> None:
    functions = [function(name, 9) for name in ("first", "second", "third")]
    document = python(IMPORTS + "X = 1\n" * filler + "\n\n" + "\n\n".join(functions))
    budget = max(map(COUNTER.count, functions)) + 10
    chunks = texts(document, split_code(document, budget, overlap))
    for whole in functions:
        assert any(whole.strip() in chunk for chunk in chunks)


def test_small_functions_share_a_chunk_and_a_great_one_begins_its_own() -> None:
    small = [function(name, 1) for name in ("one", "two")]
    document = python("\n\n".join([*small, function("three", 12)]))
    chunks = texts(document, split_code(document, COUNTER.count(function("three", 12)) + 5))
    assert [chunk.split("(")[0] for chunk in chunks] == ["def one", "def three"]
    assert "def two" in chunks[0]


def test_a_class_that_does_not_fit_is_cut_between_its_methods() -> None:
    methods = [function(name, 6, indent="    ") for name in ("read", "write", "close")]
    document = python("class Store:\n" + "\n".join(methods))
    spans = split_code(document, COUNTER.count(methods[1]) + 20)
    for method in methods:
        assert any(method.strip() in chunk for chunk in texts(document, spans))
    assert spans[-1].heading_path == ("Store", "close")


def test_the_head_of_a_class_stays_with_its_first_method() -> None:
    methods = [function(name, 6, indent="    ") for name in ("read", "write", "close")]
    for lines in range(1, 8):
        before = function("before", lines)
        document = python(f'{before}\n\nclass Store:\n    """Keeps."""\n\n' + "\n".join(methods))
        chunks = texts(document, split_code(document, COUNTER.count(methods[0]) + 20))
        (head,) = [chunk for chunk in chunks if "class Store" in chunk]
        assert head.startswith("class Store")
        assert "def read" in head


def test_decorators_and_comments_stay_with_what_they_speak_of() -> None:
    second = f"# What it is for.\n@cached\n{function('second', 9)}"
    document = python(function("first", 9) + "\n\n" + second)
    chunks = texts(document, split_code(document, COUNTER.count(second) + 4))
    assert chunks[-1] == second.strip()


def test_a_function_that_does_not_fit_is_cut_between_lines() -> None:
    text = function("long", 60)
    document = python(text)
    chunks = texts(document, split_code(document, 50))
    assert len(chunks) > 5
    shown = [line.strip() for chunk in chunks for line in chunk.split("\n")]
    assert shown == [line.strip() for line in text.strip().split("\n")]


def test_source_code_is_cut_as_such_by_auto() -> None:
    document = python("\n\n".join(function(name, 9) for name in ("first", "second")))
    auto = get_chunker("auto", counter=COUNTER, max_tokens=60, overlap=10)
    assert auto.split(document) == split_code(document, 60, 10)


def test_what_is_no_source_code_is_cut_between_lines_too() -> None:
    lines = [f"{n} and some words. They go on" for n in range(40)]
    document = plain("\n".join(lines))
    assert [
        line for chunk in texts(document, split_code(document, 40)) for line in chunk.split("\n")
    ] == lines

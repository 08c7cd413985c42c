"""The code chunker: classes and functions stay whole where they fit."""

import pytest

from reading.chunkers import get_chunker
from reading.chunkers.base import Span
from reading.parsers import ParsedDocument, parse
from reading.tests.factories_chunkers import minilm, plain, texts

COUNTER = minilm()
IMPORTS = "import os\nimport sys\n"


def function(name: str, lines: int, *, indent: str = "") -> str:
    parameter = "self" if indent else "path"
    body = "".join(f"{indent}    value_{n} = compute({n})\n" for n in range(lines))
    return f"{indent}def {name}({parameter}):\n{body}{indent}    return value_0\n"


def python(text: str) -> ParsedDocument:
    return parse(text.encode(), name="module.py")


def split(document: ParsedDocument, max_tokens: int, overlap: int = 0) -> list[Span]:
    chunker = get_chunker("code", counter=COUNTER, max_tokens=max_tokens, overlap=overlap)
    return chunker.split(document)


@pytest.mark.parametrize("filler", range(0, 12, 2))
@pytest.mark.parametrize("overlap", [0, 40])
def test_a_function_that_fits_is_never_cut(filler: int, overlap: int) -> None:
    functions = [function(name, 9) for name in ("first", "second", "third")]
    document = python(IMPORTS + "X = 1\n" * filler + "\n\n" + "\n\n".join(functions))
    budget = max(map(COUNTER.count, functions)) + 10
    chunks = texts(document, split(document, budget, overlap))
    for whole in functions:
        assert any(whole.strip() in chunk for chunk in chunks)


def test_small_functions_share_a_chunk_and_a_great_one_begins_its_own() -> None:
    small = [function(name, 1) for name in ("one", "two")]
    document = python("\n\n".join([*small, function("three", 12)]))
    chunks = texts(document, split(document, COUNTER.count(function("three", 12)) + 5))
    assert [chunk.split("(")[0] for chunk in chunks] == ["def one", "def three"]
    assert "def two" in chunks[0]


def test_a_class_that_does_not_fit_is_cut_between_its_methods() -> None:
    methods = [function(name, 6, indent="    ") for name in ("read", "write", "close")]
    document = python("class Store:\n" + "\n".join(methods))
    spans = split(document, COUNTER.count(methods[1]) + 20)
    for method in methods:
        assert any(method.strip() in chunk for chunk in texts(document, spans))
    assert spans[-1].heading_path == ("Store", "close")


def test_the_head_of_a_class_stays_with_its_first_method() -> None:
    methods = [function(name, 6, indent="    ") for name in ("read", "write", "close")]
    for lines in range(1, 8):
        before = function("before", lines)
        document = python(f'{before}\n\nclass Store:\n    """Keeps."""\n\n' + "\n".join(methods))
        chunks = texts(document, split(document, COUNTER.count(methods[0]) + 20))
        (head,) = [chunk for chunk in chunks if "class Store" in chunk]
        assert head.startswith("class Store")
        assert "def read" in head


def test_decorators_and_comments_stay_with_what_they_speak_of() -> None:
    second = f"# What it is for.\n@cached\n{function('second', 9)}"
    document = python(function("first", 9) + "\n\n" + second)
    chunks = texts(document, split(document, COUNTER.count(second) + 4))
    assert chunks[-1] == second.strip()


def test_a_function_that_does_not_fit_is_cut_between_lines() -> None:
    text = function("long", 60)
    document = python(text)
    chunks = texts(document, split(document, 50))
    assert len(chunks) > 5
    shown = [line.strip() for chunk in chunks for line in chunk.split("\n")]
    assert shown == [line.strip() for line in text.strip().split("\n")]


def test_source_code_is_cut_as_such_by_auto() -> None:
    document = python("\n\n".join(function(name, 9) for name in ("first", "second")))
    auto = get_chunker("auto", counter=COUNTER, max_tokens=60, overlap=10)
    assert auto.split(document) == split(document, 60, 10)


def test_what_is_no_source_code_is_cut_between_lines_too() -> None:
    lines = [f"{n} and some words. They go on" for n in range(40)]
    document = plain("\n".join(lines))
    assert [
        line for chunk in texts(document, split(document, 40)) for line in chunk.split("\n")
    ] == lines

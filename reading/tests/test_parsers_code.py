"""Source code stays as it is; classes, functions and tables are the headings of its chunks."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.code_languages import GRAMMARS, LANGUAGES, LINE_PATTERNS, language_of_file_name
from reading.parsers import FORMATS, ParsedDocument, ParseError, parse
from reading.parsers.code import CodeBlock, code_blocks, parse_code
from reading.parsers.sql_statements import split_statements

PYTHON = Path(__file__).with_name("cases").joinpath("code", "orders.PY").read_text()


def read(text: str, name: str) -> ParsedDocument:
    return parse(text.encode(), name=name)


def names(text: str, language: str) -> list[str]:
    """Blocks as `name`, with a dot before it for each level below the first."""
    return ["." * (block.level - 1) + block.name for block in code_blocks(text, language)]


def test_a_block_has_its_comments_and_decorators() -> None:
    order, price, line, text, load = code_blocks(PYTHON, "python")
    assert [block.kind for block in (order, price, line, text, load)] == [
        "class", "function", "class", "function", "function",
    ]  # fmt: skip
    assert PYTHON[order.start :].startswith("# What people buy.\n@dataclass\nclass Order")
    assert PYTHON[: order.end].endswith("def text(self): ...")
    assert PYTHON[price.start : price.end].startswith("    # Cents.\n    @property\n")
    assert PYTHON[price.start : price.end].endswith("return inner")
    assert PYTHON[load.start : load.end] == "async def load(): return 2"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.py", "text/x-python"),
        ("a.JSX", "text/x-javascript"),
        ("app/Dockerfile", "text/x-dockerfile"),
        ("C:\\src\\Makefile", "text/x-makefile"),
        ("settings.toml", "text/x-toml"),
        ("values.yml", "text/x-yaml"),
        ("app.ini", "text/x-ini"),
        ("app.log", "text/plain"),
        ("letter.tex", "text/plain"),
    ],
)
def test_files_are_known_by_their_names(name: str, media_type: str) -> None:
    assert read("x = 1", name).media_type == media_type


def test_every_language_has_a_parser_and_no_grammar_is_left_over() -> None:
    media_types = {media_type for entry in FORMATS for media_type in entry.media_types}
    assert {language.media_type for language in LANGUAGES} <= media_types
    assert GRAMMARS.keys() | LINE_PATTERNS.keys() <= {language.name for language in LANGUAGES}
    assert language_of_file_name("Dockerfile") in LANGUAGES


def test_code_with_errors_gives_what_can_be_made_out() -> None:
    assert "good" in names("def good():\n    return 1\n\nclass (:\n  ???\n", "python")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(ParseError, match="no text"):
        read("\ufeff\n \n", "a.py")


def test_the_data_of_a_dump_is_no_statement() -> None:
    dump = (
        "COPY t (a) FROM stdin;\nit's; (here\nCREATE TABLE no (a int);\n\\.\nCREATE TABLE yes (a);"
    )
    assert [entry.name for entry in split_statements(dump) if entry.kind] == ["yes"]


_PIECES = st.sampled_from(
    ["class A", "def f(x):", "function f()", " {", "}", "(", ")", "\n", "\n    ", "# note\n",
     "/* x", "*/", '"', "'", "`", "ü", "👩‍👩‍👧", "end\n", ";", "@dec\n", "impl S ", "return 1",
     "CREATE TABLE t (a int)", "$$", "--", "[x]", "key: v", "template <T>", "=> ", "export "]
)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(
    text=st.lists(_PIECES, max_size=30).map("".join),
    language=st.sampled_from([language.name for language in LANGUAGES]),
)
def test_blocks_of_any_text_nest_and_lie_within_it(text: str, language: str) -> None:
    around: list[CodeBlock] = []
    previous = -1
    for block in code_blocks(text, language):
        assert previous < block.start < block.end <= len(text)
        previous = block.start
        while around and around[-1].end <= block.start:
            around.pop()
        assert block.level == len(around) + 1
        assert not around or block.end <= around[-1].end
        assert text[block.start : block.end].strip()
        around.append(block)


@settings(deadline=None, max_examples=100)
@given(
    text=st.lists(_PIECES, min_size=1, max_size=30).map("".join),
    name=st.sampled_from(["a.py", "a.ts", "a.rs", "a.cpp", "a.sql", "a.rb", "a.yaml", "Makefile"]),
)
def test_headings_of_any_code_are_in_order_and_named(text: str, name: str) -> None:
    document = read(f"x{text}", name)
    offsets = [heading.offset for heading in document.headings]
    assert offsets == sorted(offsets)
    assert all(heading.level >= 1 for heading in document.headings)


def test_a_name_of_no_language_is_refused() -> None:
    with pytest.raises(ParseError, match="not have the suffix of a programming language") as caught:
        parse_code(b"x = 1", name="a.unheard-of")
    assert caught.value.code == "unsupported"

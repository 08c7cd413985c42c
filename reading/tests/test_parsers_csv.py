"""Tables as people export them; every part of a long one knows its column names."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.chunkers import get_chunker
from reading.parsers import Limits, ParsedDocument, ParseError, parse
from reading.parsers.csv import parse_csv
from reading.parsers.table_writer import BLOCK_CHARACTERS, table_blocks
from reading.tests.factories_chunkers import minilm


def read(text: str, name: str = "sales.csv") -> ParsedDocument:
    return parse(text.encode(), name=name)


def test_encodings_are_those_of_any_text() -> None:
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        document = parse("naïve,größe\n1,2\n".encode(encoding), name="a.csv")
        assert document.text.startswith("| naïve | größe |")


def test_every_chunk_of_a_long_table_names_its_columns() -> None:
    rows = "".join(f"{n},Customer {n},2024-03-{n % 28 + 1:02},{n * 3.7:.2f}\n" for n in range(400))
    document = read(f"id,customer,day,revenue\n{rows}")
    chunker = get_chunker("auto", counter=minilm(), max_tokens=200, overlap=0)
    chunks = [document.text[span.start : span.end] for span in chunker.split(document)]
    assert len(chunks) > 20
    assert all("| id | customer | day | revenue |" in chunk for chunk in chunks)


@pytest.mark.parametrize("data", [b",,\n,,\n", b'""\n', b"\n\n"])
def test_a_table_without_values_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        parse_csv(data, name="a.csv")
    assert caught.value.code in {"empty", "no_text"}


def test_a_table_that_grows_beyond_all_bounds_is_refused() -> None:
    names = ",".join(f"a rather long column name {n}" for n in range(100))
    data = "\n".join([names, *[",".join("1" * 100)] * 200]).encode()
    with pytest.raises(ParseError, match="Split it") as caught:
        parse_csv(data, name="a.csv", limits=Limits(max_characters=20_000))
    assert caught.value.code == "too_large"


_CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30) | st.sampled_from(
    ["a\nb", 'say "hi"', "x|y", "1,5", ";", "\t", "# no heading", "```", "- item", "2024-01-01"]
)


@settings(deadline=None, max_examples=200)
@given(
    rows=st.lists(st.lists(_CELLS, min_size=1, max_size=6), min_size=1, max_size=20),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_no_value_of_any_table_is_lost(rows: list[list[str]], delimiter: str, quoting: int) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, quoting=quoting).writerows(rows)
    declared = f"sep={delimiter}\n{buffer.getvalue()}"
    if not any(cell.strip() for row in rows for cell in row):
        with pytest.raises(ParseError, match=r"no text|cells are empty"):
            read(declared)
        return
    written = " ".join(read(declared).text.replace("\\|", "|").split())
    for cell in (cell for row in rows for cell in row):
        assert " ".join(cell.split()) in written


@settings(deadline=None, max_examples=100)
@given(
    header=st.lists(st.text(max_size=40), max_size=8),
    rows=st.lists(st.lists(_CELLS, max_size=8), max_size=30),
)
def test_blocks_are_small_and_begin_with_the_header(
    header: list[str], rows: list[list[str]]
) -> None:
    names = [" ".join(name.split()) or f"Column {n}" for n, name in enumerate(header, start=1)]
    for block in table_blocks(header, rows):
        if block.startswith("|"):
            first, line, *_ = block.split("\n")
            assert all(name.replace("|", "\\|") in first for name in names)
            assert set(line) <= set("| -")
            assert len(block.replace("\\|", "|")) <= BLOCK_CHARACTERS or not any(map(any, rows))
        else:
            assert block.startswith(("Row ", "Empty columns: "))


def test_a_header_without_rows_stands_alone() -> None:
    assert "".join(table_blocks(["a", "b"], [])) == "| a | b |\n| - | - |"
    assert list(table_blocks([], [])) == []


def test_columns_that_no_row_fills_are_named_once() -> None:
    assert "\n\n".join(table_blocks(["a", "b"], [["x\ny"]])).endswith(
        "- a: x\n  y\n\nEmpty columns: b"
    )


def test_rows_are_numbered_from_where_the_caller_says() -> None:
    assert next(table_blocks(["a"], [["x\ny"]], first_row=7)).startswith("Row 7:")

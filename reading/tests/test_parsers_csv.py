"""Tables as people export them; every part of a long one knows its column names."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.chunkers import get_chunker
from reading.parsers import Limits, ParsedDocument, ParseError, parse
from reading.parsers.csv import parse_csv
from reading.parsers.normalise import without_invisible
from reading.parsers.table_writer import BLOCK_CHARACTERS, table_blocks
from reading.tests.factories_chunkers import minilm


def read(text: str, name: str = "sales.csv") -> ParsedDocument:
    return parse(text.encode(), name=name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name,revenue\nAda,12\nBob,7\n", "a.csv"),
        ("name;revenue\r\nAda;12\r\nBob;7\r\n", "a.csv"),
        ("name\trevenue\nAda\t12\nBob\t7", "a.tsv"),
        ("name\trevenue\nAda\t12\nBob\t7", "a.csv"),
        ("name|revenue\nAda|12\nBob|7\n", "a.csv"),
        ("sep=|\nname|revenue\nAda|12\nBob|7\n", "a.csv"),
        ('"name", "revenue"\n"Ada", "12"\n\n\n"Bob", "7"\n', "a.csv"),
        ("\ufeffname,revenue\nAda,12\n,,\nBob,7,,\n", "a.csv"),
    ],
)
def test_the_delimiter_is_found_out(text: str, name: str) -> None:
    document = read(text, name)
    assert document.text == "| name | revenue |\n| - | - |\n| Ada | 12 |\n| Bob | 7 |"
    assert document.metadata == {
        "columns": ["name", "revenue"],
        "rows": 2,
        "types": ["text", "number"],
    }
    assert (document.media_type, document.rendering) == ("text/csv", "markdown")


def test_decimal_commas_part_no_columns() -> None:
    assert "| Ada | 1,5 |" in read("name;revenue\nAda;1,5\nBob;2,25\n").text


def test_encodings_are_those_of_any_text() -> None:
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        document = parse("naïve,größe\n1,2\n".encode(encoding), name="a.csv")
        assert document.text.startswith("| naïve | größe |")


def test_quoted_cells_may_hold_delimiters_quotes_and_lines() -> None:
    document = read('name,note\nAda,"first, ""loud""\nsecond"\nBob,x|y\n')
    assert document.text == (
        'Row 2:\n\n- name: Ada\n- note: first, "loud"\n  second\n\n'
        "| name | note |\n| - | - |\n| Bob | x\\|y |"
    )


def test_what_stands_above_the_table_stays_above_it() -> None:
    document = read("Report of 2024\n\nname,revenue\nAda,12\n")
    assert document.text.startswith("Report of 2024\n\nFrom row 3:\n\n| name | revenue |")


@pytest.mark.parametrize(
    ("first", "has_names"),
    [
        ("name,revenue", True),
        ("country,2019,2020", True),
        ("Alice,30", False),
        ("2024-01-05,12.50", False),
        ("a,a", False),
        ("x,1999", False),
    ],
)
def test_a_first_row_with_values_names_no_columns(first: str, has_names: bool) -> None:
    width = first.count(",") + 1
    document = read(f"{first}\n{','.join('5' * width)}\n")
    assert bool(document.metadata["columns"]) is has_names
    assert document.metadata["rows"] == (1 if has_names else 2)
    assert document.text.startswith("| Column 1 |") is not has_names


def test_a_quotation_mark_that_is_never_closed_swallows_nothing() -> None:
    document = read('name,inch\nscreen,"5\npipe,7\n')
    assert '| screen | "5 |\n| pipe | 7 |' in document.text


def test_a_quotation_mark_in_the_wrong_place_breaks_no_row() -> None:
    document = read('name,note\n"Ada" L,"a,b"\nBob,c\n')
    assert "| Ada L | a,b |\n| Bob | c |" in document.text


def test_wide_rows_become_lists_with_the_column_before_each_value() -> None:
    names = [f"column number {n}" for n in range(40)]
    document = read(f"{','.join(names)}\n{','.join(f'v{n}' for n in range(40))}\n")
    assert document.text.startswith("Row 2:\n\n- column number 0: v0\n- column number 1: v1\n")


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


#: Without soft hyphens and the like, which are taken out of words.
_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30).map(without_invisible)
_CELLS = _TEXTS | st.sampled_from(
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

"""Tables, JSON and workbooks as people export them: nothing is lost, and every part of a long table
knows its column names. See also `cases`."""

import csv
import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reading.chunkers import get_chunker
from reading.parsers import Limits, ParsedDocument, ParseError, parse
from reading.parsers.csv import parse_csv
from reading.parsers.json_text import parse_json
from reading.parsers.normalise import decode_text, without_invisible
from reading.parsers.office_content import format_general, format_number
from reading.parsers.table_writer import BLOCK_CHARACTERS, table_blocks
from reading.parsers.xlsx import parse_xlsx
from reading.tests.factories_chunkers import minilm
from reading.tests.factories_office import changed, sheet_xml, xlsx


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
        # One that stands alone is a note, in which bars are not escaped.
        assert " ".join(cell.replace("\\|", "|").split()) in written


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


def read_text(text: str, name: str = "a.json") -> ParsedDocument:
    return parse(text.encode(), name=name)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_that_is_nested_without_end_is_refused(opening: str) -> None:
    with pytest.raises(ParseError, match="nested deeper than 200 levels") as caught:
        read_text(opening * 100_000)
    assert caught.value.code == "malformed"


def test_memory_does_not_grow_with_the_number_of_values() -> None:
    source = json.dumps([{"id": n, "amount": n * 1.5, "on": "2024-05-06"} for n in range(4_000)])
    tracemalloc.start()
    document = read_text(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert document.metadata == {"records": 4_000}
    # The bytes, their text, the pieces and the whole they are joined to; no tree of objects, which
    # alone would take ten times the size of the source.
    assert peak < 9 * len(source)


def test_text_that_grows_beyond_all_bounds_is_refused() -> None:
    source = json.dumps({"a" * 1000: [{"b": n} for n in range(100)]}).encode()
    with pytest.raises(ParseError, match="Split it") as caught:
        parse_json(source, name="a.json", limits=Limits(max_characters=50_000))
    assert caught.value.code == "too_large"


_KEYS = st.text(max_size=8) | st.sampled_from(["title", "text", "name", "content", "a.b", "[0]"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=100),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=30,
)


def strings(value: Any) -> list[str]:
    """Every value and name as a reader must find it, white space aside."""
    match value:
        case dict():
            inner = [text for each in value.values() for text in strings(each)]
            return inner + [seen(key) for key in value if key.casefold() not in _UNNAMED]
        case list():
            return [text for each in value for text in strings(each)]
        case str():
            return [seen(value)]
        case _:
            return [json.dumps(value)]


def seen(text: str) -> str:
    """As it is stored, white space aside: PostgreSQL holds no U+0000, and no word has soft hyphens
    or the like."""
    return " ".join(without_invisible(text.replace("\0", "")).split())


def check(source: str, name: str, *, wanted: list[str]) -> None:
    assume(any(wanted))
    written = " ".join(read_text(source, name).text.split())
    assert [each for each in wanted if each not in written] == []


#: Their values stand without the name.
_UNNAMED = {
    *("title", "headline", "subject", "name"),
    *("text", "content", "body", "page_content", "passage", "abstract"),
}


@settings(deadline=None, max_examples=300)
@given(value=_VALUES)
def test_no_value_of_any_json_is_lost(value: Any) -> None:
    check(json.dumps(value), "a.json", wanted=strings(value))


@settings(deadline=None, max_examples=100)
@given(values=st.lists(_VALUES, min_size=1, max_size=5))
def test_json_lines_are_read_as_the_list_of_their_values(values: list[Any]) -> None:
    check("\n".join(map(json.dumps, values)), "a.jsonl", wanted=strings(values))


def text_of(*rows: list[object], **options: object) -> str:
    """The text of a sheet `S`, without its heading."""
    text = parse(xlsx({"S": rows}, **options), name="a.xlsx").text  # type: ignore[arg-type]
    return text.removeprefix("# S\n\n")


def test_every_chunk_of_a_long_sheet_knows_its_columns() -> None:
    names = ["Month", "Region", "Revenue (EUR)"]
    rows = [[f"Month {n}", "North" if n % 2 else "South", n * 12.5] for n in range(600)]
    document = parse(xlsx({"Sales": [names, *rows]}), name="a.xlsx")
    spans = get_chunker("auto", counter=minilm(), reserve=10).split(document)
    assert len(spans) > 20
    for span in spans:
        assert "| Month | Region | Revenue (EUR) |" in document.text[span.start : span.end]
        assert span.heading_path == ("Sales",)


def test_a_long_sheet_repeats_its_names_and_loses_no_row() -> None:
    text = text_of(["Month", "Revenue"], *([f"Month {n}", n * 10] for n in range(5000)))
    assert text.count("| Month | Revenue |") > 100
    rows = [line for line in text.split("\n") if line.startswith("| Month ") and "Rev" not in line]
    assert rows == [f"| Month {n} | {n * 10} |" for n in range(5000)]


def test_a_sheet_that_declares_every_cell_costs_only_what_is_there() -> None:
    """The writer declares A1:XFD1048576 for each sheet; here cells stand at both ends."""
    far = [["Name", "Age"], ["Ada", 36]]
    data = xlsx({"S": far})
    corner = '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>corner</t></is></c></row>'
    empty = "".join(f'<row r="{n}"><c r="A{n}" s="1"/></row>' for n in range(3, 50_000))
    sheet = sheet_xml(far).replace("</sheetData>", f"{empty}{corner}</sheetData>")
    text = parse(changed(data, {"xl/worksheets/sheet1.xml": sheet}), name="a.xlsx").text
    assert text.endswith("| Ada | 36 |\n\ncorner\n")


def test_limits_hold_for_cells_and_an_empty_workbook_has_no_text() -> None:
    with pytest.raises(ParseError, match="100 characters") as caught:
        parse_xlsx(xlsx({"S": [["word " * 30]]}), name="a", limits=Limits(max_characters=100))
    assert caught.value.code == "too_large"
    with pytest.raises(ParseError) as caught:
        parse(xlsx({"S": []}), name="a.xlsx")
    assert caught.value.code == "no_text"


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (0.1 + 0.2, "General", "0.3"),
        (1234567, "#,##0", "1234567"),
        (0.125, "0.0%", "12.5%"),
        (2.5, "0", "3"),
        (-2.345, "#,##0.00;[Red](#,##0.00)", "-2.35"),
        (3.10, "0.0##", "3.1"),
        (3, '0.00" kg"', "3.00 kg"),
        (1200, '[$€-407] #,##0', "€1200"),
        (1200, '#,##0.00\\ "€"', "1200.00 €"),
        (5, "$0", "$5"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (45352, "yyyy-mm-dd", "2024-03-01"),
        (45352, "[$-407]d. mmmm yyyy;@", "2024-03-01"),
        (45352, "mmm yy", "March 2024"),
        (45352, "yyyy", "2024"),
        (45352.5, "d/m/yy h:mm", "2024-03-01 12:00"),
        (0.75, "h:mm", "18:00:00"),
        (1.5, "[h]:mm", "36:00:00"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (-1, "yyyy-mm-dd", "-1"),
        (1e300, "yyyy-mm-dd", "1e+300"),
        (1e300, "0.00", "1e+300"),
        (0.5, "# ?/?", "0.5"),
        (7, "@", "7"),
        (7, "", "7"),
        (12, '"no number"', "12"),
        (1e-7, "0.00E+00", "1e-07"),
        (-0.001, "0.0", "0.0"),
    ],
)  # fmt: skip
def test_numbers_are_shown_as_their_format_says(number: float, code: str, text: str) -> None:
    assert format_number(number, code) == text


def test_old_macs_count_days_from_1904() -> None:
    assert format_number(0, "yyyy-mm-dd", since_1904=True) == "1904-01-01"


def test_infinite_numbers_are_shown() -> None:
    assert (format_general(float("inf")), format_number(float("nan"), "0.00")) == ("inf", "nan")


def test_of_base64_and_endless_words_the_beginning_stays() -> None:
    base64 = "iVBORw0KGgo" * 1_000
    text = f"Before.\n\n![logo](data:image/png;base64,{base64})\n\nAfter."
    assert decode_text(text.encode()) == text.replace(base64, base64[:64] + "…")
    lines = f"{'Qm9pbGVyMTIz' * 6}\n" * 40
    assert decode_text(f"Key:\n{lines}End.".encode()) == f"Key:\n{lines[:64]}…\nEnd."


@pytest.mark.parametrize(
    "text", ["ACGTTGCAAC" * 7 + "\n", "a-b_c=1&d=2;" * 100 + " ", "word " * 900]
)
def test_what_people_may_read_is_not_shortened(text: str) -> None:
    assert decode_text((text * 40).encode()) == text * 40

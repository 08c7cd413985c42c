"""Excel files: every row found again with its sheet and the names of its columns."""

import pytest

from reading.chunkers import get_chunker
from reading.parsers import ParseError, parse
from reading.parsers.base import Limits
from reading.parsers.office_content import format_general, format_number
from reading.parsers.xlsx import parse_xlsx
from reading.tests.factories_chunkers import minilm
from reading.tests.factories_office import changed, sheet_xml, xlsx


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

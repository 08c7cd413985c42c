"""Excel files: every row found again with its sheet and the names of its columns."""

import datetime

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


def test_sheets_are_headings_and_rows_know_their_columns() -> None:
    sheets = {
        "Sales": [["Month", "Revenue"], ["March", 1200], ["April", 0.5]],
        "Staff": [["Name", "Since"], ["Ada", datetime.date(2024, 2, 29)]],
    }
    document = parse(xlsx(sheets), name="year-report.xlsx")
    assert document.text == (
        "# Sales\n\n| Month | Revenue |\n| - | - |\n| March | 1200 |\n| April | 0.5 |\n\n"
        "# Staff\n\n| Name | Since |\n| - | - |\n| Ada | 2024-02-29 |\n"
    )
    assert [(heading.title, heading.level) for heading in document.headings] == [
        ("Sales", 1),
        ("Staff", 1),
    ]
    assert document.text.startswith("# Staff", document.headings[1].offset)
    assert document.title == "Year report"


def test_empty_rows_and_columns_are_dropped() -> None:
    rows: list[list[object]] = [[], [None, "Name", None, "Age"], [None, "Ada", None, 36], []]
    assert text_of(*rows) == "| Name | Age |\n| - | - |\n| Ada | 36 |\n"


def test_lone_cells_above_and_below_a_table_are_notes() -> None:
    text = text_of(["Sales 2024"], [], ["Month", "Sum"], ["May", 3], [], ["Source: books"])
    assert text == (
        "Sales 2024\n\nFrom row 4:\n\n| Month | Sum |\n| - | - |\n| May | 3 |\n\nSource: books\n"
    )


def test_lines_above_a_wider_table_do_not_name_its_columns() -> None:
    head: list[list[object]] = [["Client", "ACME"], ["Land", "Q1", "Q2", "Q3", "Q4"]]
    text = text_of(*head, ["BW", 1, 2, 3, 4])
    assert text.startswith("Client, ACME\n\nFrom row 3:\n\n| Land | Q1 | Q2 | Q3 | Q4 |\n| - |")


def test_every_chunk_of_a_long_sheet_knows_its_columns() -> None:
    names = ["Month", "Region", "Revenue (EUR)"]
    rows = [[f"Month {n}", "North" if n % 2 else "South", n * 12.5] for n in range(600)]
    document = parse(xlsx({"Sales": [names, *rows]}), name="a.xlsx")
    spans = get_chunker("auto", counter=minilm(), reserve=10).split(document)
    assert len(spans) > 20
    for span in spans:
        assert "| Month | Region | Revenue (EUR) |" in document.text[span.start : span.end]
        assert span.heading_path == ("Sales",)


def test_a_table_goes_on_behind_an_empty_row_and_behind_a_note() -> None:
    text = text_of(["Name", "Age"], ["Ada", 36], [], ["Bob", 40], [], ["Left"], ["Cy", 50])
    assert text.count("| Name | Age |") == 3
    assert "| Cy | 50 |" in text


def test_another_table_on_the_sheet_has_names_of_its_own() -> None:
    text = text_of(["Name", "Age"], ["Ada", 36], [], ["City", "People"], ["Ulm", 126_000])
    assert text.endswith("| City | People |\n| - | - |\n| Ulm | 126000 |\n")


def test_years_name_columns_and_figures_do_not() -> None:
    assert text_of(["Land", 2023, 2024], ["A", 1, 2]).startswith("| Land | 2023 | 2024 |\n| - |")
    text = text_of([1.5, 2.5], [3.5, 4.5])
    assert text.startswith("| Column 1 | Column 2 |")
    assert "| 1.5 | 2.5 |" in text


def test_names_without_rows_are_not_lost() -> None:
    assert text_of(["Name", "Age"]) == "Name, Age\n"


def test_merged_cells_are_repeated_in_their_rows_and_joined_in_names() -> None:
    rows: list[list[object]] = [
        ["Region", "2023", None, "Note"],
        [None, "Q1", "Q2"],
        ["North", 1, 2, "x"],
        [None, 3, 4, "y"],
    ]
    text = text_of(*rows, merged=["B1:C1", "A3:A4", "A1:A2"])
    assert text == (
        "| Region | 2023 Q1 | 2023 Q2 | Note |\n| - | - | - | - |\n"
        "| North | 1 | 2 | x |\n| North | 3 | 4 | y |\n"
    )


def test_a_long_sheet_repeats_its_names_and_loses_no_row() -> None:
    text = text_of(["Month", "Revenue"], *([f"Month {n}", n * 10] for n in range(5000)))
    assert text.count("| Month | Revenue |") > 100
    rows = [line for line in text.split("\n") if line.startswith("| Month ") and "Rev" not in line]
    assert rows == [f"| Month {n} | {n * 10} |" for n in range(5000)]


def test_a_wide_row_says_each_column_beside_its_value() -> None:
    names = [f"Measure number {n}" for n in range(40)]
    text = text_of(names, list(range(40)))
    assert text.startswith("Row 2:\n\n- Measure number 0: 0\n- Measure number 1: 1\n")
    assert text.count("- Measure number") == 40


def test_hidden_sheets_are_read_and_those_of_programs_are_not() -> None:
    rows = [["Name", "Age"], ["Ada", 36]]
    states = {"Back": "hidden", "Secret": "veryHidden"}
    document = parse(
        xlsx(dict.fromkeys(["Front", "Back", "Secret"], rows), states=states), name="a"
    )
    assert [heading.title for heading in document.headings] == ["Front", "Back"]
    assert document.metadata["hidden_sheets"] == ["Back", "Secret"]


def test_cells_of_every_type() -> None:
    rich = "<is><r><t>ri</t></r><r><t>ch_x000D_</t></r><rPh><t>no</t></rPh></is>"
    text = text_of(
        ["A", "B", "C", "D", "E", "F"],
        [
            True,
            '< t="e"><v>#REF!</v></c>',
            '< t="str"><f>A1</f><v>computed</v></c>',
            '< t="d"><v>2024-05-06T00:00:00</v></c>',
            "<><f>A1</f></c>",
            f'< t="inlineStr">{rich}</c>',
        ],
    )  # fmt: skip
    assert "| TRUE |  | computed | 2024-05-06 |  | rich |" in text


def test_formulas_that_were_never_computed_are_counted() -> None:
    document = parse(xlsx({"S": [["A", "B"], ["x", "<><f>1+1</f></c>"]]}), name="a.xlsx")
    assert document.metadata["formulas_without_value"] == 1


def test_shared_strings_are_looked_up_and_missing_ones_are_empty() -> None:
    names = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    data = xlsx({"S": [['< t="s"><v>1</v></c>', "x"], ['< t="s"><v>9</v></c>', "y"]]})
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    related = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{links}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="s" Type="{links}/sharedStrings" Target="/xl/sharedStrings.xml"/>'
        "</Relationships>"
    )
    strings = f"<sst {names}><si><t>no</t></si><si><r><t>sha</t></r><r><t>red</t></r></si></sst>"
    document = parse(
        changed(data, {"xl/_rels/workbook.xml.rels": related, "xl/sharedStrings.xml": strings}),
        name="a.xlsx",
    )
    assert "shared | x" in document.text
    assert "no" not in document.text


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


@pytest.mark.parametrize(
    ("number", "code", "shown"),
    [
        (1067, "00000", "01067"),
        (5550173, r"000\-0000", "555-0173"),
        (1234, r"000\-0000", "000-1234"),
        (40012345678, r"0000\ 0000\ 0000", "0400 1234 5678"),
        (4711, '"WB-"000000', "WB-004711"),
        (3415550173, r"[<=9999999]###\-####;\(###\)\ ###\-####", "(341) 555-0173"),
        (5550173, r"[<=9999999]###\-####;\(###\)\ ###\-####", "555-0173"),
        (0, "00000", "00000"),
        (-7, "000", "-007"),
        (1234567, "#,##0", "1234567"),
        (7.5, "00.00", "07.50"),
        (123456789012, r"000\-0000", "12345678-9012"),
        (0.5, "# ?/?", "0.5"),
        (1.5, r"000\-000", "1.5"),
    ],
)
def test_zeros_and_masks_are_shown_as_excel_shows_them(
    number: float, code: str, shown: str
) -> None:
    assert format_number(number, code) == shown


def test_escapes_of_what_cannot_be_stored_cost_only_themselves() -> None:
    text = text_of(["A", "B"], ["a_x0000_b _xD83D_ c", "_x005F_x000D_ _xD83D__xDE00_"])
    assert text.endswith("| ab \ufffd c | _x000D_ 😀 |\n")

"""Files as other programs write them: what they put in is what we read."""

import datetime
import io
from typing import Any

import openpyxl
import pptx
import xlsxwriter
from docx import Document
from docx.enum.section import WD_SECTION
from hypothesis import given, settings
from hypothesis import strategies as st
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from reading.parsers import parse
from reading.parsers.normalise import normalise_text

#: Text that a file may hold: XML has no control characters, and `\\u00ad` is dropped on purpose.
TEXT = st.text(
    st.characters(
        exclude_categories=["Cc", "Cs", "Cn", "Co", "Zl", "Zp"], exclude_characters="\u00ad|"
    ),
    min_size=1,
    max_size=40,
).filter(str.strip)


def saved(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def words(text: str) -> str:
    return " ".join(normalise_text(text).split())


def test_a_word_file_of_python_docx() -> None:
    source = Document()
    source.core_properties.title = "Handbook"
    source.add_heading("Handbook of travel", 0)
    source.add_heading("Costs", 1)
    paragraph = source.add_paragraph("Bring ")
    paragraph.add_run("all").bold = True
    paragraph.add_run(" receipts.")
    source.add_paragraph("trains", style="List Bullet")
    source.add_paragraph("first", style="List Number")
    source.add_page_break()
    table = source.add_table(rows=3, cols=3)
    for row, texts in enumerate([["City", "Sum", "Note"], ["Ulm", "2", "a"], ["", "", "b"]]):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    table.cell(2, 1).merge(table.cell(2, 2))
    section = source.add_section(WD_SECTION.NEW_PAGE)
    section.header.is_linked_to_previous = False
    section.header.paragraphs[0].text = "ACME"
    document = parse(saved(source), name="a.docx")
    assert document.title == "Handbook of travel"
    assert document.metadata["title"] == "Handbook"
    assert document.text == (
        "ACME\n\n# Handbook of travel\n\n# Costs\n\nBring all receipts.\n\n- trains\n1. first\n\n"
        "| City | Sum | Note |\n| - | - | - |\n| Ulm | 2 | a |\n| Ulm | b |  |\n"
    )


def test_a_deck_of_python_pptx() -> None:
    source = pptx.Presentation()
    source.slides.add_slide(source.slide_layouts[0]).shapes.title.text = "Review"
    slide = source.slides.add_slide(source.slide_layouts[1])
    slide.shapes.title.text = "Numbers"
    body = slide.placeholders[1].text_frame
    body.text = "up"
    deeper = body.add_paragraph()
    deeper.text, deeper.level = "much", 1
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(1)).table
    for place, text in {(0, 0): "Land", (0, 1): "Sum", (1, 0): "BW", (1, 1): "5"}.items():
        table.cell(*place).text = text
    data = CategoryChartData(number_format="0%")
    data.categories = ["March", "April"]
    data.add_series("Berlin", (0.25, 0.5))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(2), Inches(2), data)
    slide.notes_slide.notes_text_frame.text = "Smile.\nWait."
    document = parse(saved(source), name="a.pptx")
    assert document.title == "Review"
    assert document.text == (
        "# Review\n\n## Numbers\n\n- up\n  - much\n\n| Land | Sum |\n| - | - |\n| BW | 5 |\n\n"
        "| Category | Berlin |\n| - | - |\n| March | 25% |\n| April | 50% |\n\n"
        "> Notes: Smile.\n> Wait.\n"
    )


def test_a_workbook_of_openpyxl() -> None:
    source = openpyxl.Workbook()
    sheet = source.active
    sheet.title = "Plan"
    sheet.append(["Region", "Day", "Share"])
    sheet.append(["North", datetime.date(2024, 3, 1), 0.25])
    sheet.append([None, datetime.datetime(2024, 3, 2, 8, 30), 0.5])
    sheet.merge_cells("A2:A3")
    for row in (2, 3):
        sheet.cell(row, 3).number_format = "0%"
    source.create_sheet("Back").append(["only", "names"])
    source["Back"].sheet_state = "hidden"
    document = parse(saved(source), name="a.xlsx")
    assert document.metadata["hidden_sheets"] == ["Back"]
    assert document.text == (
        "# Plan\n\n| Region | Day | Share |\n| - | - | - |\n| North | 2024-03-01 | 25% |\n"
        "| North | 2024-03-02 08:30 | 50% |\n\n# Back\n\nonly, names\n"
    )


def test_a_workbook_of_xlsxwriter_with_shared_strings_a_chart_and_a_text_box() -> None:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as source:
        sheet = source.add_worksheet("Sales")
        sheet.write_row(0, 0, ["Month", "Sum"])
        sheet.write_row(1, 0, ["March", 1200])
        sheet.write_formula(2, 1, "=B2*2", None, 2400)
        sheet.write(2, 0, "April")
        sheet.write_rich_string(3, 0, "Ma", source.add_format({"bold": True}), "y")
        sheet.write_comment(0, 0, "a remark")
        sheet.insert_textbox(5, 5, "Not audited")
        chart = source.add_chart({"type": "column"})
        chart.set_title({"name": "By month"})
        chart.add_series({"name": "S", "categories": "=Sales!A2:A3", "values": "=Sales!B2:B3"})
        sheet.insert_chart(8, 8, chart)
    text = parse(buffer.getvalue(), name="a.xlsx").text
    assert text.startswith(
        "# Sales\n\n| Month | Sum |\n| - | - |\n| March | 1200 |\n| April | 2400 |\n| May |  |\n"
    )
    assert "Not audited" in text
    assert "By month" in text
    assert "a remark" not in text


@settings(deadline=None, max_examples=15)
@given(blocks=st.lists(st.tuples(st.integers(0, 4), TEXT), min_size=1, max_size=6), cell=TEXT)
def test_no_word_of_a_word_file_is_lost(blocks: list[tuple[int, str]], cell: str) -> None:
    source = Document()
    for level, text in blocks:
        if level:
            source.add_heading(text, level)
        else:
            source.add_paragraph(text)
    table = source.add_table(rows=2, cols=2)
    table.cell(0, 0).text = table.cell(0, 1).text = "name"
    table.cell(1, 0).text, table.cell(1, 1).text = cell, "x"
    document = parse(saved(source), name="a.docx")
    at = 0
    for _, text in blocks:
        at = document.text.index(words(text), at) + len(words(text))
    assert words(cell) in document.text[at:]
    for heading in document.headings:
        assert document.text.startswith(f"{'#' * heading.level} {heading.title}", heading.offset)
    titled = [words(text) for level, text in blocks if level]
    assert [heading.title for heading in document.headings] == titled


@settings(deadline=None, max_examples=15)
@given(rows=st.lists(st.lists(TEXT, min_size=2, max_size=4), min_size=2, max_size=6))
def test_no_cell_of_a_workbook_is_lost(rows: list[list[str]]) -> None:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as source:
        sheet = source.add_worksheet("S")
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                sheet.write_string(number, column, text)
    document = parse(buffer.getvalue(), name="a.xlsx")
    at = 0
    for row in rows:
        for text in row:
            at = document.text.index(words(text), at)

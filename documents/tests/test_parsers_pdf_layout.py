"""The layout of PDFs: tables, columns, notes, headings, links, form fields, and pages to be read by
OCR."""

import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text import strip_markdown
from documents.document_html import render_markdown
from documents.ingestion.preparation import PreparedDocument
from documents.tests.fuzzing.door import taken
from reading.parsers import parse
from reading.parsers.pdf_layout import TextBlock, page_blocks
from reading.parsers.pdf_lines import line_text
from reading.parsers.pdf_page import Box, TextRun, page_words
from reading.parsers.pdf_writer import escape_markdown
from reading.tests.factories_pdf import (
    finished,
    page,
    rows_of,
)
from reading.tests.test_parsers_cases import CASES

PDFS = CASES / "pdf"


def test_every_passage_of_a_table_over_pages_has_its_names() -> None:
    prepared = taken("a.pdf", (PDFS / "table-over-pages.pdf").read_bytes())
    assert isinstance(prepared, PreparedDocument)
    assert all(chunk.text.startswith("| Ship | Flag | Tons |") for chunk in prepared.chunks)
    rows = "\n".join(chunk.text for chunk in prepared.chunks)
    assert list(rows_of(rows)) == [
        ["Ship", "Flag", "Tons"],
        *([f"Vessel {n}", ("NO", "DE", "ES")[n % 3], str(900 + 13 * n)] for n in range(70)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "2*3*4 and _so_ on",
        "<b>bold</b> & &amp;",
        "# 1",
        "a `b` c",
        "[x](y)",
        "1 < 2",
        "--- \\* ~~a~~",
    ],
)
def test_prose_is_shown_to_the_letter(text: str) -> None:
    shown = str(render_markdown(escape_markdown(text), passage=None).html)
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert shown.strip() == f"<p>{escaped.strip()}</p>"


def test_a_passage_is_on_the_page_that_its_reader_sees() -> None:
    prepared = taken("a.pdf", (PDFS / "page-labels.pdf").read_bytes())
    assert isinstance(prepared, PreparedDocument)
    assert [chunk.metadata for chunk in prepared.chunks][:1] == [{"page_label": "iv"}]
    assert prepared.chunks[-1].metadata == {"page_label": "1"}


def test_the_text_of_a_scan_takes_the_place_of_its_own() -> None:
    data = (PDFS / "text-and-scans.pdf").read_bytes()
    read = {"2": "Letter\n\nTo the  master", "3": "Invoice 7"}
    document = parse(data, name="a.pdf", page_texts=read)
    assert document.scans == ()
    assert document.text.endswith("Letter\n\nTo the master\n\nInvoice 7")
    assert document.text.startswith("Letter", document.pages[1].offset)
    assert document.text.startswith("Invoice", document.pages[2].offset)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_words_are_where_they_are_shown(rotation: int) -> None:
    document = page(12)
    document.text(42, 59.4, "Anchor")
    sheet = pypdfium2.PdfDocument(finished(document))
    shown = sheet[0]
    shown.set_cropbox(0, shown.get_height() / 2, shown.get_width(), shown.get_height())
    shown.set_rotation(rotation)
    (word,) = page_words(shown)
    middle = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
    # 42 mm of 210 and 59.4 of 148.5: a fifth from the left, two fifths from the top.
    across, down = 0.2 + 0.5 * 14.3 / 210, 0.4 - 0.5 * 3 / 148.5
    places = {0: (across, down), 90: (1 - down, across)}
    places |= {180: (1 - across, 1 - down), 270: (down, 1 - across)}
    assert middle == pytest.approx(places[rotation], abs=0.01)
    shown.close()
    sheet.close()


def test_a_snippet_of_a_table_reads_without_its_marks() -> None:
    data = (PDFS / "table-grid.pdf").read_bytes()
    assert "Rope, hemp" in strip_markdown(parse(data, name="a.pdf").text)


@pytest.mark.parametrize(
    ("shown", "read"),
    [
        ("\u05d3 12 \u05d1 \u05d0", "\u05d0 \u05d1 12 \u05d3"),
        ("Notes \u05d1 \u05d0 and more", "Notes \u05d0 \u05d1 and more"),
        ("\ufb01ne \uf0b7 o\ufb03ce\x02 \ufffd end . . . . . . 7", "fine • office end … 7"),
    ],
)
def test_words_of_a_line_are_read_in_their_order_and_whole(shown: str, read: str) -> None:
    runs = [
        TextRun(word, 30.0 * at, 0, 30.0 * at + 20, 10, 10.0, is_bold=False, begins_line=at == 0)
        for at, word in enumerate(shown.split(" "))
    ]
    assert line_text(runs) == read


_PLACE = st.integers(0, 60).map(lambda step: 10.0 * step)
_RULES = st.lists(
    st.tuples(_PLACE, _PLACE, _PLACE, st.booleans()).map(
        lambda rule: (
            (rule[0], rule[1], rule[2], rule[1])
            if rule[3]
            else (rule[0], rule[1], rule[0], rule[2])
        )
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            _PLACE, _PLACE, st.sampled_from([0.0, 8.0, 10.0, 24.0]), st.integers(1, 30),
            st.booleans(), st.sampled_from([0, 0, 0, 90, 180, 270]),
        ),
        max_size=60,
    ),
    _RULES,
)  # fmt: skip
def test_no_word_is_lost_wherever_words_and_lines_are(
    places: list[tuple[float, float, float, int, bool, int]], rules: list[Box]
) -> None:
    runs = [
        TextRun(f"w{at}" + "x" * length, x, y, x + length * size / 2, y + size, size, is_bold,
                begins_line=at % 3 == 0, angle=angle)
        for at, (x, y, size, length, is_bold, angle) in enumerate(places)
    ]  # fmt: skip
    words: list[str] = []
    for block in page_blocks(runs, rules, width=612.0, height=792.0):
        rows = [[block.text]] if isinstance(block, TextBlock) else block.rows
        words += [word for row in rows for text in row for word in text.split()]
    assert {run.text for run in runs} <= set(words)

"""PDFs with a layout: tables whose cells are known, prose in columns, notes, links, forms."""

from collections.abc import Iterator
from typing import Any

from fpdf import FPDF
from fpdf.enums import TableBordersLayout
from fpdf.fonts import FontFace

Cells = list[list[str]]

PROSE = (
    "The committee met in the small hall because the large one was being painted, and the "
    "members agreed after a short discussion that the harbour dues should not be raised before "
    "the end of the year. A longer report on the state of the quays will be given in spring, when "
    "the divers have finished their work below the eastern wall. Nobody spoke against it. "
)


def page(size: float = 10, *, landscape: bool = False) -> FPDF:
    """A document with one page, to be written on."""
    document = FPDF(orientation="landscape" if landscape else "portrait", format="A4")
    document.set_margin(20)
    document.add_page()
    document.set_font("Helvetica", size=size)
    return document


def finished(document: FPDF) -> bytes:
    """The bytes of the document."""
    return bytes(document.output())


def prose(document: FPDF, times: int = 1) -> None:
    """A justified paragraph over the width of the page."""
    document.multi_cell(0, text=PROSE * times, new_x="LMARGIN", new_y="NEXT")
    document.ln(4)


def ruled(document: FPDF, cells: Cells, layout: str = "ALL", **options: Any) -> None:
    """A table with lines as fpdf2 makes it; without any where `layout` is NONE."""
    options.setdefault("headings_style", FontFace(emphasis="BOLD"))
    with document.table(
        borders_layout=getattr(TableBordersLayout, layout), line_height=6, **options
    ) as table:
        for row in cells:
            table.row(row)


def rows_of(text: str) -> Iterator[list[str]]:
    """The cells of all Markdown tables in a text, without the names that are repeated."""
    names: set[str] = set()
    for line in text.split("\n"):
        if line.startswith("| ") and not set(line) <= set("|- "):
            if line not in names:
                yield [cell.strip().replace("\\|", "|") for cell in line[2:-2].split(" | ")]
            names.add(line)

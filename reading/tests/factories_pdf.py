"""PDFs with a layout: tables whose cells are known, prose in columns, notes, links, forms."""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fpdf import FPDF
from fpdf.enums import TableBordersLayout
from fpdf.fonts import FontFace
from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

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


def right_to_left_pdf(lines: Sequence[str], *, is_logical: bool = True) -> bytes:
    """Lines of what is seen, from right to left, each letter drawn at its place: in this order
    (`is_logical`), as browsers do, or from left to right, as word processors do. Marks are drawn
    with their letters, and lam and alef as one glyph."""
    letters = sorted({glyph for line in lines for glyph in _glyphs(line)})
    codes = {glyph: 33 + number for number, glyph in enumerate(letters)}
    mapping = "\n".join(
        f"<{code:02X}> <{glyph.encode('utf-16-be').hex()}>" for glyph, code in codes.items()
    )
    cmap = DecodedStreamObject()
    cmap.set_data(
        f"begincmap 1 begincodespacerange <00> <FF> endcodespacerange {len(codes)} beginbfchar\n"
        f"{mapping}\nendbfchar endcmap".encode()
    )
    drawn = []
    for number, line in enumerate(lines):
        places = [(530 - 6 * at, glyph) for at, glyph in enumerate(_glyphs(line)) if glyph != " "]
        drawn += [
            f"1 0 0 1 {x} {750 - 20 * number} Tm <{codes[glyph]:02X}> Tj"
            for x, glyph in (places if is_logical else places[::-1])
        ]
    content = DecodedStreamObject()
    content.set_data(f"BT /F0 10 Tf {' '.join(drawn)} ET".encode())
    writer = PdfWriter()
    sheet = writer.add_blank_page(595, 842)
    box = DecodedStreamObject()
    box.set_data(b"600 0 0 0 600 700 d1 0 0 600 700 re f")
    names = ArrayObject([NumberObject(33), *[NameObject("/box")] * len(codes)])
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type3"),
            NameObject("/FontBBox"): ArrayObject(map(NumberObject, (0, 0, 600, 700))),
            NameObject("/FontMatrix"): ArrayObject(map(FloatObject, (0.001, 0, 0, 0.001, 0, 0))),
            NameObject("/CharProcs"): DictionaryObject(
                {NameObject("/box"): writer._add_object(box)}
            ),
            NameObject("/Encoding"): DictionaryObject({NameObject("/Differences"): names}),
            NameObject("/FirstChar"): NumberObject(33),
            NameObject("/LastChar"): NumberObject(32 + len(codes)),
            NameObject("/Widths"): ArrayObject([NumberObject(600)] * len(codes)),
            NameObject("/ToUnicode"): writer._add_object(cmap),
        }
    )
    fonts = DictionaryObject({NameObject("/F0"): writer._add_object(font)})
    sheet[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    sheet[NameObject("/Contents")] = writer._add_object(content)
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def _glyphs(line: str) -> list[str]:
    return re.findall("\u0644[\u0622\u0623\u0625\u0627]|.[\u0591-\u05c7\u064b-\u0655]*", line)

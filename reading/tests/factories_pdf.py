"""PDFs with a layout: tables whose cells are known, prose in columns, notes, links, forms."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from fpdf import FPDF
from fpdf.enums import TableBordersLayout, TableCellFillMode
from fpdf.fonts import FontFace
from PIL import Image
from pypdf import PdfReader, PdfWriter
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


def spaced(
    document: FPDF,
    cells: Cells,
    widths: Sequence[float],
    *,
    right: Sequence[int] = (),
    step: float = 5.5,
) -> None:
    """A table without lines: cells one by one, those of the columns `right` flush right."""
    for row in cells:
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            document.cell(width, step, cell, align="R" if column in right else "L")
        document.ln(step)
    document.ln(4)


PRICES = [
    ["Article", "Unit", "Price", "Stock"],
    ["Rope, hemp", "m", "2.40", "1,200"],
    ["Rope, nylon", "m", "3.10", "860"],
    ["Anchor 15 kg", "piece", "89.00", "14"],
    ["Lantern", "piece", "42.50", "31"],
    ["Tar", "litre", "6.75", "400"],
]
QUARTERS = [
    ["Harbour", "Q1", "Q2", "Q3", "Q4", "Total"],
    ["North quay", "1,204", "1,310", "1,288", "1,402", "5,204"],
    ["South quay", "804", "799", "-", "820", "2,423"],
    ["Old basin", "112", "98", "105", "120", "435"],
    ["Total", "2,120", "2,207", "1,393", "2,342", "8,062"],
]
_MASTER = "Keeps the register of ships, signs the dues and answers the council in all questions"
_CLERK = "Writes the minutes, keeps the archive and sends reminders for dues that are late"
_DIVER = "Inspects the walls below the water every spring and after every storm of force nine"
DUTIES = [
    ["Post", "Holder", "Duties"],
    ["Master", "Ida Holm", _MASTER],
    ["Pilot", "Jan Vries", "Brings ships in and out"],
    ["Clerk", "Ute Ahlers", _CLERK],
    ["Diver", "Rui Costa", _DIVER],
]
GAPS = [
    ["Day", "Morning", "Noon", "Evening"],
    ["Monday", "Survey", "", "Council"],
    ["Tuesday", "", "Painting", ""],
    ["Wednesday", "Diving", "Diving", "Report"],
    ["Thursday", "", "", "Council"],
]
TWO = [
    ["Ship", "Length"],
    ["Albatros", "31.2 m"],
    ["Meridian", "44.0 m"],
    ["Petrel", "18.7 m"],
    ["Kittiwake", "22.3 m"],
]
GERMAN = [
    ["Gebühr", "Grundlage", "Betrag"],
    ["Liegegeld", "je Meter und Tag", "1,80 EUR"],
    ["Müllentsorgung", "je Anlauf", "35,00 EUR"],
    ["Lotsengeld", "je Fahrt", "240,00 EUR"],
    ["Schleusengebühr", "je Durchfahrt", "12,50 EUR"],
]
WIDE = [["No", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"]]
WIDE += [[str(row), *(f"{row * n * 7 % 100}.{n}" for n in range(1, 9))] for row in range(1, 9)]
LONG = [["Ship", "Flag", "Tons"]]
LONG += [[f"Vessel {n}", ("NO", "DE", "ES")[n % 3], str(900 + 13 * n)] for n in range(70)]


def _beside_prose(document: FPDF) -> None:
    """A table in the left of two columns of text."""
    document.set_font_size(9)
    for column in (0, 1):
        document.set_left_margin(20 + 90 * column)
        document.set_xy(20 + 90 * column, 30)
        document.multi_cell(80, 4.5, PROSE, align="J")
        document.ln(3)
        if not column:
            spaced(document, TWO, [30, 25], right=[1])
        document.multi_cell(80, 4.5, PROSE * 2, align="J")
    document.set_left_margin(20)


def _between_rules(document: FPDF) -> None:
    """Lines above, below and under the names of the columns alone, as in books."""
    left, right = 20, 150

    def rule() -> None:
        document.line(left, document.y, right, document.y)

    rule()
    spaced(document, QUARTERS[:1], [40, 18, 18, 18, 18, 18], right=range(1, 6))
    document.set_y(document.y - 4)
    rule()
    spaced(document, QUARTERS[1:], [40, 18, 18, 18, 18, 18], right=range(1, 6))
    document.set_y(document.y - 4)
    rule()


def _typewritten(document: FPDF) -> None:
    document.set_font("Courier", size=9)
    for row in PRICES:
        line = f"{row[0]:<20}{row[1]:<10}{row[2]:>10}{row[3]:>10}"
        document.cell(0, 4, line, new_x="LMARGIN", new_y="NEXT")


def _striped(document: FPDF) -> None:
    stripes = TableCellFillMode.ROWS
    ruled(document, PRICES, "NONE", cell_fill_color=230, cell_fill_mode=stripes)


def _far(document: FPDF) -> None:
    document.set_font_size(12)
    spaced(document, TWO, [60, 40], step=9)


def _dense(document: FPDF) -> None:
    document.set_font_size(6)
    spaced(document, WIDE, [8, *[9] * 8], right=range(1, 9), step=2.8)


@cache
def known_tables() -> dict[str, tuple[Cells, bytes]]:
    """Twenty PDFs with one table each, by name, and its cells with the names of the columns."""
    left: dict[str, Any] = {"col_widths": (2, 2, 3), "width": 90}
    made: dict[str, tuple[Cells, Callable[[FPDF], None]]] = {
        "grid": (PRICES, lambda pdf: ruled(pdf, PRICES)),
        "grid of wrapped cells": (DUTIES, lambda pdf: ruled(pdf, DUTIES, col_widths=(1, 1, 3))),
        "grid of narrow cells": (DUTIES, lambda pdf: ruled(pdf, DUTIES, **left)),
        "grid with empty cells": (GAPS, lambda pdf: ruled(pdf, GAPS)),
        "grid of two columns": (TWO, lambda pdf: ruled(pdf, TWO, width=70)),
        "grid of many columns": (WIDE, lambda pdf: ruled(pdf, WIDE, text_align="R")),
        "grid in German": (GERMAN, lambda pdf: ruled(pdf, GERMAN)),
        "horizontal lines": (QUARTERS, lambda pdf: ruled(pdf, QUARTERS, "HORIZONTAL_LINES")),
        "lines inside": (PRICES, lambda pdf: ruled(pdf, PRICES, "INTERNAL")),
        "line below the names": (GERMAN, lambda pdf: ruled(pdf, GERMAN, "SINGLE_TOP_LINE")),
        "vertical lines": (PRICES, lambda pdf: ruled(pdf, PRICES, "NO_HORIZONTAL_LINES")),
        "book": (QUARTERS, _between_rules),
        "stripes": (PRICES, _striped),
        "no lines": (PRICES, lambda pdf: spaced(pdf, PRICES, [50, 25, 25, 25], right=[2, 3])),
        "no lines, gaps": (GAPS, lambda pdf: spaced(pdf, GAPS, [30, 30, 30, 30])),
        "no lines, wrapped": (DUTIES, lambda pdf: ruled(pdf, DUTIES, "NONE", col_widths=(1, 1, 2))),
        "no lines, two columns": (TWO, _far),
        "no lines, dense": (WIDE, _dense),
        "beside prose": (TWO, _beside_prose),
        "typewriter": (PRICES, _typewritten),
    }
    tables: dict[str, tuple[Cells, bytes]] = {}
    for name, (cells, write) in made.items():
        document = page()
        if name != "beside prose":
            prose(document)
        write(document)
        document.set_font("Helvetica", size=10)
        document.ln(6)
        if name != "beside prose":
            prose(document)
        tables[name] = cells, finished(document)
    return tables


def table_over_pages() -> bytes:
    """A table that goes on over the page, where its names are not repeated."""
    document = page()
    with document.table(line_height=7, repeat_headings=0) as table:
        for row in LONG:
            table.row(row)
    return finished(document)


def columns(count: int, *, size: float = 9, is_justified: bool = True) -> bytes:
    """Prose in columns below a title over all of them."""
    document = page(size)
    document.set_font("Helvetica", "B", 16)
    document.cell(0, 10, "On the state of the harbour", new_x="LMARGIN", new_y="NEXT")
    document.set_font("Helvetica", size=size)
    gutter = 7.0
    width = (170 - gutter * (count - 1)) / count
    for column in range(count):
        document.set_xy(20 + column * (width + gutter), 40)
        document.set_left_margin(20 + column * (width + gutter))
        for number in range(4):
            text = f"Column {column + 1}, paragraph {number + 1}. {PROSE}"
            document.multi_cell(
                width, 4.2, text, align="J" if is_justified else "L", new_x="LMARGIN", new_y="NEXT"
            )
            document.ln(2)
    return finished(document)


def _picture() -> Any:
    return Image.new("L", (200, 280), 230)


def scans(*kinds: str) -> bytes:
    """Pages by kind: `text`, `empty`, `picture`, `outlines`, `stamped` picture, `layer` of
    invisible text on a picture, `garbage` of such."""
    document = page()
    for number, kind in enumerate(kinds):
        if number:
            document.add_page()
        if kind in {"picture", "stamped", "layer", "garbage"}:
            document.image(_picture(), 0, 0, document.w, document.h)
        if kind == "text":
            prose(document)
        elif kind == "outlines":
            for at in range(12):
                corners = [(0, 40), (0, 46), (2, 48), (4, 46), (4, 40)]
                document.polygon([(20 + 5 * at + x, y) for x, y in corners])
        elif kind == "stamped":
            document.cell(text="Received 3 May")
        elif kind in {"layer", "garbage"}:
            text = PROSE if kind == "layer" else "|/ ~,, <>; ^^* ## {}} " * 20
            with document.local_context(text_mode="INVISIBLE"):
                document.multi_cell(0, text=text)
    return finished(document)


def form() -> bytes:
    """A form with a text field, a list to choose from and two boxes, one of them ticked."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(finished(_form_page()))))
    sheet = writer.pages[0]
    fields = ArrayObject()
    for y, kind, value in (
        (753, "/Tx", "Ida Holm"),
        (725, "/Ch", "North quay"),
        (697, "/Btn", "/Yes"),
        (669, "/Btn", "/Off"),
    ):
        field = DictionaryObject()
        state = NameObject(value) if kind == "/Btn" else TextStringObject(value)
        field.update(
            {
                NameObject("/Type"): NameObject("/Annot"),
                NameObject("/Subtype"): NameObject("/Widget"),
                NameObject("/FT"): NameObject(kind),
                NameObject("/T"): TextStringObject(f"field {y}"),
                NameObject("/V"): state,
                NameObject("/Rect"): ArrayObject(map(NumberObject, (160, y, 300, y + 18))),
            }
        )
        if kind == "/Btn":
            faces = DictionaryObject(
                {NameObject("/Yes"): writer._add_object(DecodedStreamObject())}
            )
            field[NameObject("/AS")] = state
            field[NameObject("/AP")] = DictionaryObject({NameObject("/N"): faces})
        fields.append(writer._add_object(field))
    sheet[NameObject("/Annots")] = fields
    writer.root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): fields})
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def self_drawing() -> bytes:
    """A page with a form object that draws itself, twice each time."""
    writer = PdfWriter()
    sheet = writer.add_blank_page(200, 200)
    form, content = DecodedStreamObject(), DecodedStreamObject()
    reference = writer._add_object(form)
    resources = DictionaryObject(
        {NameObject("/XObject"): DictionaryObject({NameObject("/F0"): reference})}
    )
    form.set_data(b"/F0 Do /F0 Do")
    form[NameObject("/Type")] = NameObject("/XObject")
    form[NameObject("/Subtype")] = NameObject("/Form")
    form[NameObject("/BBox")] = ArrayObject(map(NumberObject, (0, 0, 9, 9)))
    form[NameObject("/Resources")] = resources
    content.set_data(b"/F0 Do")
    sheet[NameObject("/Resources")] = resources
    sheet[NameObject("/Contents")] = writer._add_object(content)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def _form_page() -> FPDF:
    document = page()
    for number, label in enumerate(("Name:", "Berth:", "Insured:", "Hazardous:")):
        document.text(20, 30 + 10 * number, label)
    return document


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

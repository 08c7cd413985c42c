"""Make the files of the demo's invented firm: demo/firm/ from demo/sources/.

    python scripts/make_demo_corpus.py [DIRECTORY]

Needs the libraries of requirements-dev.txt. Two runs give the same bytes with the same libraries.
"""

import csv
import random
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from io import BytesIO
from pathlib import Path
from typing import Any

from docx import Document
from fpdf import FPDF
from fpdf.fonts import FontFace
from openpyxl import Workbook  # type: ignore[import-untyped]
from openpyxl.styles import Font  # type: ignore[import-untyped]
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont
from pptx import Presentation

DEMO = Path(__file__).resolve().parent.parent / "demo"
SOURCES = DEMO / "sources"
MADE_AT = datetime(2026, 6, 2, 9, 0, tzinfo=UTC)
#: Reader's names of made files, by their source.
WORD_FILES = {"handbook": "en", "wartung-ferry": "de", "carta-talvera": "es"}
CONTRACTS = ("frame-supply-contract", "fleet-service-contract")
PAGE = (1240, 1754)  # A4 at 150 dpi
#: A letter is drawn at twice the size of its page, so that its edges are smooth.
SCALE = 2

#: A block of Markdown: a heading's level or a kind, and lines of text or rows of cells.
Block = tuple[int | str, list[Any]]


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, language in WORD_FILES.items():
        (target / f"{name}.docx").write_bytes(word_file(read(f"{name}.md"), language))
    for name in CONTRACTS:
        (target / f"{name}.pdf").write_bytes(contract(read(f"{name}.md")))
    (target / "price-list.xlsx").write_bytes(price_list())
    (target / "battery-test.eml").write_bytes(battery_mail())
    (target / "plan-2027.pptx").write_bytes(slide_deck())
    (target / "landlord-letter-scan.pdf").write_bytes(scanned_letter(read("landlord-letter.txt")))
    (target / "receipt-tidewater.jpg").write_bytes(photographed_receipt(read("receipt.txt")))


def read(name: str) -> str:
    return (SOURCES / name).read_text()


def blocks(text: str) -> Iterator[Block]:
    """Headings, paragraphs and tables, which is all of Markdown that the sources use."""
    for part in text.strip().split("\n\n"):
        if part.startswith("#"):
            marks, _, title = part.partition(" ")
            yield len(marks), [title]
        elif part.startswith("|"):
            rows = [
                [cell.strip() for cell in line.strip("|").split("|")] for line in part.split("\n")
            ]
            yield "table", [rows[0], *rows[2:]]
        else:
            yield "text", [part.replace("\n", " ")]


def word_file(text: str, language: str) -> bytes:
    """A Word file with headings and tables."""
    document = Document()
    for kind, lines in blocks(text):
        if isinstance(kind, int):
            document.add_heading(lines[0], level=kind - 1)
        elif kind == "table":
            table = document.add_table(rows=0, cols=len(lines[0]), style="Light Grid Accent 1")
            for row in lines:
                for cell, words in zip(table.add_row().cells, row, strict=True):
                    cell.text = words
        else:
            document.add_paragraph(lines[0])
    core = document.core_properties
    core.title, core.author, core.language = next(blocks(text))[1][0], "Wrenferry", language
    core.created = core.modified = MADE_AT.replace(tzinfo=None)
    file = BytesIO()
    document.save(file)
    return same_zip(file.getvalue())


def contract(text: str) -> bytes:
    """A PDF with headings, numbered pages and tables."""

    class Pages(FPDF):
        def footer(self) -> None:
            self.set_y(-15)
            self.set_font("Helvetica", size=8)
            self.cell(0, 8, f"Page {self.page_no()}", align="C")

    pdf = Pages()
    pdf.set_creation_date(MADE_AT)
    pdf.set_margins(25, 22)
    pdf.set_auto_page_break(auto=True, margin=22)
    pdf.add_page()
    for kind, lines in blocks(text):
        if isinstance(kind, int):
            pdf.set_font("Helvetica", "B", 17 if kind == 1 else 13)
            pdf.ln(3)
            pdf.multi_cell(0, 8, lines[0], new_x="LMARGIN", new_y="NEXT", align="L")
            pdf.ln(1)
            if kind == 1:
                pdf.set_title(lines[0])
        elif kind == "table":
            pdf.set_font("Helvetica", size=9)
            bold = FontFace(emphasis="BOLD", fill_color=(226, 232, 238))
            with pdf.table(headings_style=bold, line_height=6, text_align="LEFT") as table:
                for cells in lines:
                    row = table.row()
                    for cell in cells:
                        row.cell(cell)
            pdf.ln(3)
        else:
            pdf.set_font("Helvetica", size=11)
            pdf.multi_cell(0, 6, lines[0], new_x="LMARGIN", new_y="NEXT", align="L")
            pdf.ln(2)
    return bytes(pdf.output())


def price_list() -> bytes:
    """A workbook with a sheet for bikes, parts and service each."""
    book = Workbook()
    book.remove(book.active)
    with (SOURCES / "prices.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    for row in rows:
        if row[0] not in book.sheetnames:
            sheet = book.create_sheet(row[0])
            sheet.append(head[1:])
            sheet.column_dimensions["B"].width = 42
            for cell in sheet[1]:
                cell.font = Font(bold=True)
        numbers = [float(value) if "." in value else int(value or 0) for value in row[3:]]
        book[row[0]].append([*row[1:3], *numbers])
    book.properties.creator = "Wrenferry"
    book.properties.title = "Price list from 1 March 2026"
    book.properties.created = book.properties.modified = MADE_AT.replace(tzinfo=None)
    file_ = BytesIO()
    book.save(file_)
    return same_zip(file_.getvalue(), modified=True)


def battery_mail() -> bytes:
    """A mail with a table attached."""
    given = tomllib.loads(read("battery-mail.toml"))
    message = EmailMessage()
    for header in ("subject", "from", "to", "date"):
        message[header.title()] = given[header]
    message["Message-ID"] = "<battery-400@wrenferry.example>"
    message.set_content(given["text"].lstrip())
    table = read(given["attachment"])
    message.add_attachment(table, subtype="csv", filename=given["attachment"])
    message.set_boundary("wrenferry-battery-test")
    return message.as_bytes(policy=SMTP)


def slide_deck() -> bytes:
    """A title slide, and slides with points and notes."""
    given = tomllib.loads(read("plan-2027.toml"))
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[0])
    slide.shapes.title.text, slide.placeholders[1].text = given["title"], given["subtitle"]
    for each in given["slides"]:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = each["title"]
        slide.placeholders[1].text = "\n".join(each["points"])
        if "notes" in each:
            slide.notes_slide.notes_text_frame.text = each["notes"]
    core = deck.core_properties
    core.title, core.author = f"{given['title']}, {given['subtitle']}", "Wrenferry"
    core.created = core.modified = MADE_AT.replace(tzinfo=None)
    file = BytesIO()
    deck.save(file)
    return same_zip(file.getvalue())


def same_zip(data: bytes, *, modified: bool = False) -> bytes:
    """The Office file with the time of its parts set; `modified`: openpyxl writes the time of
    saving, too."""
    file = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if modified and name == "docProps/core.xml":
                start = part.index(b">", part.index(b"<dcterms:modified")) + 1
                end = part.index(b"<", start)
                part = part[:start] + f"{MADE_AT:%Y-%m-%dT%H:%M:%SZ}".encode() + part[end:]
            info = zipfile.ZipInfo(name, MADE_AT.timetuple()[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, part, compresslevel=9)
    return file.getvalue()


def drawn(text: str, size: tuple[int, int], *, font_size: int, at: tuple[int, int]) -> Image.Image:
    """Black text on white; spaces keep their width, so that columns stay columns."""
    page = Image.new("L", size, 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(font_size)
    for number, line in enumerate(text.rstrip().split("\n")):
        y = at[1] + number * font_size * 1.5
        name, _, value = line.rpartition("  ")
        if name.strip():  # what stands behind two spaces is at the right margin
            draw.text((at[0], y), name.rstrip(), 0, font)
            draw.text((size[0] - at[0], y), value, 0, font, anchor="ra")
        else:
            draw.text((at[0], y), line, 0, font)
    return page


def noisy(page: Image.Image, amount: float, seed: int) -> Image.Image:
    """With the grain of a scanner or camera."""
    grain = random.Random(seed)  # noqa: S311 - the same picture each time
    size = page.size[0] * page.size[1]
    table = [max(0, min(255, round(128 + grain.gauss(0, amount)))) for _ in range(65_536)]
    noise = bytes(table[grain.getrandbits(16)] for _ in range(size))
    return ImageChops.add(page, Image.frombytes("L", page.size, noise), 1, -128)


def scanned_letter(text: str) -> bytes:
    """A PDF of one picture: a letter that lay a little askew on a scanner."""
    width, height = PAGE
    page = drawn(text, (width * SCALE, height * SCALE), font_size=26 * SCALE, at=(330, 380))
    page = page.rotate(1.1, Image.Resampling.BICUBIC, fillcolor=255).resize(
        PAGE, Image.Resampling.LANCZOS
    )
    page = noisy(page.point(lambda value: 38 + value * 205 // 255), 9, 4417)
    picture = BytesIO()
    page.save(picture, "JPEG", quality=55)
    pdf = FPDF()
    pdf.set_creation_date(MADE_AT)
    pdf.set_title("Scan 2026-04-29")
    pdf.add_page()
    pdf.image(picture, 0, 0, 210, 297)
    return bytes(pdf.output())


def photographed_receipt(text: str) -> bytes:
    """A picture of a receipt on a table, from aslant and with a shadow over one side."""
    paper = drawn(text, (760, 1000), font_size=32, at=(50, 60)).convert("RGB")
    size = (1080, 1380)
    table = Image.new("RGB", size, (104, 78, 56))
    corners = [(150, 120), (118, 1250), (968, 1292), (905, 148)]
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).polygon(corners, 255)
    # The map of the picture's points to those of the paper, from the four corners.
    flat = [(0, 0), (0, 1000), (760, 1000), (760, 0)]
    coefficients = perspective(corners, flat)
    laid = paper.transform(
        size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC
    )
    table.paste(laid, mask=mask)
    light = (
        Image.linear_gradient("L")
        .rotate(65)
        .crop((38, 38, 218, 218))
        .resize(size)
        .point(lambda v: 150 + v * 105 // 255)
    )
    lit = ImageChops.multiply(table, Image.merge("RGB", [light] * 3))
    bands = [noisy(band, 6, seed) for seed, band in enumerate(lit.split())]
    photo = Image.merge("RGB", bands).filter(ImageFilter.GaussianBlur(0.7))
    picture = BytesIO()
    photo.save(picture, "JPEG", quality=72)
    return picture.getvalue()


def perspective(points: list[tuple[int, int]], images: list[tuple[int, int]]) -> tuple[float, ...]:
    """The eight coefficients of the projective map of four points to four others, by Gaussian
    elimination."""
    rows: list[list[float]] = []
    for (x, y), (u, v) in zip(points, images, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y, u])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y, v])
    for column in range(8):
        pivot = max(range(column, 8), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(8):
            if row != column:
                factor = rows[row][column]
                rows[row] = [
                    value - factor * own for value, own in zip(rows[row], rows[column], strict=True)
                ]
    return tuple(row[8] for row in rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO / "firm")

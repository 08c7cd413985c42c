"""OCR of one page: words, their places, their order, pages that are turned, and pictures that must
not be read."""

import io
import os
import shutil
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from reading.ocr.layout import arrange
from reading.ocr.lines import Line, Word
from reading.ocr.page import read_page
from reading.parsers import ParseError, parse
from reading.parsers.base import ReadPage
from reading.parsers.boxes import Box, turned_box
from reading.parsers.picture import needs_threads
from reading.sandbox import ParseRequest, ParserLimits, run_in_sandbox
from reading.sandbox.protocol import page_from_fields
from reading.tests.factories_pictures import (
    HEIC,
    columns_picture,
    copied,
    edit_distance,
    page_picture,
    picture_file,
    receipt_picture,
)

GERMAN = "Die Größe überraschte Frau Müller: zwölf Übungen für 12,50 € in der SCHÖNEN Straße."
OTHERS = (
    "¿Cuántos años tiene la señora Núñez? L'élève a déjà reçu ça à Noël; cœur, ÉCOLE et garçon."
)


def read(
    picture: Image.Image, *, engine: str = "rapidocr", languages: Sequence[str] = ()
) -> ReadPage:
    data = picture_file(picture)
    return read_page(data, page=1, engine=engine, languages=list(languages), threads=1)


def strip(text: str, dpi: int = 200) -> Image.Image:
    """The upper part of a page, which has all of its text."""
    page, lines = page_picture(text, dpi=dpi)
    return page.crop((0, 0, page.width, round(dpi * (1.2 + 0.25 * len(lines)))))


def error_share(text: str, wanted: str) -> float:
    return edit_distance(" ".join(text.split()), wanted) / len(wanted)


def words(page: ReadPage) -> dict[str, list[float]]:
    return {text: box for line in page.lines for text, *box in line["words"]}


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
def test_words_are_read_where_they_are_however_the_page_lies(turned: int) -> None:
    picture = strip(f"{GERMAN} {OTHERS}")
    page = read(picture.rotate(-turned, expand=True))
    assert error_share(page.text, f"{GERMAN} {OTHERS}") <= 0.015
    assert page.rotation == -turned % 360
    assert page.confidence > 0.95
    # In the upright page the first word begins at the margin, and ends before the second.
    width, height = picture.size if turned % 180 == 0 else picture.size[::-1]
    die, groesse = (
        turned_box(
            Box(box[0] * width, box[1] * height, box[2] * width, box[3] * height),
            page.rotation, width, height,
        )
        for box in (words(page)["Die"], words(page)["Größe"])
    )  # fmt: skip
    assert die.x0 == pytest.approx(180, abs=12)
    assert die.x0 < die.x1 < groesse.x0 + 8
    assert groesse.x1 - groesse.x0 == pytest.approx(94, abs=25)
    assert abs(die.y0 - groesse.y0) < 8


def test_a_bad_copy_is_read() -> None:
    page = read(copied(strip(GERMAN, dpi=150), skew=1.5))
    assert error_share(page.text, GERMAN) <= 0.03


def test_columns_are_read_one_after_the_other() -> None:
    columns = ("The left column tells of the lighthouse keeper who counted ships. " * 3,
               "The right column tells of his sister who repaired the clocks. " * 3)  # fmt: skip
    text = " ".join(read(columns_picture(columns, heading="Two lives by the sea")).text.split())
    assert text == f"Two lives by the sea {columns[0]}{columns[1]}".strip()


def test_a_row_of_a_receipt_is_a_line() -> None:
    rows = [("2 x Milchkaffee", "7,80"), ("1 x Käsekuchen", "4,50"), ("SUMME EUR", "12,30")]
    text = read(receipt_picture(rows)).text
    assert text.split("\n") == [" | ".join(row) for row in rows]


def line(text: str, x: float, y: float, width: float, *, height: float = 20) -> Line:
    return Line((Word(text, Box(x, y, x + width, y + height)),), 1.0)


def test_hyphens_are_joined_and_paragraphs_kept_apart() -> None:
    lines = [
        line("A long line that ends with a hyphen-", 0, 0, 600),
        line("ated word and goes on to the right edge", 0, 30, 600),
        line("and ends here.", 0, 60, 200),
        line("Another paragraph, after some room.", 0, 130, 580),
    ]
    ordered, text = arrange(lines[::-1])
    assert ordered == lines
    assert text == (
        "A long line that ends with a hyphenated word and goes on to the right edge and ends here."
        "\n\nAnother paragraph, after some room."
    )


def narrow_png(width: int, height: int) -> bytes:
    """A PNG of one bit a pixel, all of them alike."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    compressor = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    packed = b"".join(
        compressor.compress(row * min(1000, height - n)) for n in range(0, height, 1000)
    )
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = chunk(b"IDAT", packed + compressor.flush())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


NOISE = picture_file(
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (300, 300), np.uint8)), "jpeg"
)


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (narrow_png(1, 1_000_000), "no_text", "1 × 1,000,000: too narrow"),
        (narrow_png(40_000, 40_000), "too_large", "40,000 × 40,000 pixels"),
        (b"\x89PNG\r\n\x1a\n", "malformed", "its format is unknown"),
        (b"\0\0\0\x18ftypheic" + bytes(40), "malformed", "damaged or incomplete"),
    ],
    ids=["narrow", "bomb", "empty", "heic"],
)
def test_pictures_that_cannot_be_read_say_so(data: bytes, code: str, reason: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse(data, name="a.png")
    assert raised.value.code == code
    assert reason in raised.value.message


def test_a_broken_photograph_says_so_when_it_is_decoded() -> None:
    with pytest.raises(ParseError, match="is damaged or incomplete"):
        read_page(NOISE[: len(NOISE) // 2], page=1, engine="rapidocr", languages=[], threads=1)


def test_pages_of_a_tiff_are_counted_as_far_as_they_may_go() -> None:
    pages = [Image.new("1", (8, 8))] * 12
    data = picture_file(pages[0], "tiff", save_all=True, append_images=pages[1:])
    assert parse(data, name="a.tif").scans == tuple(range(1, 13))
    with pytest.raises(ParseError, match="more than 10 pages"):
        parse(data, name="a.tif", max_pages=10)


def test_a_picture_becomes_the_text_that_was_read_and_nothing_that_a_camera_wrote() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Secret Camera"
    data = picture_file(Image.new("L", (60, 40)), "jpeg", exif=exif)
    document = parse(data, name="a.jpg", page_texts={"1": "Total 8,00"})
    assert (document.text, document.scans, document.metadata) == ("Total 8,00", (), {})
    assert document.media_type == "image/jpeg"
    with pytest.raises(ParseError, match="No text was recognized"):
        parse(data, name="a.jpg", page_texts={"1": " "})


def test_the_parser_process_reads_a_page_within_its_limits_or_is_told_to_stop() -> None:
    request = ParseRequest(
        name="a.png",
        data=picture_file(strip("Read me.")),
        task="read_page",
        options={"page": 1, "engine": "rapidocr", "languages": [], "threads": 1},
    )
    limits = ParserLimits(memory_bytes=1536 * 1024**2)
    assert run_in_sandbox(request, page_from_fields, limits=limits).text == "Read me."

    def stop() -> None:
        raise InterruptedError

    dense = ParseRequest(
        name="b.png",
        data=picture_file(page_picture(GERMAN * 30)[0]),
        task="read_page",
        options=request.options,
    )
    with pytest.raises(InterruptedError):
        run_in_sandbox(dense, page_from_fields, limits=limits, while_waiting=stop)


@pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="Tesseract is not installed (tesseract-ocr)"
)
def test_tesseract_reads_what_it_has_the_language_of() -> None:
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")
    page = read(strip("The lighthouse keeper counted 47 ships."), engine="auto", languages=["en"])
    assert page.engine == "Tesseract eng"
    assert page.text == "The lighthouse keeper counted 47 ships."
    assert words(page)["47"][0] > words(page)["counted"][0]
    assert read(strip("Unknown."), engine="auto", languages=["xx"]).engine == "PP-OCRv6"


def test_a_picture_of_a_phone_is_decoded_by_a_process_that_may_start_threads() -> None:
    assert needs_threads(HEIC)
    document = parse(HEIC, name="IMG_1.heic")
    assert (document.media_type, document.scans) == ("image/heic", (1,))
    options = {"page": 1, "width": 64, "rotation": 0}
    request = ParseRequest(name="a.heic", data=HEIC, task="render_page", options=options)
    limits = ParserLimits(starts_programs=True)
    image = run_in_sandbox(request, lambda _, body: bytes(body), limits=limits)
    with Image.open(io.BytesIO(image)) as shown:
        assert shown.size == (64, 48)
        assert len(set(shown.convert("L").tobytes())) > 2

"""Reads one page of a file: its picture, the engine that suits it, the lines in reading order."""

from functools import cache
from typing import Any

from reading.ocr.layout import arrange
from reading.ocr.lines import Line, Picture, line_fields
from reading.ocr.pictures import image_page, pdf_page
from reading.ocr.tesseract import NAME as TESSERACT
from reading.ocr.tesseract import Tesseract, mean_confidence
from reading.parsers.base import ParseError, ReadPage
from reading.parsers.boxes import Box, turned_box
from reading.parsers.registry import is_pdf

#: Tesseract is taken at its word from this confidence: print that is flat and clean. On photographs
#: and bad copies it has less, and PP-OCR reads them better.
TESSERACT_TRUSTED = 0.92


def read_page(
    data: bytes, *, page: int, engine: str, languages: list[str], threads: int
) -> ReadPage:
    """Read page `page`, from 1, of a PDF or image file.

    `engine` is `auto`, `rapidocr` or `tesseract`; `languages` are the ISO codes of the document's
    languages where they are known. Raises ParseError.
    """
    picture = pdf_page(data, page) if is_pdf(data) else image_page(data, page)
    lines, rotation, name = _read_lines(picture, engine, languages, threads)
    ordered, text = arrange(lines)
    height, width = picture.shape
    # The engine's boxes are those of the turned picture: turn them back.
    size = (height, width) if rotation in {90, 270} else (width, height)
    boxes = [
        [_fractions(turned_box(word.box, -rotation, *size), width, height) for word in line.words]
        for line in ordered
    ]
    return ReadPage(
        text=text,
        lines=line_fields(ordered, boxes),
        confidence=round(mean_confidence(ordered), 3) if ordered else 1.0,
        rotation=rotation,
        engine=name,
    )


def _read_lines(
    picture: Picture, engine: str, languages: list[str], threads: int
) -> tuple[list[Line], int, str]:
    if engine != "rapidocr":
        tesseract = _tesseract()
        known = tesseract.language_data(languages)
        if engine == "tesseract":
            data = known or tesseract.default_data
            if not data:
                raise ParseError(
                    "unreadable",
                    "RAGSITE_OCR_ENGINE is tesseract, but Tesseract or its language data is not"
                    " installed. Install both, or set it to auto.",
                )
            return (*tesseract.read(picture, data), f"{TESSERACT} {data}")
        if known:
            lines, rotation = tesseract.read(picture, known)
            if mean_confidence(lines) >= TESSERACT_TRUSTED:
                return lines, rotation, f"{TESSERACT} {known}"
    from reading.ocr import pp_ocr  # noqa: PLC0415 (its libraries take 150 ms)

    try:
        return (*_paddle(threads).read(picture), pp_ocr.NAME)
    except pp_ocr.MissingWeights as error:
        raise ParseError("unreadable", f"OCR does not work: {error}.") from error


@cache
def _tesseract() -> Tesseract:
    return Tesseract()


@cache
def _paddle(threads: int) -> Any:
    from reading.ocr.pp_ocr import PaddleOcr  # noqa: PLC0415 (its libraries take 150 ms)

    return PaddleOcr(threads)


def _fractions(box: Box, width: int, height: int) -> Box:
    return Box(box.x0 / width, box.y0 / height, box.x1 / width, box.y1 / height)

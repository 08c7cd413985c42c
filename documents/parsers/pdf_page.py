"""A page of a PDF as pdfium reads it: its words with their boxes, their size and weight. Begin with
`page_words`."""

import ctypes
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import pypdfium2.raw as pdfium
from pypdfium2 import PdfPage, PdfTextPage


class Word(NamedTuple):
    """A word and its box, as fractions of the page's width and height from the top left corner of
    the page as it is shown, turned and cropped."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


class PlacedWord(NamedTuple):
    """A word and its box in points from the top left corner of the shown page.

    `size` is the font's, in points. `begins_line` is pdfium's opinion, by the order of the content.
    `is_sideways` where the text does not run from left to right along the page.
    """

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    is_bold: bool
    begins_line: bool
    is_sideways: bool


class PageArea:
    """The shown part of a page: `width` and `height` in points, and where points of the PDF's own
    coordinates are in it."""

    _UNITS = 1_000_000
    _STEP = 1000.0

    def __init__(self, page: PdfPage) -> None:
        self.width = max(page.get_width(), 1.0)
        self.height = max(page.get_height(), 1.0)
        x, y = self._fractions(page, 0.0, 0.0)
        right = self._fractions(page, self._STEP, 0.0)
        up = self._fractions(page, 0.0, self._STEP)
        width, height, step = self.width, self.height, self._STEP
        #: Affine, as PDF writes it: x' = a·x + c·y + e, y' = b·x + d·y + f.
        self._matrix = (
            (right[0] - x) * width / step,
            (right[1] - y) * height / step,
            (up[0] - x) * width / step,
            (up[1] - y) * height / step,
            x * width,
            y * height,
        )

    def _fractions(self, page: PdfPage, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page, 0, 0, self._UNITS, self._UNITS, 0, x, y, across, down)
        return across.value / self._UNITS, down.value / self._UNITS

    def box(
        self, left: float, bottom: float, right: float, top: float
    ) -> tuple[float, float, float, float]:
        """x0, y0, x1 and y1 in points from the top left corner of a box in PDF coordinates."""
        a, b, c, d, e, f = self._matrix
        if not b and not c:
            xs, ys = (a * left + e, a * right + e), (d * bottom + f, d * top + f)
        else:
            xs = (a * left + c * bottom + e, a * right + c * top + e)
            ys = (b * left + d * bottom + f, b * right + d * top + f)
        return min(xs), min(ys), max(xs), max(ys)

    def direction(self, x: float, y: float) -> tuple[float, float]:
        """A vector of PDF coordinates as it is shown."""
        a, b, c, d, _, _ = self._matrix
        return a * x + c * y, b * x + d * y


#: pdfium's marks of a hyphen at the end of a line, behind which the next line follows at once.
_LINE_END_HYPHENS = "\x02\ufffe"
_WORD = re.compile(rf"[^\s{_LINE_END_HYPHENS}]+[{_LINE_END_HYPHENS}]?|[{_LINE_END_HYPHENS}]")
_BOLD_NAME = re.compile(r"bold|black|heavy|demi", re.I)
_BOLD_WEIGHT = 600
_NAME_BYTES = 128


def page_words(page: PdfPage) -> list[Word]:
    """The words of a page in the order of its content, which need not be that of reading. A hyphen
    at the end of a line stays; ligatures are single letters where the font says so."""
    area = PageArea(page)
    text_page = page.get_textpage()
    try:
        return [
            Word(word, x0 / area.width, y0 / area.height, x1 / area.width, y1 / area.height)
            for word, _, _, _, (x0, y0, x1, y1) in _boxed_words(text_page, area)
        ]
    finally:
        text_page.close()


def placed_words(text_page: PdfTextPage, area: PageArea) -> list[PlacedWord]:
    """The words of a page in the order of its content, with the size and weight of their first
    letters."""
    raw = text_page.raw
    matrix, flags = pdfium.FS_MATRIX(), ctypes.c_int()
    name = ctypes.create_string_buffer(_NAME_BYTES)
    words: list[PlacedWord] = []
    style = (0.0, False, False)
    last_height = -1.0
    for word, first, _, begins_line, box in _boxed_words(text_page, area):
        # The font rarely changes within a line; where it does, the height of its letters does too.
        height = box[3] - box[1]
        if begins_line or abs(height - last_height) > 0.01:
            last_height = height
            pdfium.FPDFText_GetMatrix(raw, first, matrix)
            scale = math.hypot(matrix.c, matrix.d) or 1.0
            across, down = area.direction(matrix.a, matrix.b)
            length = pdfium.FPDFText_GetFontInfo(raw, first, name, _NAME_BYTES, flags)
            style = (
                pdfium.FPDFText_GetFontSize(raw, first) * scale,
                pdfium.FPDFText_GetFontWeight(raw, first) >= _BOLD_WEIGHT
                or (length > 0 and _BOLD_NAME.search(name.value.decode("latin-1")) is not None),
                abs(down) > abs(across) or across < 0,
            )
        size, is_bold, is_sideways = style
        words.append(PlacedWord(word, *box, size, is_bold, begins_line, is_sideways))
    return words


def _boxed_words(
    text_page: PdfTextPage, area: PageArea
) -> Iterator[tuple[str, int, int, bool, tuple[float, float, float, float]]]:
    """Text, indices of the first and last character, whether a line begins, and the box."""
    raw, rect = text_page.raw, pdfium.FS_RECTF()
    get_box, place = pdfium.FPDFText_GetLooseCharBox, area.box
    text = page_characters(text_page)
    end = 0
    begins_line = True
    for match in _WORD.finditer(text):
        first, last = match.start(), match.end() - 1
        begins_line = begins_line or "\n" in text[end:first]
        end = match.end()
        word = match[0]
        if not get_box(raw, first, rect):
            continue
        left, bottom, right, top = rect.left, rect.bottom, rect.right, rect.top
        if last > first and get_box(raw, last, rect):
            left, bottom = min(left, rect.left), min(bottom, rect.bottom)
            right, top = max(right, rect.right), max(top, rect.top)
        is_broken = word[-1] in _LINE_END_HYPHENS
        if is_broken:
            word = word[:-1] + "-"
        yield word, first, last, begins_line, place(left, bottom, right, top)
        begins_line = is_broken


def page_characters(text_page: PdfTextPage) -> str:
    """The characters of a page, one for each of pdfium's: those that have no meaning as text are
    U+0000."""
    raw, count = text_page.raw, text_page.count_chars()
    buffer = (ctypes.c_ushort * (2 * count + 2))()
    written = pdfium.FPDFText_GetText(raw, 0, count, buffer)
    text = bytes(memoryview(buffer)[: max(written - 1, 0)]).decode("utf-16-le", "replace")
    if len(text) == count:
        return text
    codes = (pdfium.FPDFText_GetUnicode(raw, index) for index in range(count))
    return "".join(chr(code) if code <= 0x10FFFF else "\0" for code in codes)

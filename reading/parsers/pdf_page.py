"""A page of a PDF as pdfium reads it: words with their boxes, ruling lines, web links, and whether
its text can be trusted. Begin with `page_words` or, for the layout, `read_page`."""

import ctypes
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from statistics import median_low
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium
from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

from reading.parsers.normalise import normalise_text
from reading.parsers.pdf_bidi import (
    RIGHT_TO_LEFT,
    Glyph,
    is_right_to_left,
    right_to_left_lines,
)


class Word(NamedTuple):
    """A word and its box, as fractions of the page's width and height from the top left corner of
    the page as it is shown, turned and cropped."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


Box = tuple[float, float, float, float]


class TextRun(NamedTuple):
    """A word, or words of one font with usual spaces between them, and their box in points from the
    top left corner of the shown page.

    `size` is the font's, in points. `begins_line` is pdfium's opinion, by the order of the content.
    `angle` is where the text runs: 0 to the right, 90 downwards, 180 to the left, 270 upwards.
    `link` is the web address behind it. `is_mirrored`: x counts from the right edge of a page that
    is read from right to left, so that its layout is found like that of any other.
    """

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    is_bold: bool
    begins_line: bool
    angle: int = 0
    is_monospaced: bool = False
    link: str = ""
    is_mirrored: bool = False


@dataclass(slots=True)
class PageContent:
    """What the layout of a page is made of, in points from the top left corner.

    `rules` are boxes of lines, nearly without height or width. `picture_share` is the part of the
    page that pictures cover, `drawing_points` the number of points of all its lines and curves,
    `words` how many words the runs have.
    """

    width: float
    height: float
    runs: list[TextRun] = field(default_factory=list)
    rules: list[Box] = field(default_factory=list)
    picture_share: float = 0.0
    drawing_points: int = 0
    words: int = 0
    unmapped_words: int = 0
    invisible_words: int = 0
    is_right_to_left: bool = False


_LABEL_CHARACTERS = 20
_MAX_TEXT_BYTES = 200_000


def page_label(document: PdfDocument, number: int) -> str:
    """What stands on page `number`, such as `iv`; empty where that is its number."""
    label = wide_text(pdfium.FPDF_GetPageLabel, document, number - 1)
    label = " ".join(normalise_text(label).split())[:_LABEL_CHARACTERS]
    return "" if label == str(number) or not label.isprintable() else label


def wide_text(read: Any, *arguments: object, most: int = _MAX_TEXT_BYTES) -> str:
    """The UTF-16 text that a function of pdfium writes into a buffer; empty if there is none, or
    more than `most` bytes."""
    size = read(*arguments, None, 0)
    if not 2 < size <= most:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(*arguments, ctypes.cast(buffer, read.argtypes[-2]), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")


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
        a, b, c, d, _, _ = self._matrix
        self.is_upright = not b and not c and a > 0 > d

    def _fractions(self, page: PdfPage, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page, 0, 0, self._UNITS, self._UNITS, 0, x, y, across, down)
        return across.value / self._UNITS, down.value / self._UNITS

    def box(self, left: float, bottom: float, right: float, top: float) -> Box:
        """x0, y0, x1 and y1 in points from the top left corner of a box in PDF coordinates."""
        a, b, c, d, e, f = self._matrix
        if self.is_upright:
            return a * left + e, d * top + f, a * right + e, d * bottom + f
        xs = (a * left + c * bottom + e, a * right + c * top + e)
        ys = (b * left + d * bottom + f, b * right + d * top + f)
        return min(xs), min(ys), max(xs), max(ys)

    def angle(self, x: float, y: float) -> int:
        """Where a vector of PDF coordinates points to on the page: 0, 90, 180 or 270 degrees,
        clockwise."""
        a, b, c, d, _, _ = self._matrix
        across, down = a * x + c * y, b * x + d * y
        if abs(down) > abs(across):
            return 90 if down > 0 else 270
        return 180 if across < 0 else 0


#: pdfium's marks of a hyphen at the end of a line, behind which the next line follows at once.
_LINE_END_HYPHENS = "\x02\ufffe"
_WORD = re.compile(rf"[^\s{_LINE_END_HYPHENS}]+[{_LINE_END_HYPHENS}]?|[{_LINE_END_HYPHENS}]")
_BOLD_NAME = re.compile(r"bold|black|heavy|demi", re.I)
_BOLD_WEIGHT = 600
_MONOSPACED_NAME = re.compile(
    r"mono|courier|consol|typewriter|nimbusmon|cmtt|lmtt|menlo|sourcecode|firacode", re.I
)
_FIXED_PITCH = 1
#: Width of a letter on average, in sizes of the font; that of a typewriter has 0.6.
_MAX_ADVANCE = 0.62
_SPACES_SEEN = 8
#: Points; no page is larger.
_MAX_SIZE = 14_400.0
_NAME_BYTES = 128
_INVISIBLE = 3
_SPACE = re.compile(" ")
#: An address instead of a pointer object, which would be made for every word.
_text_object = ctypes.CFUNCTYPE(ctypes.c_void_p, pdfium.FPDF_TEXTPAGE, ctypes.c_int)(
    ctypes.cast(pdfium.FPDFText_GetTextObject, ctypes.c_void_p).value or 0
)


def page_words(page: PdfPage) -> list[Word]:
    """The words of a page in the order of its content, which need not be that of reading. A hyphen
    at the end of a line stays; ligatures are single letters where the font says so."""
    area = PageArea(page)
    content = PageContent(area.width, area.height)
    text_page = page.get_textpage()
    try:
        _place_runs(text_page, area, content, by_word=True)
    finally:
        text_page.close()
    return [
        Word(word.text, word.x0 / area.width, word.y0 / area.height, word.x1 / area.width,
             word.y1 / area.height)
        for word in content.runs
    ]  # fmt: skip


def read_page(page: PdfPage) -> PageContent:
    """Runs in the order of the page's content, the values of its form fields, its lines and
    links. Where there are links, or lines that may be a table's, every word is a run."""
    area = PageArea(page)
    content = PageContent(area.width, area.height)
    _read_objects(page, area, content)
    links = _web_links(page, area)
    text_page = page.get_textpage()
    try:
        _place_runs(text_page, area, content, by_word=bool(links) or len(content.rules) > 4)
    finally:
        text_page.close()
    content.runs += list(_annotation_texts(page, area, content.runs))
    if links:
        content.runs = [
            run._replace(link=next((url for box, url in links if _is_inside(run, box)), ""))
            for run in content.runs
        ]
    if content.is_right_to_left and not any(run.angle for run in content.runs):
        _mirror(content)
    return content


def _mirror(content: PageContent) -> None:
    """Let x count from the right edge."""
    width = content.width
    content.runs = [
        run._replace(x0=width - run.x1, x1=width - run.x0, is_mirrored=True) for run in content.runs
    ]
    content.rules = [(width - x1, y0, width - x0, y1) for x0, y0, x1, y1 in content.rules]


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


_LINE = re.compile(rf"[^\r\n{_LINE_END_HYPHENS}]+[{_LINE_END_HYPHENS}]?|[{_LINE_END_HYPHENS}]")


def _place_runs(
    text_page: PdfTextPage, area: PageArea, content: PageContent, *, by_word: bool
) -> None:
    """The runs with their styles, and how many words are unmapped or invisible."""
    raw = text_page.raw
    text = page_characters(text_page)
    has_rtl = not text.isascii() and RIGHT_TO_LEFT.search(text) is not None
    content.is_right_to_left = has_rtl and is_right_to_left(text)
    style = _StyleReader(text_page, area, has_picture=content.picture_share > 0)
    rect, get_box = pdfium.FS_RECTF(), pdfium.FPDFText_GetLooseCharBox
    begins_line = True
    end = 0
    for line in _LINE.finditer(text):
        start, stop = line.span()
        if len(_LONE_LETTER.findall(line[0])) >= _MIN_LONE_LETTERS:
            text = _without_gaps(text, line.span(), raw)
        begins_line = begins_line or start > end
        end = stop
        if (
            has_rtl
            and area.is_upright
            and (
                RIGHT_TO_LEFT.search(text, start, stop)
                or (content.is_right_to_left and not any(map(str.isalpha, text[start:stop])))
            )
        ):
            _place_rtl_line(text, line.span(), text_page, style, area, content)
            continue
        first, behind = _stripped(text, start, stop)
        if first < behind and not by_word and style.is_one_run(text, first, behind):
            pieces = [(first, behind)]
        else:
            pieces = [match.span() for match in _WORD.finditer(text, start, stop)]
        for first, behind in pieces:
            if not get_box(raw, first, rect):
                continue
            left, bottom, right, top = rect.left, rect.bottom, rect.right, rect.top
            if behind - first > 1 and get_box(raw, behind - 1, rect):
                left, bottom = min(left, rect.left), min(bottom, rect.bottom)
                right, top = max(right, rect.right), max(top, rect.top)
            words = text[first:behind].replace(_NO_SPACE, "")
            if words[-1] in _LINE_END_HYPHENS:
                words = words[:-1] + "-"
            style.read(first)
            style.add_run(content, words, area.box(left, bottom, right, top), begins_line)
            begins_line = False
        begins_line = text[stop - 1] in _LINE_END_HYPHENS


_LONE_LETTER = re.compile(r"(?<!\S)[^\W\d_](?!\S)")
_MIN_LONE_LETTERS = 3
_NO_SPACE = "\u200b"
#: In sizes of the font, and in steps from one letter to the next.
_MAX_STEP, _MAX_LETTER_STEP = 1.3, 1.35


def _without_gaps(text: str, span: tuple[int, int], raw: Any) -> str:
    """Letters that are spaced out are words again: of the spaces that pdfium found in their gaps
    those are marked that are no wider than most steps from letter to letter."""
    x, y = ctypes.c_double(), ctypes.c_double()
    places: list[tuple[int, float]] = []
    for index in range(*span):
        if not text[index].isspace() and pdfium.FPDFText_GetCharOrigin(raw, index, x, y):
            places.append((index, x.value))
    steps = [(right - left, at, to) for (at, left), (to, right) in pairwise(places)]
    usual = median_low([step for step, _, _ in steps]) if steps else 0.0
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFText_GetMatrix(raw, span[0], matrix)
    size = pdfium.FPDFText_GetFontSize(raw, span[0]) * math.hypot(matrix.c, matrix.d)
    if not 0 < usual <= _MAX_STEP * size:  # columns of single letters
        return text
    letters = list(text)
    for step, at, to in steps:
        is_gap = to == at + 2 and pdfium.FPDFText_IsGenerated(raw, at + 1) == 1
        if is_gap and 0 < step <= _MAX_LETTER_STEP * usual:
            letters[at + 1] = _NO_SPACE
    return "".join(letters)


def _place_rtl_line(
    text: str,
    span: tuple[int, int],
    text_page: PdfTextPage,
    style: "_StyleReader",
    area: PageArea,
    content: PageContent,
) -> None:
    """The words of a line with Arabic or Hebrew: pdfium's order is that of some programs only."""
    raw = text_page.raw
    rect, x, y = pdfium.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    boxes: dict[int, Box] = {}
    glyphs: list[Glyph] = []
    for index in range(*span):
        if pdfium.FPDFText_IsGenerated(raw, index) == 1 or not pdfium.FPDFText_GetLooseCharBox(
            raw, index, rect
        ):
            continue
        pdfium.FPDFText_GetCharOrigin(raw, index, x, y)
        style.read(index)
        character = " " if text[index].isspace() else text[index]
        boxes[index] = rect.left, rect.bottom, rect.right, rect.top
        glyphs.append(
            Glyph(character, rect.left, rect.right, x.value, y.value, style.font[0], index)
        )
    is_rtl = content.is_right_to_left or is_right_to_left(text[slice(*span)])
    for words in right_to_left_lines(glyphs, is_rtl=is_rtl):
        # Of a part of a glyph pdfium knows what is inked only.
        bottom = min(boxes[index][1] for word in words for index in word.indexes)
        top = max(boxes[index][3] for word in words for index in word.indexes)
        for number, word in enumerate(words):
            style.read(word.indexes[0])
            left = min(boxes[index][0] for index in word.indexes)
            right = max(boxes[index][2] for index in word.indexes)
            style.add_run(content, word.text, area.box(left, bottom, right, top), not number)


def _stripped(text: str, start: int, stop: int) -> tuple[int, int]:
    while start < stop and text[start].isspace():
        start += 1
    while start < stop and text[stop - 1].isspace():
        stop -= 1
    return start, stop


class _StyleReader:
    """The style of the text object that a character belongs to: `font` is its size in points and
    whether it is bold."""

    def __init__(self, text_page: PdfTextPage, area: PageArea, *, has_picture: bool) -> None:
        self._raw = text_page.raw
        self._has_picture = has_picture
        self._area = area
        self._object: int | None = -1
        self._matrix, self._flags = pdfium.FS_MATRIX(), ctypes.c_int()
        self._name = ctypes.create_string_buffer(_NAME_BYTES)
        self._rect = pdfium.FS_RECTF()
        self.font = (0.0, False)
        self.angle = 0
        self.is_monospaced = self.is_unmapped = self.is_invisible = False

    def read(self, index: int) -> None:
        """Take the style of the character at `index`."""
        raw, matrix = self._raw, self._matrix
        text_object = _text_object(raw, index)
        if text_object == self._object:
            return
        self._object = text_object
        pdfium.FPDFText_GetMatrix(raw, index, matrix)
        length = pdfium.FPDFText_GetFontInfo(raw, index, self._name, _NAME_BYTES, self._flags)
        is_bold, self.is_monospaced = _font_style(
            self._name.value if length > 0 else b"",
            self._flags.value if length > 0 else 0,
            pdfium.FPDFText_GetFontWeight(raw, index),
        )
        scale = math.hypot(matrix.c, matrix.d) or 1.0
        size = pdfium.FPDFText_GetFontSize(raw, index) * scale
        self.font = (size if 0 < size < _MAX_SIZE else 1.0, is_bold)
        self.angle = self._area.angle(matrix.a, matrix.b)
        self.is_unmapped = pdfium.FPDFText_HasUnicodeMapError(raw, index) == 1
        # What is not seen matters only where a picture is.
        if self._has_picture and text_object:
            handle = ctypes.cast(text_object, pdfium.FPDF_PAGEOBJECT)
            mode: int = pdfium.FPDFTextObj_GetTextRenderMode(handle)
            self.is_invisible = mode == _INVISIBLE

    def add_run(self, content: PageContent, words: str, box: Box, begins_line: bool) -> None:
        """Add words with the style that was read last."""
        if not math.isfinite(sum(box)):
            box = (0.0, 0.0, 0.0, 0.0)
        content.runs.append(
            TextRun(words, *box, *self.font, begins_line, self.angle, self.is_monospaced)
        )
        count = words.count(" ") + 1
        content.words += count
        content.unmapped_words += count * self.is_unmapped
        content.invisible_words += count * self.is_invisible

    def is_one_run(self, text: str, start: int, stop: int) -> bool:
        """Whether the words of a line are of one object that has its own spaces: what parts columns
        would be none, or many of them, which pdfium shows as one."""
        raw, rect = self._raw, self._rect
        if _text_object(raw, start) != _text_object(raw, stop - 1):
            return False
        spaces = [match.start() for match in _SPACE.finditer(text, start, stop)]
        is_generated = pdfium.FPDFText_IsGenerated
        if any(is_generated(raw, at) == 1 for at in spaces[:: len(spaces) // _SPACES_SEEN + 1]):
            return False
        self.read(start)
        if self.angle or not pdfium.FPDFText_GetLooseCharBox(raw, start, rect):
            return False
        left: float = rect.left
        pdfium.FPDFText_GetLooseCharBox(raw, stop - 1, rect)
        right: float = rect.right
        return right - left <= _MAX_ADVANCE * self.font[0] * (stop - start)


@lru_cache(maxsize=256)
def _font_style(name: bytes, flags: int, weight: int) -> tuple[bool, bool]:
    """Whether a font is bold, and whether its letters have one width."""
    text = name.decode("latin-1")
    return (
        weight >= _BOLD_WEIGHT or _BOLD_NAME.search(text) is not None,
        bool(flags & _FIXED_PITCH) or _MONOSPACED_NAME.search(text) is not None,
    )


#: A page with more of them is a drawing or a map, and its lines are no table's.
_MAX_OBJECTS = 50_000
_MAX_RULES = 4_000
_MAX_SEGMENTS = 2_000
_MAX_FORM_DEPTH = 3
#: Points; what is thinner is a line.
_THIN = 3.0
#: Shorter lines are parts of drawings.
_MIN_RULE = 4.0


class _Matrix(NamedTuple):
    """From the coordinates of an object to those of the page, as PDF writes it."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def within(self, outer: "_Matrix") -> "_Matrix":
        a, b, c, d, e, f = self
        return _Matrix(
            a * outer.a + b * outer.c,
            a * outer.b + b * outer.d,
            c * outer.a + d * outer.c,
            c * outer.b + d * outer.d,
            e * outer.a + f * outer.c + outer.e,
            e * outer.b + f * outer.d + outer.f,
        )

    def point(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f


def _read_objects(page: PdfPage, area: PageArea, content: PageContent) -> None:
    """Lines, pictures and drawings, also those inside form objects."""
    left = _MAX_OBJECTS
    covered = 0.0

    def visit(parent: Any, matrix: _Matrix, depth: int) -> None:
        nonlocal left, covered
        count, get = (
            (pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject)
            if depth
            else (pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject)
        )
        for index in range(min(count(parent), left)):
            left -= 1
            item = get(parent, index)
            kind = pdfium.FPDFPageObj_GetType(item)
            if kind == pdfium.FPDF_PAGEOBJ_TEXT:
                continue
            if kind == pdfium.FPDF_PAGEOBJ_PATH:
                _read_path(item, matrix, area, content)
            elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < _MAX_FORM_DEPTH:
                visit(item, _object_matrix(item).within(matrix), depth + 1)
            elif kind in {pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_SHADING}:
                x0, y0, x1, y1 = _object_box(item, matrix, area)
                width = min(x1, area.width) - max(x0, 0.0)
                height = min(y1, area.height) - max(y0, 0.0)
                if kind == pdfium.FPDF_PAGEOBJ_IMAGE and width > 0 and height > 0:
                    covered += width * height

    visit(page, _Matrix(), 0)
    content.picture_share = min(1.0, covered / (area.width * area.height))
    if len(content.rules) > _MAX_RULES:
        content.rules = []


def _object_matrix(item: Any) -> _Matrix:
    raw = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(item, raw)
    return _Matrix(raw.a, raw.b, raw.c, raw.d, raw.e, raw.f)


def _object_box(item: Any, matrix: _Matrix, area: PageArea) -> Box:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top):
        return 0.0, 0.0, 0.0, 0.0
    return area.box(*matrix.point(left.value, bottom.value), *matrix.point(right.value, top.value))


def _read_path(item: Any, matrix: _Matrix, area: PageArea, content: PageContent) -> None:
    """The horizontal and vertical lines of a path, which may be filled rectangles."""
    count = pdfium.FPDFPath_CountSegments(item)
    content.drawing_points += max(count, 0)
    if not 2 <= count <= _MAX_SEGMENTS or len(content.rules) > _MAX_RULES:
        return
    box = _object_box(item, matrix, area)
    if _add_rule(content, box) or count == 2:
        return
    x, y = ctypes.c_float(), ctypes.c_float()
    if count in _RECTANGLE_POINTS and _is_rectangle(item, x, y):
        x0, y0, x1, y1 = box
        for side in ((x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1)):
            _add_rule(content, side)
        return
    placement = _object_matrix(item).within(matrix)
    start = last = (0.0, 0.0)
    for index in range(count):
        segment = pdfium.FPDFPath_GetPathSegment(item, index)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_BEZIERTO:
            return
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        point = placement.point(x.value, y.value)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            start = point
        else:
            _add_rule(content, area.box(*last, *point))
        last = point
        if pdfium.FPDFPathSegment_GetClose(segment):
            _add_rule(content, area.box(*last, *start))
            last = start


_RECTANGLE_POINTS = frozenset({4, 5})


def _is_rectangle(item: Any, x: ctypes.c_float, y: ctypes.c_float) -> bool:
    """Whether the first side of a path is level or upright, as those of all boxes are."""
    first = pdfium.FPDFPath_GetPathSegment(item, 0)
    pdfium.FPDFPathSegment_GetPoint(first, x, y)
    left, bottom = x.value, y.value
    second = pdfium.FPDFPath_GetPathSegment(item, 1)
    pdfium.FPDFPathSegment_GetPoint(second, x, y)
    is_line: bool = pdfium.FPDFPathSegment_GetType(second) == pdfium.FPDF_SEGMENT_LINETO
    return is_line and (x.value == left or y.value == bottom)


def _add_rule(content: PageContent, box: Box) -> bool:
    x0, y0, x1, y1 = box
    is_thin = x1 - x0 <= _THIN or y1 - y0 <= _THIN
    if is_thin and _MIN_RULE <= max(x1 - x0, y1 - y0) <= _MAX_SIZE and math.isfinite(sum(box)):
        content.rules.append(box)
    return is_thin


def _is_inside(word: TextRun, box: Box) -> bool:
    x, y = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


_MAX_LINKS = 2_000
_MAX_ADDRESS_BYTES = 2_000
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"\\|]+", re.I)


def _web_links(page: PdfPage, area: PageArea) -> list[tuple[Box, str]]:
    """Boxes of the page's links with their web addresses."""
    links: list[tuple[Box, str]] = []
    position, link, rect = ctypes.c_int(), pdfium.FPDF_LINK(), pdfium.FS_RECTF()
    buffer = ctypes.create_string_buffer(_MAX_ADDRESS_BYTES)
    while len(links) < _MAX_LINKS and pdfium.FPDFLink_Enumerate(page, position, link):
        action = pdfium.FPDFLink_GetAction(link)
        if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
            continue
        size = pdfium.FPDFAction_GetURIPath(page.pdf, action, buffer, _MAX_ADDRESS_BYTES)
        address = buffer.value.decode("utf-8", "replace").strip()
        if (
            size <= _MAX_ADDRESS_BYTES
            and _WEB_ADDRESS.fullmatch(address)
            and pdfium.FPDFLink_GetAnnotRect(link, rect)
        ):
            box = area.box(rect.left, rect.bottom, rect.right, rect.top)
            links.append((box, address.replace("(", "%28").replace(")", "%29")))
    return links


_MAX_FIELDS = 5_000
_MAX_VALUE_BYTES = 100_000
_TEXT_FIELDS = frozenset(
    {
        pdfium.FPDF_FORMFIELD_TEXTFIELD,
        pdfium.FPDF_FORMFIELD_COMBOBOX,
        pdfium.FPDF_FORMFIELD_LISTBOX,
    }
)
_CHECK_FIELDS = frozenset({pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON})
_FIELD_SIZE = 11.0


#: Text typed on the page, and notes that open when they are pointed at.
_NOTES = frozenset({pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_TEXT})


#: Marks and drawings, of which the program shows a comment beside the page.
_COMMENTED = frozenset(
    {
        pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE, pdfium.FPDF_ANNOT_SQUIGGLY,
        pdfium.FPDF_ANNOT_STRIKEOUT, pdfium.FPDF_ANNOT_CARET, pdfium.FPDF_ANNOT_SQUARE,
        pdfium.FPDF_ANNOT_CIRCLE, pdfium.FPDF_ANNOT_LINE, pdfium.FPDF_ANNOT_POLYGON,
        pdfium.FPDF_ANNOT_POLYLINE, pdfium.FPDF_ANNOT_INK, pdfium.FPDF_ANNOT_STAMP,
    }
)  # fmt: skip


def _annotation_texts(page: PdfPage, area: PageArea, runs: Sequence[TextRun]) -> Iterator[TextRun]:
    """What is filled in the page's form fields and typed on it, as words at their places; comments
    on what is marked, which are no copies of the page's `runs`, below the page."""
    form, rect = page.formenv, pdfium.FS_RECTF()
    shown, below = "", area.height
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_FIELDS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            kind, value = -1, ""
            subtype = pdfium.FPDFAnnot_GetSubtype(annotation)
            if pdfium.FPDFAnnot_GetFlags(annotation) & pdfium.FPDF_ANNOT_FLAG_HIDDEN:
                continue
            if subtype == pdfium.FPDF_ANNOT_WIDGET and form:
                kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
            if subtype in _NOTES or subtype in _COMMENTED:
                value = wide_text(
                    pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents", most=_MAX_VALUE_BYTES
                )
            elif kind == pdfium.FPDF_FORMFIELD_LISTBOX:
                value = _selected_options(form, annotation)
            if not value and kind in _TEXT_FIELDS:
                value = wide_text(
                    pdfium.FPDFAnnot_GetFormFieldValue, form, annotation, most=_MAX_VALUE_BYTES
                )
            if kind in _CHECK_FIELDS and pdfium.FPDFAnnot_IsChecked(form, annotation):
                value = "\N{BALLOT BOX WITH CHECK}"
            if subtype in _COMMENTED:
                shown = shown or "".join("".join(run.text.split()) for run in runs)
                if "".join(value.split()) not in shown:
                    height = 2 * _FIELD_SIZE * len(value.splitlines())
                    yield from _words_in_box(value, (0.0, below, area.width, below + height))
                    below += height
            elif value.strip() and pdfium.FPDFAnnot_GetRect(annotation, rect):
                box = area.box(rect.left, rect.bottom, rect.right, rect.top)
                yield from _words_in_box(value, box)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _selected_options(form: Any, annotation: Any) -> str:
    """A line each."""
    count = max(0, pdfium.FPDFAnnot_GetOptionCount(form, annotation))
    return "\n".join(
        wide_text(pdfium.FPDFAnnot_GetOptionLabel, form, annotation, index, most=_MAX_VALUE_BYTES)
        for index in range(min(count, _MAX_FIELDS))
        if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, index)
    )


def _words_in_box(text: str, box: Box) -> Iterator[TextRun]:
    """The words of a text side by side in a box, for lines from its top on."""
    x0, y0, x1, y1 = box
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    height = (y1 - y0) / max(len(lines), 1)
    for number, line in enumerate(lines):
        advance = min((x1 - x0) / max(len(line), 1), _FIELD_SIZE / 2)
        size = min(height, _FIELD_SIZE)
        top = y0 + number * height + (height - size) / 2
        if RIGHT_TO_LEFT.search(line):
            yield TextRun(" ".join(line.split()), x0, top, x1, top + size, size, False, True)
            continue
        for match in re.finditer(r"\S+", line):
            left, right = x0 + match.start() * advance, x0 + match.end() * advance
            begins = match.start() == 0
            yield TextRun(match[0], left, top, right, top + size, size, False, begins)

"""Reading the cells of a workbook: shared strings, number formats, one sheet's rows."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lxml import etree

from documents.parsers.base import Limits, ParseError
from documents.parsers.html_text import clean
from documents.parsers.office import Package
from documents.parsers.office_xml import Element, S, integer, switched_on
from documents.parsers.xlsx_numbers import BUILT_IN, GENERAL, general, shown

#: A row: its number from 1, and its filled cells by column from 0.
Row = tuple[int, dict[int, str]]

_NAMES = {"s": S.strip("{}")}
_FILLED: Any = etree.XPath("s:c[s:v or s:is or s:f]", namespaces=_NAMES)
#: `rPh`, how a word is pronounced, is left out.
_TEXTS: Any = etree.XPath("s:t/text() | s:r/s:t/text()", namespaces=_NAMES)
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_LETTERS = re.compile(r"[A-Z]{1,3}")
_AREA = re.compile(r"([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})")
_DIGITS = "0123456789"
_VALUE, _INLINE, _FORMULA = f"{S}v", f"{S}is", f"{S}f"
_ROWS_AND_MERGED = ((f"{S}sheetData", f"{S}row"), (f"{S}mergeCells", f"{S}mergeCell"))
#: Filled cells take about 100 bytes each until their sheet is written.
MAX_CELLS = 5_000_000
_MAX_MERGED = 20_000


@dataclass(slots=True)
class Sheet:
    """Filled rows in order, and merged areas as (row, column, last row, last column)."""

    rows: list[Row] = field(default_factory=list)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)


class CellReader:
    """Cells as text; counts them over all sheets, and the formulas that have no value."""

    def __init__(self, package: Package, *, since_1904: bool, limits: Limits) -> None:
        self.formulas_without_value = 0
        self._package = package
        self._since_1904 = since_1904
        self._limits = limits
        self._strings = _shared_strings(package)
        self._formats = _formats(package)
        self._cells = self._characters = 0

    def sheet(self, part: str) -> Sheet:
        """Read one sheet, as many cells as there really are, whatever size it declares."""
        sheet = Sheet()
        number = 0
        for node in self._package.stream(part, *_ROWS_AND_MERGED):
            if node.tag == f"{S}row":
                number = integer(node.get("r"), number + 1)
                if cells := self._row(node):
                    sheet.rows.append((number, cells))
            elif len(sheet.merged) < _MAX_MERGED and (area := _area(node.get("ref", ""))):
                sheet.merged.append(area)
        return sheet

    def _row(self, node: Element) -> dict[int, str]:
        cells = {}
        for cell in _FILLED(node):
            if text := self._text(cell):
                column = _column(cell.get("r", "").rstrip(_DIGITS))
                cells[node.index(cell) if column is None else column] = text
                self._characters += len(text)
        self._cells += len(cells)
        if self._cells > MAX_CELLS or self._characters > self._limits.max_characters:
            raise ParseError(
                "too_large",
                f"The workbook has more than {MAX_CELLS:,} filled cells or "
                f"{self._limits.max_characters:,} characters. Split it, or load it as a database.",
            )
        return cells

    def _text(self, cell: Element) -> str:
        value, has_formula = "", False
        for child in cell:
            if child.tag == _VALUE:
                value = child.text or ""
            elif child.tag == _INLINE:
                return _string(child)
            else:
                has_formula |= child.tag == _FORMULA
        if not value:
            self.formulas_without_value += has_formula
            return ""
        return self._shown(value, cell.get("t", "n"), cell.get("s", "0"))

    def _shown(self, value: str, kind: str, style: str) -> str:
        match kind:
            case "n":
                return self._number(value, style)
            case "s":
                return self._strings.get(value, "")
            case "b":
                return "TRUE" if value == "1" else "FALSE"
            case "e":
                return ""
            case "d":
                value = value.removesuffix("Z").removesuffix("T00:00:00").replace("T", " ")
        return _tidy(value)

    def _number(self, value: str, style: str) -> str:
        try:
            number = float(value)
        except ValueError:
            return _tidy(value)
        code = self._formats.get(style, GENERAL)
        if code == GENERAL:
            return general(number)
        return shown(number, code, since_1904=self._since_1904)


def is_since_1904(workbook: Element) -> bool:
    """Whether days are counted from 1904, as old Macs did."""
    node = workbook.find(f"{S}workbookPr")
    return node is not None and "date1904" in node.attrib and switched_on(node.get("date1904"))


def _area(reference: str) -> tuple[int, int, int, int] | None:
    """`A1:B3` as rows from 1 and columns from 0."""
    match = _AREA.fullmatch(reference)
    if match is None:
        return None
    left, right = _column(match[1]) or 0, _column(match[3]) or 0
    return int(match[2]), left, int(match[4]), right


@lru_cache(maxsize=16_384)
def _column(letters: str) -> int | None:
    """`A` is 0, `XFD` is 16,383; None for what is no column."""
    if not _LETTERS.fullmatch(letters):
        return None
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - 64
    return index - 1


def _shared_strings(package: Package) -> dict[str, str]:
    """By the place at which cells refer to them."""
    part = package.related_part(package.main, "sharedstrings")
    nodes = package.stream(part, (f"{S}sst", f"{S}si")) if part else ()
    return {str(index): _string(node) for index, node in enumerate(nodes)}


def _formats(package: Package) -> dict[str, str]:
    """The number format of each cell style."""
    root = package.optional_xml(package.related_part(package.main, "styles"))
    if root is None:
        return {}
    own = {
        integer(node.get("numFmtId")): node.get("formatCode", "")
        for node in root.iterfind(f"{S}numFmts/{S}numFmt")
    }
    ids = (integer(node.get("numFmtId")) for node in root.iterfind(f"{S}cellXfs/{S}xf"))
    codes = (own.get(number) or BUILT_IN.get(number, GENERAL) for number in ids)
    return {str(style): code for style, code in enumerate(codes)}


def _string(node: Element) -> str:
    return _tidy("".join(_TEXTS(node)))


def _tidy(text: str) -> str:
    """Lines without space around them; characters that XML cannot hold come as `_x000D_`."""
    if "_x" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    lines = (" ".join(line.split()) for line in clean(text).splitlines())
    return "\n".join(line for line in lines if line)

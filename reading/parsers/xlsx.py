"""Excel: each sheet a heading, its rows as tables that know their column names. Begin with
`parse_xlsx`; `CellReader` reads cells, `write_notes_and_tables` finds the tables."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Any

from lxml import etree

from reading.location import FIRST_ROW, WORKBOOK
from reading.parsers.base import DEFAULT_LIMITS, Limits, Page, ParsedDocument, ParseError
from reading.parsers.column_types import ColumnTypes
from reading.parsers.markdown_writer import MarkdownWriter
from reading.parsers.normalise import normalise_text, without_invisible
from reading.parsers.office_content import (
    BUILT_IN,
    GENERAL,
    LETTER,
    format_number,
    is_name,
    write_drawing,
    write_rows,
)
from reading.parsers.office_package import (
    Element,
    OfficePackage,
    R,
    S,
    is_true,
    office_document,
    parse_integer,
)
from reading.parsers.table_writer import from_row, row_pages
from reading.parsers.zip_archive import open_zip

#: A row: its number from 1, and its filled cells by column from 0.
SheetRow = tuple[int, dict[int, str]]

_NAMESPACES = {"s": S.strip("{}")}
_FILLED_CELLS: Any = etree.XPath("s:c[s:v or s:is or s:f]", namespaces=_NAMESPACES)
#: `rPh`, how a word is pronounced, is left out.
_TEXTS: Any = etree.XPath("s:t/text() | s:r/s:t/text()", namespaces=_NAMESPACES)
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_COLUMN_LETTERS = re.compile(r"[A-Z]{1,3}")
_CELL_RANGE = re.compile(r"([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})")
_DIGITS = "0123456789"
_VALUE, _INLINE, _FORMULA = f"{S}v", f"{S}is", f"{S}f"
_WANTED = (
    (f"{S}sheetData", f"{S}row"),
    (f"{S}mergeCells", f"{S}mergeCell"),
    *((f"{S}headerFooter", f"{S}{name}") for name in ("oddHeader", "oddFooter")),
)
#: In heads and feet of printed pages: the beginning of a section, what is computed, such as the
#: number of the page, and fonts, sizes and colours.
_SECTION = re.compile(r"&[LCR]")
_COMPUTED = re.compile(r"&[PNDTAFZG](?:[+-]\d+)?")
_LOOK = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f]{2}[0-9A-Fa-f+-]{3,4}|\d{1,3}|[BEHIOSUXY])')
#: Words beside what is computed, as in `Page 1 of 3`, that say nothing.
_WORDS_OF_COUNTS = 3
#: Filled cells take about 100 bytes each until their sheet is written.
MAX_CELLS = 5_000_000
_MAX_MERGED = 20_000


@dataclass(slots=True)
class Sheet:
    """Filled rows in order, merged areas as (row, column, last row, last column), and what was
    typed into heads and feet of its pages."""

    rows: list[SheetRow] = field(default_factory=list)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    heads_and_feet: list[str] = field(default_factory=list)


class CellReader:
    """Cells as text; counts cells and formulas without value over all sheets."""

    def __init__(self, package: OfficePackage, *, since_1904: bool, limits: Limits) -> None:
        self.formulas_without_value = 0
        self._package = package
        self._since_1904 = since_1904
        self._limits = limits
        #: by the index that cells refer to
        self._strings: dict[str, str] = {}
        if part := package.related_part(package.main, "sharedstrings"):
            for index, node in enumerate(package.stream(part, (f"{S}sst", f"{S}si"))):
                self._strings[str(index)] = _string_item_text(node)
        #: The number format of each cell style.
        self._formats: dict[str, str] = {}
        root = package.optional_xml(package.related_part(package.main, "styles"))
        if root is not None:
            own = {
                parse_integer(node.get("numFmtId")): node.get("formatCode", "")
                for node in root.iterfind(f"{S}numFmts/{S}numFmt")
            }
            for style, node in enumerate(root.iterfind(f"{S}cellXfs/{S}xf")):
                number = parse_integer(node.get("numFmtId"))
                self._formats[str(style)] = own.get(number) or BUILT_IN.get(number, GENERAL)
        self._cells = self._characters = 0

    def sheet(self, part: str) -> Sheet:
        """Read one sheet: only existing cells count, whatever size it declares."""
        sheet = Sheet()
        number = 0
        for node in self._package.stream(part, *_WANTED):
            if node.tag == f"{S}row":
                number = parse_integer(node.get("r"), number + 1)
                if cells := self._row(node):
                    sheet.rows.append((number, cells))
            elif node.tag != f"{S}mergeCell":
                sheet.heads_and_feet += _typed_sections(node.text or "")
            elif len(sheet.merged) < _MAX_MERGED and (
                area := _CELL_RANGE.fullmatch(node.get("ref", ""))
            ):
                left, right = _column_index(area[1]) or 0, _column_index(area[3]) or 0
                sheet.merged.append((int(area[2]), left, int(area[4]), right))
        return sheet

    def _row(self, node: Element) -> dict[int, str]:
        cells = {}
        for cell in _FILLED_CELLS(node):
            if text := self._text(cell):
                column = _column_index(cell.get("r", "").rstrip(_DIGITS))
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
                return _string_item_text(child)
            else:
                has_formula |= child.tag == _FORMULA
        if not value:
            self.formulas_without_value += has_formula
            return ""
        match cell.get("t", "n"):
            case "n":
                code = self._formats.get(cell.get("s", "0"), GENERAL)
                with suppress(ValueError):
                    return format_number(float(value), code, since_1904=self._since_1904)
            case "s":
                return self._strings.get(value, "")
            case "b":
                value = "TRUE" if value == "1" else "FALSE"
            case "e":
                value = ""
            case "d":
                value = value.removesuffix("Z").removesuffix("T00:00:00").replace("T", " ")
        return _clean_string(value)


@lru_cache(maxsize=16_384)
def _column_index(name: str) -> int | None:
    """`A` is 0, `XFD` is 16,383; None for what is no column."""
    if not _COLUMN_LETTERS.fullmatch(name):
        return None
    index = 0
    for letter in name:
        index = index * 26 + ord(letter) - 64
    return index - 1


def _typed_sections(text: str) -> Iterator[str]:
    for section in _SECTION.split(text.replace("&&", "\0")):
        typed = " ".join(_LOOK.sub("", _COMPUTED.sub("", section)).replace("\0", "&").split())
        words = len(typed.split()) if _COMPUTED.search(section) else _WORDS_OF_COUNTS + 1
        if LETTER.search(typed) and words > _WORDS_OF_COUNTS:
            yield typed


def _string_item_text(node: Element) -> str:
    return _clean_string("".join(_TEXTS(node)))


def _clean_string(text: str) -> str:
    """Lines without surrounding space; characters that XML cannot hold are stored as `_x000D_`."""
    if "_x" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        # Two halves are a character; one alone, or U+0000, can be stored nowhere.
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = normalise_text(whole)
    lines = (" ".join(line.split()) for line in without_invisible(text).splitlines())
    return "\n".join(line for line in lines if line)


#: Number of rows from which a table's width is estimated.
_WIDTH_SAMPLE_ROWS = 20
#: Values of merged cells that are longer say more than a row needs to repeat.
_MAX_REPEATED = 100
_MAX_REPEATS = 1_000_000


@dataclass(slots=True)
class SheetTable:
    """Column names by column, and rows; without names if no row looks like them."""

    names: dict[int, str]
    rows: list[SheetRow] = field(default_factory=list)
    continues_previous: bool = False  # with the names of the table above


def write_notes_and_tables(
    out: MarkdownWriter, sheet: Sheet, *, is_first: bool = True
) -> tuple[int, list[dict[str, Any]]]:
    """The sheet as Markdown below its heading. Gives the number of the row that it begins with,
    and what its tables are: their columns and the types of these, and where their rows are.

    Where rows do not follow those above, or the names of columns in the first row of a sheet that
    is not the workbook's first, the number of the first is written.
    """
    first = following = sheet.rows[0][0] if sheet.rows else 1
    is_begun = False
    tables: list[dict[str, Any]] = []
    for block in find_notes_and_tables(sheet):
        if isinstance(block, SheetTable):
            columns = sorted(set(block.names).union(*(cells for _, cells in block.rows)))
            header = [block.names.get(column, "") for column in columns]
            types = ColumnTypes()
            for region in _row_regions(block.rows):
                number = region[0][0]
                if not is_begun:
                    first, following = number, number if is_first else FIRST_ROW
                if number != following:
                    out.paragraph(from_row(number))
                is_begun, following = True, region[-1][0] + 1
                rows = (types.seen([cells.get(at, "") for at in columns]) for _, cells in region)
                write_rows(out, header, rows, first_row=number)
            if block.names and columns:
                tables.append(
                    {
                        "rows": f"{block.rows[0][0]}-{block.rows[-1][0]}",
                        "columns": [
                            name[:_NAME_CHARACTERS] for name in header[:_COLUMNS_LISTED] if name
                        ],
                        "types": types.types(header[:_COLUMNS_LISTED]),
                    }
                )
        else:
            out.write(block)
            out.end_block()
            is_begun, following = True, 0
    return first, tables


class WorkbookWriter:
    """Writes sheets, each below its name, and remembers their `tables` and where their rows are."""

    def __init__(self, out: MarkdownWriter) -> None:
        self.out = out
        self.tables: list[dict[str, Any]] = []
        self._places: list[tuple[int, int, int]] = []

    def sheet(self, title: str, start: int, sheet: Sheet) -> None:
        """Write the rows of a sheet, whose heading is at `start`."""
        row, found = write_notes_and_tables(self.out, sheet, is_first=not self._places)
        self.tables += [{"sheet": title, **table} for table in found]
        self._places.append((start, self.out.length, row))

    def metadata(self) -> dict[str, Any]:
        """What is known of the tables."""
        return {"tables": self.tables[:_TABLES_LISTED]} if self.tables else {}

    def pages(self, text: str) -> list[Page]:
        """The rows of all sheets in the finished `text`."""
        return [
            page
            for start, end, row in self._places
            for page in row_pages(text[start:end], row, start=start)
        ]


def find_notes_and_tables(sheet: Sheet) -> Iterator[str | SheetTable]:
    """Text above a table or between two are notes; after an empty row another table may begin.

    A table without column names of its own continues with those of the table above.
    """
    spread = _repeat_merged(sheet)
    table, known = SheetTable({}), False
    for rows in _row_regions(sheet.rows):
        # A lone cell; before column names are known, also a row less than half filled.
        while rows and (
            (filled := len(rows[0][1])) == 1
            or (not known and filled * 2 < max(len(row) for _, row in rows[:_WIDTH_SAMPLE_ROWS]))
        ):
            yield from _finish_table(table)
            table = SheetTable(table.names, continues_previous=True)
            yield ", ".join(rows.pop(0)[1].values())
        if rows and (not known or _starts_table(rows, table.names)):
            yield from _finish_table(table)
            table, known = SheetTable(_take_column_names(rows, spread)), True
        table.rows += rows
    yield from _finish_table(table)


def _finish_table(table: SheetTable) -> Iterator[str | SheetTable]:
    """The table; column names without rows were a line of text."""
    if table.rows:
        yield table
    elif table.names and not table.continues_previous:
        yield ", ".join(table.names.values())


def _row_regions(rows: Iterable[SheetRow]) -> Iterator[list[SheetRow]]:
    """Rows without an empty one between them."""
    for _, group in groupby(enumerate(rows), key=lambda entry: entry[1][0] - entry[0]):
        yield [row for _, row in group]


def _starts_table(rows: list[SheetRow], names: dict[int, str]) -> bool:
    """Whether the first row names columns anew: other names than above, or names of the numbers
    below."""
    first = rows[0][1]
    if not _looks_like_names(first):
        return False
    below = rows[1][1] if len(rows) > 1 else {}
    figures = any(at in first and not LETTER.search(text) for at, text in below.items())
    return figures or not set(first) <= set(names)


def _take_column_names(rows: list[SheetRow], spread: dict[int, dict[int, int]]) -> dict[int, str]:
    """Remove the row of names, or both rows where merged cells are above others."""
    number, first = rows[0]
    if not _looks_like_names(first):
        return {}
    del rows[0]
    above = dict(first)
    for start, end in spread.get(number, {}).items():
        filled = {at for _, cells in rows[:_WIDTH_SAMPLE_ROWS] for at in cells}
        above |= dict.fromkeys(filled.intersection(range(start, end + 1)), first[start])
    if number not in spread or not rows or not _looks_like_names(rows[0][1]):
        return above
    below = rows.pop(0)[1]
    return {
        at: " ".join(dict.fromkeys(names[at] for names in (above, below) if at in names))
        for at in sorted({*above, *below})
    }


def _looks_like_names(cells: dict[int, str]) -> bool:
    texts = cells.values()
    return len(cells) > 1 and all(map(is_name, texts))


def _repeat_merged(sheet: Sheet) -> dict[int, dict[int, int]]:
    """Give every row of a merged cell its value, so that a row makes sense wherever the table is
    cut; returns how far cells of a row span."""
    rows = dict(sheet.rows)
    spread: dict[int, dict[int, int]] = {}
    repeats = 0
    for top, left, bottom, right in sheet.merged:
        text = rows.get(top, {}).get(left, "")
        if not text:
            continue
        if right > left:
            spread.setdefault(top, {})[left] = right
        repeats += bottom - top
        if len(text) <= _MAX_REPEATED and repeats <= _MAX_REPEATS:
            for number in range(top + 1, bottom + 1):
                if number in rows:
                    rows[number].setdefault(left, text)
    return spread


_TABLES_LISTED, _COLUMNS_LISTED, _NAME_CHARACTERS = 50, 50, 100
_HIDDEN_STATES = frozenset({"hidden", "veryHidden"})
MEDIA_TYPE = WORKBOOK


def parse_xlsx(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Workbooks and templates, with or without macros. Formulas have the value last computed.

    Hidden sheets, rows and columns are read too, because every reader can show them; only
    `veryHidden` sheets, which no menu can show, are left out.
    """
    with open_zip(data, limits) as archive:
        package = OfficePackage(archive)
        workbook = package.xml(package.main)
        # Old Macs counted days from 1904.
        node = workbook.find(f"{S}workbookPr")
        since_1904 = (
            node is not None and "date1904" in node.attrib and is_true(node.get("date1904"))
        )
        reader = CellReader(package, since_1904=since_1904, limits=limits)
        metadata = package.properties()
        out = MarkdownWriter()
        is_filled = False
        seen: set[str] = set()
        writer = WorkbookWriter(out)
        relations = package.related(package.main)
        for sheet in workbook.iterfind(f"{S}sheets/{S}sheet"):
            kind, part = relations.get(sheet.get(f"{R}id", ""), ("", ""))
            if kind not in {"worksheet", "chartsheet"}:
                continue
            title, state = " ".join(sheet.get("name", "").split()), sheet.get("state", "")
            if state in _HIDDEN_STATES:
                metadata.setdefault("hidden_sheets", []).append(title)
            if state == "veryHidden":
                continue
            cells, drawings = reader.sheet(part), package.related_parts(part, "drawing")
            if cells.rows or drawings:
                start = out.heading(1, title)
                before = out.length
                writer.sheet(title, start, cells)
                for drawing in drawings:
                    write_drawing(out, package, drawing)
                is_filled |= out.length > before
                for typed in cells.heads_and_feet:
                    if typed not in seen:
                        seen.add(typed)
                        out.paragraph(typed)
        if not is_filled:
            raise ParseError(
                "no_text",
                "The workbook has no filled cells. Check that the right file was saved.",
            )
        if reader.formulas_without_value:
            metadata["formulas_without_value"] = reader.formulas_without_value
        text, headings = out.finish()
        return office_document(
            (text, headings),
            name=name,
            media_type=MEDIA_TYPE,
            metadata=metadata | writer.metadata(),
            pages=writer.pages(text),
        )

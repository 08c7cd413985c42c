"""One sheet of an OpenDocument spreadsheet: only cells with something in them, with their place."""

from documents.parsers.base import Limits, ParseError
from documents.parsers.html_text import clean
from documents.parsers.odf_text import OFFICE, TABLE, TEXT, rows_of
from documents.parsers.office_tables import cell_text
from documents.parsers.office_xml import Element, integer, local_name
from documents.parsers.xlsx_cells import MAX_CELLS, Sheet
from documents.parsers.xlsx_numbers import general

_CELLS = frozenset({"table-cell", "covered-table-cell"})
#: An empty row or cell may be declared a million times; of filled ones so many are believed.
_MAX_REPEATS = 1000
_MAX_REPEATED_CELLS = 10_000


def read_sheet(table: Element, limits: Limits) -> Sheet:
    """The filled rows of a table. Raises ParseError beyond `limits.max_characters`."""
    sheet = Sheet()
    number = characters = filled = 0
    for row in rows_of(table):
        cells = _cells(row, number + 1, sheet)
        repeats = max(1, integer(row.get(f"{TABLE}number-rows-repeated"), 1))
        believed = min(repeats, max(1, _MAX_REPEATED_CELLS // max(1, len(cells))))
        for at in range(1, believed + 1 if cells else 0):
            sheet.rows.append((number + at, dict(cells)))
            filled += len(cells)
            characters += sum(map(len, cells.values()))
            if characters > limits.max_characters or filled > MAX_CELLS:
                raise ParseError(
                    "too_large",
                    f"A sheet has more than {MAX_CELLS:,} filled cells or "
                    f"{limits.max_characters:,} characters. Split it.",
                )
        number += repeats
    return sheet


def _cells(row: Element, number: int, sheet: Sheet) -> dict[int, str]:
    cells: dict[int, str] = {}
    column = 0
    for cell in row:
        if local_name(cell) not in _CELLS:
            continue
        repeats = max(1, integer(cell.get(f"{TABLE}number-columns-repeated"), 1))
        if local_name(cell) == "table-cell" and (text := _text(cell)):
            cells |= dict.fromkeys(range(column, column + min(repeats, _MAX_REPEATS)), text)
            down = integer(cell.get(f"{TABLE}number-rows-spanned"), 1) - 1
            right = integer(cell.get(f"{TABLE}number-columns-spanned"), 1) - 1
            if down > 0 or right > 0:
                sheet.merged.append((number, column, number + down, column + right))
        column += repeats
    return cells


def _text(cell: Element) -> str:
    """Dates as ISO, numbers without separated thousands, all else as it is shown."""
    value = cell.get(f"{OFFICE}value")
    if (date := cell.get(f"{OFFICE}date-value")) is not None:
        return date.removesuffix("T00:00:00").replace("T", " ")
    if cell.get(f"{OFFICE}value-type") == "float" and value is not None:
        try:
            return general(float(value))
        except ValueError:
            return value
    lines = ("".join(map(str, node.itertext())) for node in cell.iterfind(f"{TEXT}p"))
    return cell_text([" ".join(clean(line).split()) for line in lines])

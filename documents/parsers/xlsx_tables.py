"""The tables and notes of a sheet: where each begins, and which row names its columns."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.table_writer import table_blocks
from documents.parsers.xlsx_cells import Row, Sheet

_LETTER = re.compile(r"[^\W\d_]")
#: What may name a column although it is no word: a year, a day.
_TIME = re.compile(r"(?:19|20)\d\d(?:-\d\d-\d\d)?")
#: So many rows tell how wide a table is.
_AHEAD = 20
#: Values of merged cells that are longer say more than a row needs to repeat.
_MAX_REPEATED = 100
_MAX_REPEATS = 1_000_000


@dataclass(slots=True)
class Table:
    """Column names by column, and rows; without names if no row looks like them."""

    names: dict[int, str]
    rows: list[Row] = field(default_factory=list)
    goes_on: bool = False  # with the names of the table above

    @property
    def columns(self) -> list[int]:
        """Those with anything in them."""
        return sorted(set(self.names).union(*(cells for _, cells in self.rows)))

    def header(self) -> list[str]:
        return [self.names.get(column, "") for column in self.columns]

    def stretches(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Rows that follow each other in the sheet, with the number of the first."""
        columns = self.columns
        for rows in _regions(self.rows):
            yield rows[0][0], [[cells.get(at, "") for at in columns] for _, cells in rows]


def write_notes_and_tables(out: MarkdownWriter, sheet: Sheet) -> None:
    """The sheet as Markdown, below its heading."""
    for block in notes_and_tables(sheet):
        if isinstance(block, Table):
            _write_table(out, block)
        else:
            out.write(block)
            out.end_block()


def _write_table(out: MarkdownWriter, table: Table) -> None:
    header = table.header()
    for first, rows in table.stretches():
        for block in table_blocks(header, rows, first_row=first):
            out.lines(block.split("\n"))


def notes_and_tables(sheet: Sheet) -> Iterator[str | Table]:
    """What stands above a table or between two are notes; behind an empty row another may begin.

    What has no names of its own goes on with those of the table above.
    """
    spread = _repeat_merged(sheet)
    table, known = Table({}), False
    for rows in _regions(sheet.rows):
        while rows and _is_note(rows, known=known):
            yield from _finished(table)
            table = Table(table.names, goes_on=True)
            yield ", ".join(rows.pop(0)[1].values())
        if rows and (not known or _begins_table(rows, table.names)):
            yield from _finished(table)
            table, known = Table(_take_names(rows, spread)), True
        table.rows += rows
    yield from _finished(table)


def _finished(table: Table) -> Iterator[str | Table]:
    """The table; names without a row below them were a line of text."""
    if table.rows:
        yield table
    elif table.names and not table.goes_on:
        yield ", ".join(table.names.values())


def _regions(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows without an empty one between them."""
    for _, group in groupby(enumerate(rows), key=lambda entry: entry[1][0] - entry[0]):
        yield [row for _, row in group]


def _is_note(rows: list[Row], *, known: bool) -> bool:
    """A lone cell; before the names of columns are known, also less than half of a row."""
    filled = len(rows[0][1])
    return filled == 1 or (not known and filled * 2 < max(len(row) for _, row in rows[:_AHEAD]))


def _begins_table(rows: list[Row], names: dict[int, str]) -> bool:
    """Whether the first row names columns anew: others than above, or those of figures below."""
    first = rows[0][1]
    if not _looks_like_names(first):
        return False
    below = rows[1][1] if len(rows) > 1 else {}
    figures = any(at in first and not _LETTER.search(text) for at, text in below.items())
    return figures or not set(first) <= set(names)


def _take_names(rows: list[Row], spread: dict[int, dict[int, int]]) -> dict[int, str]:
    """Remove the row of names, or both where merged cells stand above others."""
    number, first = rows[0]
    if not _looks_like_names(first):
        return {}
    del rows[0]
    if number not in spread or not rows or not _looks_like_names(rows[0][1]):
        return first
    above = dict(first)
    for start, end in spread[number].items():
        above |= dict.fromkeys(range(start, end + 1), first[start])
    below = rows.pop(0)[1]
    columns = sorted({*above, *below} if below else above)
    return {at: " ".join(dict.fromkeys(_both(above, below, at))) for at in columns}


def _both(above: dict[int, str], below: dict[int, str], at: int) -> Iterator[str]:
    yield from (names[at] for names in (above, below) if at in names)


def _looks_like_names(cells: dict[int, str]) -> bool:
    texts = cells.values()
    return len(cells) > 1 and all(_LETTER.search(text) or _TIME.fullmatch(text) for text in texts)


def _repeat_merged(sheet: Sheet) -> dict[int, dict[int, int]]:
    """Give every row of a merged cell its value; returns how far cells of a row spread.

    So a row says what it belongs to, wherever the table is cut.
    """
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

"""Rows as Markdown tables in blocks so small that every chunk of a long table has its column names.
Begin with `table_blocks`."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from reading.location import table_rows
from reading.parsers.base import Page

#: Figures cost up to a token for two characters: this many fit the smallest budget in use.
BLOCK_CHARACTERS = 400


def table_blocks(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, first_row: int = 1
) -> Iterator[str]:
    """The table as pipe tables of about 400 characters, each with the header line.

    A row that is too long for that, or has cells with several lines, becomes a list of its filled
    cells, `- column: value`, under `Row N`; `first_row` is the number of the first. Columns without
    a name, and cells beyond the header, are called `Column N`. Empty rows are skipped; without any
    row the header stands alone. Names of columns that no row fills come last. Memory: one block.
    """
    names = _ColumnNames(header)
    block: list[list[str]] = []
    width, size = names.width([]), 0
    is_empty = True
    for number, row in enumerate(rows, start=first_row):
        cells = [cell.strip() for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            continue
        is_empty = False
        own = names.width(cells)
        is_long = names.length(own) + _line_length(cells, own) > BLOCK_CHARACTERS or any(
            "\n" in cell for cell in cells
        )
        is_full = own > width or size + _line_length(cells, width) > BLOCK_CHARACTERS
        if block and (is_long or is_full):
            yield _pipe_table(names, block, width)
            block = []
        if is_long:
            lines = [f"Row {number}:", ""]
            for index, cell in enumerate(cells):
                if cell:
                    first, *more = cell.split("\n")
                    lines.append(f"- {names[index]}: {first}")
                    lines += [f"  {line}" for line in more if line.strip()]
            yield "\n".join(lines)
            continue
        if not block:
            width, size = own, names.length(own)
        block.append(cells)
        size += _line_length(cells, width)
    if block or (is_empty and any(header)):
        yield _pipe_table(names, block, width)
    if names.unused:
        yield f"Empty columns: {'; '.join(names.unused.values())}"


def joined_names(above: Sequence[str], below: Sequence[str]) -> list[str]:
    """One name for each column, of those in two rows."""
    return [
        " ".join(dict.fromkeys(filter(None, pair)))
        for pair in zip_longest(above, below, fillvalue="")
    ]


class _ColumnNames:
    """Column names on one line each, for any number of columns. `unused` have not been written
    yet."""

    def __init__(self, header: Sequence[str]) -> None:
        self._names = [" ".join(name.split()) for name in header]
        self._lengths: dict[int, int] = {}
        self.unused = {index: name for index, name in enumerate(self._names) if name}

    def width(self, cells: Sequence[str]) -> int:
        """Columns of a table with these cells."""
        return max(len(cells), len(self._names))

    def length(self, width: int) -> int:
        """Characters of the header and the line below it."""
        if width not in self._lengths:
            names = [self._name(index) for index in range(width)]
            self._lengths[width] = _line_length(names, width) + _line_length(["-"] * width, width)
        return self._lengths[width]

    def upto(self, width: int) -> list[str]:
        return [self[index] for index in range(width)]

    def __getitem__(self, index: int) -> str:
        self.unused.pop(index, None)
        return self._name(index)

    def _name(self, index: int) -> str:
        name = self._names[index] if index < len(self._names) else ""
        return name or f"Column {index + 1}"


def _line_length(cells: Sequence[str], width: int) -> int:
    """Characters of the cells as a line of a table with `width` columns."""
    return sum(map(len, cells)) + 3 * width + 2


def _pipe_table(names: _ColumnNames, rows: Sequence[Sequence[str]], width: int) -> str:
    header = names.upto(width)
    filled = ([*row, *[""] * (width - len(row))] for row in rows)
    # One dash is enough, and each one more would be a token of every block.
    lines = [header, ["-"] * len(header), *filled]
    escaped = (" | ".join(cell.replace("|", "\\|") for cell in cells) for cells in lines)
    return "\n".join(f"| {line} |" for line in escaped)


#: A page for each of more rows would be much of what the parser's process sends.
_MAX_ROW_PAGES = 200_000


def from_row(number: int) -> str:
    """The line above a table whose first row does not follow the row above."""
    return f"From row {number}:"


def row_pages(text: str, number: int, *, start: int = 0) -> list[Page]:
    """The rows of the tables in `text`, which begins at `start`, as pages, so that passages know
    where they are; of very many only the first of each block. `number` is that of the first."""
    rows = list(table_rows(text, number))
    if len(rows) > _MAX_ROW_PAGES:
        rows = [row for row in rows if text.endswith("\n\n", 0, row[0])]
    if not rows or rows[0][0] > 0:
        rows.insert(0, (0, number))
    return [Page(start + offset, row) for offset, row in rows]

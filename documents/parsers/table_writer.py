"""Rows as Markdown in blocks so small that every chunk of a long table knows its column names."""

from collections.abc import Iterable, Iterator, Sequence

#: Figures cost up to a token for two characters: this many fit the smallest budget in use.
BLOCK_CHARACTERS = 400


def table_text(header: Sequence[str], rows: Iterable[Sequence[str]], *, first_row: int = 1) -> str:
    """All blocks of the table with a blank line between them."""
    return "\n\n".join(table_blocks(header, rows, first_row=first_row))


def table_blocks(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, first_row: int = 1
) -> Iterator[str]:
    """The table as pipe tables of about 400 characters, each with the header line.

    A row that is too long for that, or whose cells have several lines, becomes a list of its
    filled cells, `- column: value`, under `Row N`; `first_row` is the number of the first.
    Columns without a name, and cells behind the header, are called `Column N`. Rows without a
    filled cell give nothing; where there is none, the header stands alone. Memory: one block.
    """
    names = _Names(header)
    block: list[list[str]] = []
    size, is_empty = 0, True
    for number, cells in enumerate(map(_trimmed, rows), start=first_row):
        if not cells:
            continue
        is_empty = False
        overhead, length = names.length(len(cells)), _length(cells)
        is_long = overhead + length > BLOCK_CHARACTERS or _has_lines(cells)
        if block and (is_long or overhead + size + length > BLOCK_CHARACTERS):
            yield _pipe_table(names, block)
            block, size = [], 0
        if is_long:
            yield _record(names, cells, number)
        else:
            block.append(cells)
            size += length
    if block or (is_empty and any(header)):
        yield _pipe_table(names, block)


class _Names:
    """Column names on one line, for any number of columns."""

    def __init__(self, header: Sequence[str]) -> None:
        self._names = [" ".join(name.split()) for name in header]
        self._lengths: dict[int, int] = {}

    def upto(self, width: int) -> list[str]:
        return [self[index] for index in range(max(width, len(self._names)))]

    def length(self, width: int) -> int:
        """Of the header and the line below it, for rows of `width` cells."""
        width = max(width, len(self._names))
        if width not in self._lengths:
            self._lengths[width] = _length(self.upto(width)) + _length(["-"] * width)
        return self._lengths[width]

    def __getitem__(self, index: int) -> str:
        name = self._names[index] if index < len(self._names) else ""
        return name or f"Column {index + 1}"


def _trimmed(row: Sequence[str]) -> list[str]:
    """Cells without space around them, and without the empty ones at the end."""
    cells = [cell.strip() for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _length(cells: Sequence[str]) -> int:
    return sum(map(len, cells)) + 3 * len(cells) + 2


def _has_lines(cells: Sequence[str]) -> bool:
    return any("\n" in cell for cell in cells)


def _pipe_table(names: _Names, rows: Sequence[Sequence[str]]) -> str:
    header = names.upto(max(map(len, rows), default=0))
    filled = ([*row, *[""] * (len(header) - len(row))] for row in rows)
    # One dash is enough, and each one more would be a token of every block.
    return "\n".join(map(_line, [header, ["-"] * len(header), *filled]))


def _line(cells: Sequence[str]) -> str:
    joined = " | ".join(cell.replace("|", "\\|") for cell in cells)
    return f"| {joined} |"


def _record(names: _Names, cells: Sequence[str], number: int) -> str:
    lines = [f"Row {number}:", ""]
    for index, cell in enumerate(cells):
        if cell:
            first, *more = cell.split("\n")
            lines.append(f"- {names[index]}: {first}")
            lines += [f"  {line}" for line in more if line.strip()]
    return "\n".join(lines)

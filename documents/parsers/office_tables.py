"""Tables of documents and slides: merged cells, captions, and what is no table at all."""

from collections.abc import Sequence

from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.table_writer import table_blocks

#: A longer cell keeps its lines, and its row becomes a list of the columns.
_ONE_LINE = 200
#: Merged cells with more text say more than a row needs to repeat.
_MAX_REPEATED = 100


def cell_text(lines: Sequence[str]) -> str:
    """The paragraphs of a cell: on one line if they are short."""
    separator = "\n" if sum(map(len, lines)) > _ONE_LINE else " "
    return separator.join(line for line in lines if line)


def write_table(out: MarkdownWriter, rows: Sequence[Sequence[str | None]]) -> None:
    """Write rows, the first with the names; a cell is None where the one above covers it.

    Every row of a merged cell gets its text, so that it is understood wherever the table is cut.
    A lone cell above the names is a caption. Empty rows and columns go.
    """
    table = _without_empty(_uncovered(rows))
    while table and (len(table) == 1 or sum(map(bool, table[0])) == 1):
        for cell in filter(None, table.pop(0)):
            out.write(cell)
            out.end_block()
    if table:
        for block in table_blocks(table[0], table[1:]):
            out.lines(block.split("\n"))


def _uncovered(rows: Sequence[Sequence[str | None]]) -> list[list[str]]:
    filled: list[list[str]] = []
    for row in rows:
        above = filled[-1] if filled else []
        cells = (_repeated(above, at) if cell is None else cell for at, cell in enumerate(row))
        filled.append(list(cells))
    return filled


def _repeated(above: Sequence[str], at: int) -> str:
    text = above[at] if at < len(above) else ""
    return text if len(text) <= _MAX_REPEATED else ""


def _without_empty(table: list[list[str]]) -> list[list[str]]:
    rows = [row for row in table if any(row)]
    filled = sorted({at for row in rows for at, cell in enumerate(row) if cell})
    return [[row[at] if at < len(row) else "" for at in filled] for row in rows]

"""Tables of a web page as pipe tables, unless they only lay out the page."""

from lxml.html import HtmlElement

from documents.parsers.html_tags import NOT_IN_A_CELL
from documents.parsers.html_text import one_line


def pipe_table(table: HtmlElement) -> list[str] | None:
    """The lines of the table; None if it is layout (nested, one column, blocks in cells)."""
    if any(node is not table for node in table.iter(*NOT_IN_A_CELL)):
        return None
    rows = [[_cell(cell) for cell in row.iter("th", "td")] for row in table.iter("tr")]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    if width < 2 or len(rows) < 2:
        return None
    lines = [_line(row + [""] * (width - len(row))) for row in rows]
    lines.insert(1, _line(["---"] * width))
    caption = table.find("caption")
    return lines if caption is None else [one_line(caption), "", *lines]


def _cell(cell: HtmlElement) -> str:
    return one_line(cell).replace("|", "\\|")


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"

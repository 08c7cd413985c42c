"""Rows and cells of a Word table, with content controls and tracked changes around them."""

from collections.abc import Callable, Iterator, Sequence

from documents.parsers.office_xml import Element, W, integer, local_name

#: Word allows 63 columns.
_MAX_COLUMNS = 63
_GONE = frozenset({"del", "moveFrom"})


def rows_of(table: Element) -> Iterator[Element]:
    """The rows that were not deleted."""
    for node in table:
        name = local_name(node)
        if name == "tr":
            if node.find(f"{W}trPr/{W}del") is None:
                yield node
        elif name not in _GONE:
            yield from rows_of(node)


def cells_of(row: Element) -> Iterator[Element]:
    """The cells that were not deleted."""
    for node in row:
        name = local_name(node)
        if name == "tc":
            if node.find(f"{W}tcPr/{W}cellDel") is None:
                yield node
        elif name not in _GONE:
            yield from cells_of(node)


def is_layout(
    table: Element, rows: Sequence[Element], is_heading: Callable[[Element], bool]
) -> bool:
    """One row or column, or a table or heading inside: it only puts text in places."""
    if len(rows) < 2 or all(len(list(cells_of(row))) < 2 for row in rows):
        return True
    return any(node is not table for node in table.iter(f"{W}tbl")) or any(
        is_heading(node) for node in table.iter(f"{W}p")
    )


def is_covered(cell: Element) -> bool:
    """Whether it is merged with the cell above."""
    merged = cell.find(f"{W}tcPr/{W}vMerge")
    return merged is not None and merged.get(f"{W}val") != "restart"


def width_of(properties: Element | None, name: str, *, least: int = 1) -> int:
    """How many columns a cell takes, or are before a row."""
    node = None if properties is None else properties.find(f"{W}{name}")
    width = least if node is None else integer(node.get(f"{W}val"), least)
    return max(least, min(width, _MAX_COLUMNS))

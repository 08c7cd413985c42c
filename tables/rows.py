"""Rows of tables, put together from their columns: `row_source` is what statements over many rows
select from, `read_rows` gives some rows of one table whole."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import connection

from common.sql import fetch_rows
from tables.models import BLOCK_ROWS, Table


@dataclass(frozen=True, slots=True)
class Row:
    """`ordinal` counts the table's rows from 0; `start` is the row's offset in the document's text.
    `cells` are as written, one for each column."""

    ordinal: int
    start: int
    cells: tuple[str, ...]


def row_source(
    *,
    cells: Collection[int] = (),
    numbers: Collection[int] = (),
    dates: Collection[int] = (),
    starts: bool = False,
) -> str:
    """A sub-select, in parentheses, with one row for each row of the tables `%(tables)s`, an array
    of ids: `table_id`, `ordinal` (from 0), with `starts` also `start` (offset in the text), and
    `c3`, `n6` and `d1` for text, number and date of the 3rd, 6th and 1st column, NULL where a cell
    is none. Only the columns that are asked for are read. Positions are whole numbers from 1.

    The ids must be of tables that the reader may see: `Table.objects.visible_to(user)`.
    """
    asked = [
        *((position, "cells", f"c{position}") for position in sorted(set(cells))),
        *((position, "numbers", f"n{position}") for position in sorted(set(numbers))),
        *((position, "dates", f"d{position}") for position in sorted(set(dates))),
    ]
    if starts or not asked:
        asked.insert(0, (0, "starts", "start"))
    # One block for each position, however many of its arrays are read.
    positions = sorted({int(position) for position, _, _ in asked})
    first, *others = (f"b{position}" for position in positions)
    joins = "".join(
        f" JOIN tables_columnblock AS {name} ON {name}.table_id = {first}.table_id"
        f" AND {name}.ordinal = {first}.ordinal AND {name}.position = {name[1:]}"
        for name in others
    )
    values = ", ".join(f"unnest(b{position}.{array}) AS {name}" for position, array, name in asked)
    position, array, _ = asked[0]
    return (  # only names made of numbers
        f"(SELECT {first}.table_id,"  # noqa: S608
        f" {first}.ordinal + generate_subscripts(b{position}.{array}, 1) - 1 AS ordinal, {values}"
        f" FROM tables_columnblock AS {first}{joins}"
        f" WHERE {first}.table_id = ANY(%(tables)s::bigint[]) AND {first}.position = {first[1:]})"
    )


_READ_ROWS = """
    SELECT wanted.ordinal, block.position, block.starts[wanted.ordinal - block.ordinal + 1],
           block.cells[wanted.ordinal - block.ordinal + 1]
    FROM unnest(%(ordinals)s::int[]) AS wanted (ordinal)
    JOIN tables_columnblock AS block ON block.table_id = %(table)s
         AND block.ordinal = wanted.ordinal / %(rows)s * %(rows)s
    ORDER BY block.position
"""


def read_rows(table: Table, ordinals: Iterable[int]) -> list[Row]:
    """These rows of a table, in the order of `ordinals`; those that do not exist are left out."""
    wanted = list(ordinals)
    parameters = {"table": table.pk, "ordinals": wanted, "rows": BLOCK_ROWS}
    starts: dict[int, int] = {}
    cells: dict[int, list[str]] = {}
    for ordinal, position, start, cell in fetch_rows(connection, _READ_ROWS, parameters):
        if position == 0 and start is not None:
            starts[ordinal] = start
        elif ordinal in starts:
            cells.setdefault(ordinal, []).append(cell)
    return [
        Row(each, starts[each], tuple(cells.get(each, ()))) for each in wanted if each in starts
    ]

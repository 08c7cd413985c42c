"""Rows of tables by where they begin in the text of their documents: those that hits of a search
show. Begin with `rows_at`."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from common.replicas import read_connection
from common.sql import bigint_array, fetch_rows

#: Document and offset in its text.
RowPlace = tuple[int, int]

# The bounds of blocks are read once for each document, and the offsets of those that have a row.
_ROWS_AT = """
    WITH bounds AS MATERIALIZED (
        SELECT found.id, found.document_id, block.ordinal, block.starts[1] AS first,
               block.starts[cardinality(block.starts)] AS last
        FROM tables_table AS found
        JOIN tables_columnblock AS block ON block.table_id = found.id AND block.position = 0
        WHERE found.document_id = ANY(%(documents)s::bigint[])
    )
    SELECT wanted.document, wanted.start, found.id, found.name, found.columns::text,
           block.ordinal + place.at - 1, cell.cells
    FROM unnest(%(documents)s::bigint[], %(starts)s::bigint[]) AS wanted (document, start)
    JOIN bounds ON bounds.document_id = wanted.document
         AND wanted.start BETWEEN bounds.first AND bounds.last
    JOIN tables_table AS found ON found.id = bounds.id
    JOIN tables_columnblock AS block ON block.table_id = bounds.id AND block.position = 0
         AND block.ordinal = bounds.ordinal
    CROSS JOIN LATERAL (SELECT array_position(block.starts, wanted.start) AS at OFFSET 0) AS place
    CROSS JOIN LATERAL (
        SELECT array_agg(other.cells[place.at] ORDER BY other.position) AS cells
        FROM tables_columnblock AS other
        WHERE other.table_id = bounds.id AND other.ordinal = bounds.ordinal AND other.position > 0
    ) AS cell
    WHERE place.at IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class RowOfTable:
    """A row of a table, whose name may be empty. `ordinal` counts the table's rows from 0, `start`
    is the row's offset in the document's text. `cells` are as written, one for each of `columns`,
    their names."""

    table_id: int
    table_name: str
    columns: tuple[str, ...]
    ordinal: int
    start: int
    cells: tuple[str, ...]


def rows_at(places: Collection[RowPlace]) -> dict[RowPlace, RowOfTable]:
    """The rows that begin at these places, in one statement; places where none does are left out.

    The documents must be those that the reader may see. The time grows with the rows of their
    tables: about 20 µs for each thousand.
    """
    if not places:
        return {}
    documents, starts = zip(*places, strict=True)
    parameters = {"documents": bigint_array(documents), "starts": bigint_array(starts)}
    return {
        (document, start): RowOfTable(
            table,
            name,
            tuple(each["name"] for each in json.loads(columns)),
            ordinal,
            start,
            tuple(cells),
        )
        for document, start, table, name, columns, ordinal, cells in fetch_rows(
            read_connection(), _ROWS_AT, parameters, prepare=True
        )
    }

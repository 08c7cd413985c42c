"""Rows of tables, put together from their columns: `row_source` is what statements over many rows
select from, `read_rows` gives some rows of one table whole, `select_rows` a page of those that fit,
`places_at` where they are in documents."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.sql import fetch_rows
from documents.models import Document
from reading.location import PAGE_LABEL, location
from reading.parsers.column_types import read_as
from reading.tables import row_end
from tables.models import BLOCK_ROWS, ColumnBlock, Table
from tables.options import RowFilter, RowOptions

Value = str | float | date | None


@dataclass(frozen=True, slots=True)
class Row:
    """`ordinal` counts the table's rows from 0; `start` is the row's offset in the document's text.
    `cells` are as written, one for each column. `values` are the same as numbers, dates, 1 and 0
    of yes and no, and texts; None where a cell is none."""

    ordinal: int
    start: int
    cells: tuple[str, ...]
    values: tuple[Value, ...]


def row_source(
    *,
    cells: Collection[int] = (),
    numbers: Collection[int] = (),
    dates: Collection[int] = (),
    starts: bool = False,
    is_mapped: bool = False,
    ordinals: bool = True,
    aggregates: str = "",
    where: str = "",
) -> str:
    """A sub-select, in parentheses, with one row for each row of the tables `%(tables)s`, an array
    of ids: `table_id`, `ordinal` (from 0), with `starts` also `start` (offset in the text), and
    `c3`, `n6` and `d1` for text, number and date of the 3rd, 6th and 1st column, NULL where a cell
    is none. Only the columns that are asked for are read: numbers of columns of numbers or
    booleans, dates of those of dates. Positions are whole numbers from 1.

    With `is_mapped` tables have the 3rd column at a position of their own: that of each of the
    `%(tables)s` is in the array `%(p3)s`.

    The rows come in the order of tables and rows, and no more blocks are read than a LIMIT asks
    for. Without `ordinals`, for aggregates, they have no `ordinal` and come in any order, in half
    the time.

    With `aggregates` there is one row for each block instead: its `table_id`, and these, of the
    rows of the block, named `row`, that the clause `where` leaves. To aggregate them by table takes
    half the time that it takes to aggregate rows.

    The ids must be of tables that the reader may see: `Table.objects.visible_to(user)`.
    """
    wanted = [
        *((position, "cells", f"c{position}") for position in sorted(set(cells))),
        *((position, "numbers", f"n{position}") for position in sorted(set(numbers))),
        *((position, "dates", f"d{position}") for position in sorted(set(dates))),
    ]
    if starts or not wanted:
        wanted.insert(0, (0, "starts", "start"))
    # One block for each position, however many of its arrays are read.
    positions = sorted({int(position) for position, _, _ in wanted})
    if is_mapped and 0 not in positions:
        return _mapped_source(wanted, positions, aggregates, where, ordinals=ordinals)
    first, *others = (f"b{position}" for position in positions)
    joins = "".join(
        f" JOIN tables_columnblock AS {name} ON {name}.table_id = {first}.table_id"
        f" AND {name}.ordinal = {first}.ordinal AND {name}.position = {name[1:]}"
        for name in others
    )
    values, lateral = _values(wanted, aggregates, where)
    numbered, order = _numbered(wanted, first, ordinals=ordinals and not aggregates)
    return (  # only names made of numbers
        f"(SELECT {first}.table_id, {numbered}{values}"  # noqa: S608
        f" FROM tables_columnblock AS {first}{joins}{lateral}"
        f" WHERE {first}.table_id = ANY(%(tables)s::bigint[]) AND {first}.position = {first[1:]}"
        f"{order})"
    )


def _mapped_source(
    wanted: Sequence[tuple[int, str, str]],
    positions: Sequence[int],
    aggregates: str,
    where: str,
    *,
    ordinals: bool,
) -> str:
    """As `row_source`, of tables with positions of their own."""
    first = f"b{positions[0]}"
    joins = "".join(
        f" JOIN tables_columnblock AS b{position} ON b{position}.table_id = place.table_id"
        f" AND b{position}.position = place.p{position}"
        + (f" AND b{position}.ordinal = {first}.ordinal" if position != positions[0] else "")
        for position in positions
    )
    values, lateral = _values(wanted, aggregates, where)
    numbered, order = _numbered(wanted, first, ordinals=ordinals and not aggregates)
    names = ", ".join(f"p{position}" for position in positions)
    arrays = ", ".join(f"%(p{position})s::int2[]" for position in positions)
    return (  # only names made of numbers
        f"(SELECT {first}.table_id, {numbered}{values}"  # noqa: S608
        f" FROM unnest(%(tables)s::bigint[], {arrays}) AS place (table_id, {names}){joins}"
        f"{lateral}{order})"
    )


def _values(wanted: Sequence[tuple[int, str, str]], aggregates: str, where: str) -> tuple[str, str]:
    """What is selected beside the table, and the join that it needs."""
    values = ", ".join(f"unnest(b{position}.{array}) AS {name}" for position, array, name in wanted)
    if not aggregates:
        return values, ""
    rows = f"(SELECT {values}) AS row{where}"
    return "block.*", f" CROSS JOIN LATERAL (SELECT {aggregates} FROM {rows}) AS block"  # noqa: S608


def _numbered(
    wanted: Sequence[tuple[int, str, str]], first: str, *, ordinals: bool
) -> tuple[str, str]:
    """What numbers rows in a SELECT, and puts them in order; both empty without `ordinals`."""
    if not ordinals:
        return "", ""
    position, array, _ = wanted[0]
    subscripts = f"generate_subscripts(b{position}.{array}, 1)"
    # Blocks are sorted, which are few, and their rows put together afterwards.
    order = f" ORDER BY {first}.table_id, {first}.ordinal"
    return f"{first}.ordinal + {subscripts} - 1 AS ordinal, ", order


_READ_ROWS = """
    SELECT wanted.table_id, wanted.ordinal, block.position, block.starts[wanted.place],
           block.cells[wanted.place], block.numbers[wanted.place], block.dates[wanted.place]
    FROM (
        SELECT table_id, ordinal, ordinal / %(rows)s * %(rows)s AS first,
               mod(ordinal, %(rows)s) + 1 AS place
        FROM unnest(%(tables)s::bigint[], %(ordinals)s::int[]) AS asked (table_id, ordinal)
    ) AS wanted
    JOIN tables_columnblock AS block
         ON block.table_id = wanted.table_id AND block.ordinal = wanted.first
    ORDER BY block.position
"""


def read_rows(table: Table, ordinals: Iterable[int]) -> list[Row]:
    """These rows of a table, in the order of `ordinals`; those that do not exist are left out."""
    wanted = [(table.pk, ordinal) for ordinal in ordinals]
    return list(rows_at({table.pk: table}, wanted).values())


def rows_at(
    tables: Mapping[int, Table], wanted: Collection[tuple[int, int]]
) -> dict[tuple[int, int], Row]:
    """Rows of several tables by the table's id and the row's ordinal, in the order of `wanted`;
    those that do not exist are left out."""
    parameters = {
        "tables": [table for table, _ in wanted],
        "ordinals": [ordinal for _, ordinal in wanted],
        "rows": BLOCK_ROWS,
    }
    starts: dict[tuple[int, int], int] = {}
    cells: dict[tuple[int, int], list[str]] = {}
    values: dict[tuple[int, int], list[Value]] = {}
    for table, ordinal, position, start, cell, number, day in fetch_rows(
        connection, _READ_ROWS, parameters
    ):
        key = table, ordinal
        if position == 0 and start is not None:
            starts[key] = start
        elif key in starts:
            cells.setdefault(key, []).append(cell)
            of_text = cell if tables[table].columns[position - 1]["type"] == "text" else None
            value = of_text if number is None and day is None else day if day else number
            values.setdefault(key, []).append(value)
    return {
        key: Row(key[1], starts[key], tuple(cells[key]), tuple(values[key]))
        for key in wanted
        if key in starts
    }


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of a page, of `count` that fit, with the sums of their numbers by column, from 1."""

    rows: list[Row]
    count: int
    sums: dict[int, float]


def select_rows(table: Table, options: RowOptions) -> Selection:
    """The rows that the options ask for. Raises InvalidInput where they name no column, or compare
    with what is no value of it."""
    wanted = _Conditions(table, options)
    paging = {"limit": options.limit, "offset": options.offset}
    if options.sort or wanted:
        order = _order(table, options)
        statement = wanted.statement("ordinal", order.keys())
        statement += f" ORDER BY {', '.join([*order.values(), 'ordinal'])}"
        statement += " LIMIT %(limit)s OFFSET %(offset)s"
        found = fetch_rows(connection, statement, wanted.parameters | paging)
        ordinals = [ordinal for (ordinal,) in found]
    else:
        ordinals = list(range(table.row_count)[options.offset :][: options.limit])
    summed = [f"n{at}" for at, column in _positions(table) if column["type"] == "number"]
    count, sums = table.row_count, dict[int, float]()
    if wanted or summed:
        values = ", ".join(["count(*)", *(f"sum({name})" for name in summed)])
        statement = wanted.statement(values, summed)
        ((count, *totals),) = fetch_rows(connection, statement, wanted.parameters)
        pairs = zip(summed, totals, strict=True)
        sums = {int(name[1:]): total for name, total in pairs if total is not None}
    return Selection(read_rows(table, ordinals), count, sums)


def matching_rows(
    table: Table, options: RowFilter, *, typed: bool = False
) -> Iterator[tuple[Value, ...]]:
    """The cells of all rows that fit, in the order of the document, a block at a time; with `typed`
    their values, where a cell has one. Raises InvalidInput at once."""
    wanted = _Conditions(table, options)
    fitting: set[int] | None = None
    if wanted:
        found = fetch_rows(connection, wanted.statement("ordinal", ()), wanted.parameters)
        fitting = {ordinal for (ordinal,) in found}

    def read_blocks() -> Iterator[tuple[Value, ...]]:
        fields = ("cells", "numbers", "dates") if typed else ("cells",)
        for first in range(0, table.row_count, BLOCK_ROWS):
            block = range(first, min(first + BLOCK_ROWS, table.row_count))
            if fitting is not None and fitting.isdisjoint(block):
                continue
            blocks = ColumnBlock.objects.filter(table=table, ordinal=first).exclude(position=0)
            columns = [
                [
                    cell if value is None else value
                    for cell, value in zip(cells, values, strict=True)
                ]
                if (values := next(filter(None, others), None))
                else cells
                for cells, *others in blocks.order_by("position").values_list(*fields)
            ]
            for ordinal, row in zip(block, zip(*columns, strict=True), strict=True):
                if fitting is None or ordinal in fitting:
                    yield row

    return read_blocks()


#: How a value is compared.
_OPERATORS = {"equals": "=", "above": ">", "below": "<", "at_least": ">=", "at_most": "<="}


class _Conditions:
    """The conditions of options as SQL; false without one."""

    def __init__(self, table: Table, options: RowFilter) -> None:
        self.parameters: dict[str, Any] = {"tables": [table.pk]}
        self._conditions: list[str] = []
        self._names: set[str] = set()
        if options.words:
            self.parameters["words"] = options.words
            names = [f"c{at}" for at, _ in _positions(table)]
            self._names.update(names)
            tests = (f"strpos(lower({name}), lower(%(words)s)) > 0" for name in names)
            self._conditions.append(f"({' OR '.join(tests)})")
        if options.column:
            self._compare(table, options)

    def _compare(self, table: Table, options: RowFilter) -> None:
        position, column = _column_of(table, options.column, field="column")
        name = f"c{position}"
        if options.comparison == "contains":
            test = f"strpos(lower({name}), lower(%(value)s)) > 0"
            value: Any = options.value
        else:
            value = _value_of(column, options.value)
            if isinstance(value, str):
                test = f"lower({name}) {_OPERATORS[options.comparison]} lower(%(value)s)"
            else:
                name = f"{'d' if isinstance(value, date) else 'n'}{position}"
                test = f"{name} {_OPERATORS[options.comparison]} %(value)s"
        self.parameters["value"] = value
        self._names.add(name)
        self._conditions.append(test)

    def __bool__(self) -> bool:
        return bool(self._conditions)

    def statement(self, values: str, names: Iterable[str]) -> str:
        """What selects `values` of the rows that fit; `names` are columns that it reads, too."""
        read = sorted({*self._names, *names})
        cells, numbers, dates = (
            [int(name[1:]) for name in read if name[0] == letter] for letter in "cnd"
        )
        source = row_source(cells=cells, numbers=numbers, dates=dates)
        condition = " AND ".join(self._conditions) or "true"
        return f"SELECT {values} FROM {source} AS row WHERE {condition}"  # noqa: S608 (our own names)


def _positions(table: Table) -> Iterator[tuple[int, dict[str, Any]]]:
    return enumerate(table.columns, start=1)


def column_position(columns: Sequence[dict[str, Any]], name: str, *, field: str) -> int:
    """The position, from 1, of the column that is called so. Raises InvalidInput without one."""
    for position, column in enumerate(columns, start=1):
        if column["name"] == name:
            return position
    raise InvalidInput(
        gettext("The table has no column “{name}”. It has: {names}.").format(
            name=name, names=", ".join(column["name"] for column in columns)
        ),
        field=field,
    )


def _column_of(table: Table, name: str, *, field: str) -> tuple[int, dict[str, Any]]:
    position = column_position(table.columns, name, field=field)
    return position, table.columns[position - 1]


def _value_of(column: dict[str, Any], text: str) -> Any:
    """What is compared with cells of the column: a number, a date, or the text itself."""
    if column["type"] == "text":
        return text
    type_ = read_as(column["type"], [text], language="en")
    value = type_.date(text) if column["type"] == "date" else type_.number(text)
    if value is None:
        messages = {
            "number": gettext("“{name}” has numbers: write one such as 4000.5."),
            "date": gettext("“{name}” has dates: write one such as 2026-03-01."),
            "boolean": gettext("“{name}” is yes or no: write one of them."),
        }
        raise InvalidInput(messages[column["type"]].format(name=column["name"]), field="value")
    return value


def _order(table: Table, options: RowOptions) -> dict[str, str]:
    """Expressions by which rows are ordered, by the columns that they read."""
    if not options.sort:
        return {}
    position, column = _column_of(table, options.sort, field="sort")
    direction = "DESC" if options.descending else "ASC"
    if column["type"] == "text":
        name = f"c{position}"
        return {name: f"{name} = '', lower({name}) {direction}"}
    name = f"{'d' if column['type'] == 'date' else 'n'}{position}"
    return {name: f"{name} {direction} NULLS LAST"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row is: its passage, the place in words, such as `Prices!A12` or `page 3`, and the
    offset in the document's text where it ends."""

    chunk_id: int
    label: str
    end: int


_PASSAGES = """
    SELECT wanted.document, wanted.start, chunk.id, chunk.page, chunk.heading_path, chunk.text,
           chunk.start, chunk.metadata ->> %(label)s
    FROM unnest(%(documents)s::bigint[], %(starts)s::bigint[]) AS wanted (document, start)
    JOIN LATERAL (
        SELECT id, page, heading_path, text, start, metadata FROM documents_chunk
        WHERE document_id = wanted.document AND start <= wanted.start AND "end" > wanted.start
        ORDER BY start DESC LIMIT 1
    ) AS chunk ON true
"""


def places_at(
    documents: Iterable[Document], starts: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], Place]:
    """Places by the document's id and the offset in its text where a row begins."""
    media_types = {document.pk: document.media_type for document in documents}
    wanted = list(starts)
    parameters = {
        "documents": [document for document, _ in wanted],
        "starts": [start for _, start in wanted],
        "label": PAGE_LABEL,
    }
    places = {}
    for pk, start, chunk, page, path, text, begin, label in fetch_rows(
        connection, _PASSAGES, parameters
    ):
        at = start - begin
        worded = location(media_types[pk], page, heading_path=path, text=text, at=at, label=label)
        places[pk, start] = Place(chunk, worded, begin + row_end(text, at))
    return places

"""What doors do with tables: read rows, correct columns, write CSV, read tables again."""

import csv
import io
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from django.db import transaction
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext

from accounts.audit import Action
from common.errors import Conflict, InvalidInput
from common.text import spreadsheet_text
from documents.models import Collection, Document
from documents.services.audit import record
from tables.groups.meaning import suggest_by_meaning
from tables.groups.store import group_tables, regroup, remove_unused
from tables.models import BLOCK_ROWS, Table
from tables.options import RowFilter, RowOptions
from tables.rows import Row, Value, matching_cells, places_of, select_rows
from tables.store import read_cells_again, store_tables


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row with its place in the document."""

    ordinal: Annotated[int, "Of the row in its table, from 0."]
    start: Annotated[int, "Offset of the row in the document's text."]
    cells: Annotated[tuple[str, ...], "As written, one for each column."]
    values: Annotated[
        tuple[Value, ...],
        "The same as numbers, ISO dates, 1 and 0 of yes and no, and texts; null where a cell is"
        " none.",
    ]
    place: Annotated[str, "Such as `Prices!A12`, `row 7`, `page 3`; empty where not known."]
    chunk: Annotated[int | None, "Id of the passage that it is in."]


@dataclass(frozen=True, slots=True)
class ColumnSum:
    """The sum of a column's numbers."""

    column: str
    position: Annotated[int, "Of the column, from 1."]
    sum: float


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows of a page, of `count` that fit, and the sums of all that fit."""

    count: Annotated[int, "Rows that fit, of all pages."]
    sums: list[ColumnSum]
    results: list[PlacedRow]


def read_page(table: Table, options: RowOptions) -> RowPage:
    """A page of a table. Raises InvalidInput as `select_rows`."""
    found = select_rows(table, options)
    places = places_of(table, found.rows)

    def placed(row: Row) -> PlacedRow:
        place = places.get(row.ordinal)
        return PlacedRow(
            *(row.ordinal, row.start, row.cells, row.values),
            place=place.label if place else "",
            chunk=place.chunk_id if place else None,
        )

    return RowPage(
        count=found.count,
        sums=[
            ColumnSum(table.columns[position - 1]["name"], position, total)
            for position, total in found.sums.items()
        ],
        results=[placed(row) for row in found.rows],
    )


def csv_response(table: Table, options: RowFilter) -> StreamingHttpResponse:
    """A download of the rows that fit as CSV, below the names of the columns, in the document's
    order. Raises InvalidInput as `select_rows`."""
    rows = matching_cells(table, options)
    numbers = {at for at, column in enumerate(table.columns) if column["type"] == "number"}

    def lines() -> Iterator[str]:
        yield _csv_lines([[column["name"] for column in table.columns]])
        while batch := list(islice(rows, BLOCK_ROWS)):
            yield _csv_lines(batch, numbers)

    name = f"{table.name or table.document.display_title}.csv"
    return StreamingHttpResponse(
        lines(),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": content_disposition_header(True, name) or "attachment"},
    )


def _csv_lines(rows: Iterable[Iterable[str]], numbers: Container[int] = ()) -> str:
    """The rows; cells are `spreadsheet_text`, but for `numbers`, the places of columns that hold
    some."""
    out = io.StringIO()
    csv.writer(out).writerows(
        [cell if at in numbers else spreadsheet_text(cell) for at, cell in enumerate(row)]
        for row in rows
    )
    return out.getvalue()


@transaction.atomic
def correct_column(
    *,
    table: Table,
    column: str = "",
    name: str | None = None,
    type: str | None = None,
    unit: str | None = None,
) -> None:
    """Set what a column is called and holds, also whenever the document is read again; its cells
    stay. Raises InvalidInput, and Conflict where another column is called so."""
    table.refresh_from_db(from_queryset=Table.objects.select_for_update())
    positions = [at for at, each in enumerate(table.columns) if each["name"] == column]
    if not positions:
        raise InvalidInput(gettext("The table has no such column."), field="column")
    at = positions[0]
    before = table.columns[at]
    given = {"name": name, "type": type, "unit": unit}
    after = {**before, **{key: value for key, value in given.items() if value is not None}}
    after["name"] = " ".join(after["name"].split())
    if not after["name"]:
        raise InvalidInput(gettext("A column needs a name."), field="name")
    if any(each["name"] == after["name"] for each in table.columns if each is not before):
        raise Conflict(gettext("Another column is called so."))
    read = {key: before[key] for key in ("name", "type", "unit")}
    table.columns[at] = after | {"read": before.get("read", read)}
    table.save(update_fields=["columns"])
    is_renamed_only = after["type"] == before["type"] and after["unit"] == before["unit"]
    regroup(table, keeps_place=is_renamed_only)
    if after["type"] != before["type"]:
        read_cells_again(table, at + 1)
    record(Action.CHANGED, table.document, fields=["tables"])


def rebuild_tables(collection: Collection | None = None) -> Iterator[tuple[int, int]]:
    """Read the tables of documents again that have none, or whose text has changed, a few at a
    time: yields how many documents were looked at, and in how many were tables. Then tables are
    grouped that are not, and matches suggested."""
    documents = Document.objects.filter(chunk_count__gt=0).order_by("pk")
    if collection is not None:
        documents = documents.filter(collection=collection)
    last, looked, read = 0, 0, 0
    while ids := list(documents.filter(pk__gt=last).values_list("pk", flat=True)[:50]):
        with transaction.atomic():
            # As loading does, so that none is loaded meanwhile.
            held = Document.objects.select_for_update(no_key=True).filter(pk__in=ids)
            read += store_tables(list(held.order_by("pk").values_list("pk", flat=True)))
            group_tables(Table.objects.filter(document__in=ids))
        last, looked = ids[-1], looked + len(ids)
        yield looked, read
    collections = Collection.objects.all() if collection is None else [collection]
    for each in collections:
        with transaction.atomic():
            remove_unused(each.pk)
        suggest_by_meaning(each)

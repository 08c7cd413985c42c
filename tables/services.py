"""What doors do with tables: read rows, correct columns, read tables again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext

from accounts.audit import Action
from common.errors import Conflict, InvalidInput
from documents.models import Collection, Document
from documents.services.audit import record
from tables.execute import EvidenceRow, select_rows_of_plan
from tables.groups.meaning import suggest_by_meaning
from tables.groups.store import group_tables, regroup, remove_unused
from tables.models import Table
from tables.options import PageOptions, RowOptions
from tables.questions.plan import Plan
from tables.rows import Row, Value, places_at, select_rows
from tables.store import read_cells_again, store_tables
from tables.wording import worded_reading


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row with its place in the document."""

    ordinal: Annotated[int, "Of the row in its table, from 0."]
    start: Annotated[int, "Offset of the row in the document's text."]
    end: Annotated[int, "Where it ends there; `start` where its passage is not known."]
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
    pk = table.document_id
    places = places_at([table.document], [(pk, row.start) for row in found.rows])

    def placed(row: Row) -> PlacedRow:
        place = places.get((pk, row.start))
        return PlacedRow(
            *(row.ordinal, row.start, place.end if place else row.start, row.cells, row.values),
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


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row that an answer was computed from, with its place in its document."""

    table: Annotated[int, "Id of its table."]
    ordinal: Annotated[int, "Of the row in its table, from 0."]
    document: Annotated[int, "Id of its document."]
    title: str
    collection: Annotated[str, "Slug."]
    cells: Annotated[tuple[str, ...], "As written, one for each of `columns`."]
    start: Annotated[int, "Offset of the row in the document's text."]
    end: int
    place: Annotated[str, "Such as `Prices!A12`, `row 7`, `page 3`; empty where not known."]
    url: Annotated[str, "The page that shows it, with the row marked."]


@dataclass(frozen=True, slots=True)
class ResultRows:
    """Rows of a page, of `count` that an answer was computed from."""

    description: Annotated[str, "What was computed, in words."]
    columns: list[str]
    count: Annotated[int, "Rows of all pages."]
    sums: list[ColumnSum]
    results: list[ResultRow]


def read_result(plan: Plan, tables: QuerySet[Table], options: PageOptions) -> ResultRows:
    """A page of the rows that a plan is computed from. Raises as `select_rows_of_plan`."""
    found = select_rows_of_plan(plan, tables, options)
    return ResultRows(
        description=worded_reading(plan),
        columns=list(plan.columns),
        count=found.count,
        sums=[ColumnSum(plan.columns[at], at + 1, total) for at, total in found.sums.items()],
        results=[
            ResultRow(
                *(row.table_id, row.ordinal, row.document_id, row.document_title, row.collection),
                *(row.cells, row.start, row.end, row.location, row_url(row)),
            )
            for row in found.rows
        ],
    )


def row_url(row: EvidenceRow) -> str:
    """The page of the document, with the row marked."""
    address = reverse("document", args=[row.collection, row.document_id])
    if row.chunk_id is None:
        return address
    return f"{address}?chunk={row.chunk_id}&quote={row.start}-{row.end}#passage"


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

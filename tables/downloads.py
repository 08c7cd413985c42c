"""Rows and results as files for spreadsheets: CSV and Excel. Begin with `table_response` and
`result_response`."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import Literal, get_args

import xlsxwriter
from django.db.models import QuerySet
from django.http import FileResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.formats import number_format
from django.utils.http import content_disposition_header
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.text import spreadsheet_text
from tables.asking import compute_plan
from tables.execute import EvidenceRow, all_rows_of_plan, first_table_of_plan
from tables.models import BLOCK_ROWS, Table
from tables.options import RowFilter
from tables.questions.plan import Plan
from tables.rows import Value, matching_rows
from tables.wording import worded

FileFormat = Literal["csv", "xlsx"]
#: What of a result is written: its groups, or the rows that it was computed from.
Part = Literal["rows", "groups"]
PARTS: tuple[Part, ...] = get_args(Part)
#: Rows of an Excel file, and of those that a result was computed from.
MAX_FILE_ROWS = 100_000
_MAX_CELL_CHARACTERS = 32_767
#: A number with its sign and unit, which no spreadsheet takes for a formula.
_NUMBER = re.compile(r"[+-][ \u00a0]?[€$£¥]?\d[\d.,'’ \u00a0\u202f]*(?:[€$£¥%]|[A-Za-z]{1,3})?")


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a file holds: `names` of columns with their types, and rows of as many values."""

    title: str
    names: Sequence[str]
    types: Sequence[str]
    rows: Iterable[Sequence[Value]]


def table_response(table: Table, options: RowFilter, *, form: FileFormat) -> HttpResponseBase:
    """The rows of a table that fit, below the names of its columns, in the document's order. Raises
    InvalidInput as `select_rows`, and for more rows than an Excel file may have."""
    if form == "xlsx" and table.row_count > MAX_FILE_ROWS:
        raise InvalidInput(
            gettext("An Excel file has at most {most} rows. Download CSV.").format(
                most=number_format(MAX_FILE_ROWS, force_grouping=True)
            )
        )
    return _response(
        Sheet(
            table.name or table.document.display_title,
            [column["name"] for column in table.columns],
            [column["type"] for column in table.columns],
            matching_rows(table, options, typed=form == "xlsx"),
        ),
        form,
    )


def result_response(
    plan: Plan, tables: QuerySet[Table], *, part: Part, form: FileFormat
) -> HttpResponseBase:
    """The groups of a result, or all rows that it was computed from, each with its document and
    place. Raises InvalidInput where it has no groups and for too many rows, and NotFound as
    `compute_plan`."""
    answer = compute_plan(plan, tables)
    assert answer.result is not None
    said = worded(answer, listed_rows=0)
    if part == "groups":
        if not answer.result.groups:
            raise InvalidInput(
                gettext("This result has no groups. Download its rows."), field="part"
            )
        groups = [(each.name, each.value, float(each.count)) for each in answer.result.groups]
        names = [said.group_head or gettext("Value"), said.measure, gettext("Rows")]
        return _response(Sheet(said.measure, names, ("text", "number", "number"), groups), form)
    found = all_rows_of_plan(plan, tables, most=MAX_FILE_ROWS)
    first = next(found, None)  # what is refused is refused before the response begins
    types = [each["type"] for each in first_table_of_plan(plan, tables).columns]
    rows = (
        (row.document_title, row.location, *(_typed(row) if form == "xlsx" else row.cells))
        for row in chain([] if first is None else [first], found)
    )
    names = [gettext("Document"), gettext("Place"), *plan.columns]
    return _response(Sheet(said.measure, names, ["text", "text", *types], rows), form)


def _typed(row: EvidenceRow) -> list[Value]:
    pairs = zip(row.cells, row.values, strict=True)
    return [cell if value is None else value for cell, value in pairs]


def _response(sheet: Sheet, form: FileFormat) -> HttpResponseBase:
    name = f"{sheet.title or 'table'}.{form}"
    if form == "xlsx":
        file = TemporaryFile()  # noqa: SIM115 (the response closes it)
        _write_excel(sheet, file)
        file.seek(0)
        return FileResponse(file, as_attachment=True, filename=name)
    return StreamingHttpResponse(
        _csv_parts(sheet),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": content_disposition_header(True, name) or "attachment"},
    )


def _csv_parts(sheet: Sheet) -> Iterator[str]:
    """With a byte order mark, by which Excel knows that it is UTF-8. Cells that are no numbers are
    `spreadsheet_text`."""
    yield "\ufeff"
    rows = iter(sheet.rows)
    batch: list[Sequence[Value]] = [[spreadsheet_text(name) for name in sheet.names]]
    while batch:
        out = io.StringIO()
        csv.writer(out).writerows(batch)
        yield out.getvalue()
        batch = [[_csv_cell(cell) for cell in row] for row in islice(rows, BLOCK_ROWS)]


def _csv_cell(value: Value) -> str:
    text = _plain(value)
    return text if _NUMBER.fullmatch(text) else spreadsheet_text(text)


def _plain(value: Value) -> str:
    return "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def _write_excel(sheet: Sheet, file: io.BufferedIOBase) -> None:
    """Numbers, dates, yes and no as such. Nothing is a formula or a link: text that looks like one
    has the mark that Excel gives to text, so that editing it does not run it."""
    options = {"constant_memory": True, "nan_inf_to_errors": True}
    with xlsxwriter.Workbook(file, options) as book:
        page = book.add_worksheet()
        page.freeze_panes(1, 0)
        bold = book.add_format({"bold": True})
        quoted = book.add_format({"quote_prefix": True})
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        for at, name in enumerate(sheet.names):
            page.write_string(0, at, name[:_MAX_CELL_CHARACTERS], bold)
            page.set_column(at, at, min(max(len(name) + 2, 10), 40))
        for line, row in enumerate(sheet.rows, start=1):
            for at, (value, type_) in enumerate(zip(row, sheet.types, strict=True)):
                if isinstance(value, float) and type_ == "boolean":
                    page.write_boolean(line, at, bool(value))
                elif isinstance(value, float):
                    page.write_number(line, at, value)
                elif isinstance(value, date) and value.year >= 1900:
                    page.write_datetime(line, at, value, day)
                elif text := _plain(value)[:_MAX_CELL_CHARACTERS]:
                    is_quoted = spreadsheet_text(text) != text
                    page.write_string(line, at, text, quoted if is_quoted else None)

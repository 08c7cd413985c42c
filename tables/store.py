"""Writing tables: read from the text of documents that were loaded, and kept by column. Begin with
`store_tables`."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.sql import copy_rows
from documents.ingestion.text_changes import join_passages
from documents.models import Chunk, Document
from reading.location import WORKBOOKS
from reading.parsers.column_types import ColumnType, read_as
from reading.tables import tables_of
from tables.groups.headers import fingerprint
from tables.groups.store import group_tables
from tables.models import (
    BLOCK_ROWS,
    COLUMN_TYPES,
    MAX_COLUMN_NAME,
    MAX_UNIT,
    ColumnBlock,
    Table,
)

BLOCK_COLUMNS = (
    ("table_id", "int8"),
    ("workspace_id", "int8"),
    ("collection_id", "int8"),
    ("position", "int2"),
    ("ordinal", "int4"),
    ("cells", "text[]"),
    ("numbers", "float8[]"),
    ("dates", "date[]"),
    ("starts", "int8[]"),
)

# A line of dashes below a header, or a row that is written as a list.
_WITH_TABLES = r"""
    SELECT document.id FROM documents_document AS document
    WHERE document.id = ANY(%s) AND (
        EXISTS (SELECT FROM tables_table WHERE document_id = document.id)
        OR EXISTS (
            SELECT FROM documents_chunk AS chunk
            WHERE chunk.document_id = document.id
              AND (strpos(chunk.text, '|') > 0 OR strpos(chunk.text, 'Row ') > 0)
              AND chunk.text ~ '(^|\n)[ \t]*(\|?[ \t]*:?-+:?[ \t]*\||\|[ \t]*:?-|Row [0-9]+:)'
        )
    )
    ORDER BY document.id
"""

#: Columns that a curator has corrected, by the names of table and column as they were read.
Corrections = Mapping[tuple[str, str], Mapping[str, Any]]


def store_tables(document_ids: Sequence[int]) -> int:
    """Make the tables of these documents those of their texts, in the caller's transaction; returns
    how many documents were read. One whose text has not changed since keeps its tables."""
    with connection.cursor() as cursor:
        cursor.execute(_WITH_TABLES, [list(document_ids)])
        ids = [pk for (pk,) in cursor.fetchall()]
    stored = [table for pk in ids for table in _store(Document.objects.get(pk=pk))]
    group_tables(stored)
    return len(ids)


def _store(document: Document) -> list[Table]:
    passages = Chunk.objects.filter(document=document).only("start", "end", "text")
    return write_tables(document, join_passages(passages.order_by("ordinal").iterator(2_000)))


def write_tables(document: Document, text: str) -> list[Table]:
    """Make the tables of a document those of its `text`, in the caller's transaction; returns those
    that were written, none where the text has not changed."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    known = list(Table.objects.filter(document=document))
    if known and all(table.text_sha256 == digest for table in known):
        return []
    former = known or _tables_of_former_version(document) or _of_twins(document)
    corrections, apart = _corrections(former), _apart(former)
    stored = list[Table]()
    Table.objects.filter(pk__in=[table.pk for table in known]).delete()
    language = _language_of_cells(document)
    for ordinal, parsed in enumerate(tables_of(text)):
        types = parsed.types(language=language)
        parsed.leave_out_total(types)
        columns = []
        for position, name in enumerate(_unique(parsed.names)):
            corrected = corrections.get((parsed.name, name))
            if corrected and corrected["type"] != types[position].kind:
                cells = [row[position] for row in islice(parsed.rows(), BLOCK_ROWS)]
                types[position] = read_as(corrected["type"], cells, language=language)
            kind = types[position].kind.replace("empty", "text")
            read = {"name": name, "type": kind, "unit": types[position].unit}
            columns.append(dict(corrected or read))
        table = Table.objects.create(
            workspace_id=document.workspace_id,
            collection_id=document.collection_id,
            document=document,
            ordinal=ordinal,
            name=parsed.name[:500],
            heading_path=list(parsed.heading_path),
            columns=columns,
            row_count=len(parsed.starts),
            rows_left_out=parsed.rows_left_out,
            columns_left_out=parsed.columns_left_out,
            start=parsed.start,
            is_current=document.is_current,
            text_sha256=digest,
            fingerprint=fingerprint(columns),
        )
        write_blocks(table, parsed.starts, parsed.rows(), types)
        stored.append(table)
    if apart:
        for key, table in _by_name(stored).items():
            table.is_apart = key[1:] in apart
        Table.objects.bulk_update(stored, ["is_apart"])
    return stored


def _language_of_cells(document: Document) -> str:
    # Workbooks show figures in one way, whatever their language.
    return "en" if document.media_type in WORKBOOKS else document.language


def _unique(names: Sequence[str]) -> list[str]:
    """The names of columns, each on one line and given once: `Price`, `Price (2)`."""
    seen: dict[str, int] = {}
    unique = []
    for position, name in enumerate(names, start=1):
        name = " ".join(name.split())[:MAX_COLUMN_NAME] or f"Column {position}"  # noqa: PLW2901
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def _corrections(tables: Iterable[Table]) -> Corrections:
    return {
        (table.name, column["read"]["name"]): column
        for table in tables
        for column in table.columns
        if "read" in column
    }


def _by_name(tables: Iterable[Table]) -> dict[tuple[int, str, int], Table]:
    """Tables by document, name, and which of those of this name it is."""
    found = dict[tuple[int, str, int], Table]()
    times = Counter[tuple[int, str]]()
    for table in tables:
        own = (table.document_id, table.name)
        found[(*own, times[own])] = table
        times[own] += 1
    return found


def _apart(tables: Iterable[Table]) -> set[tuple[str, int]]:
    """What a curator has taken out of its group, by name; of several versions the last counts."""
    states = {key[1:]: table.is_apart for key, table in _by_name(tables).items()}
    return {key for key, is_apart in states.items() if is_apart}


def _tables_of_former_version(document: Document) -> list[Table]:
    if document.version == 1:
        return []
    former = Table.objects.filter(
        collection=document.collection_id, document__key=document.key
    ).exclude(document=document)
    return list(former.order_by("document__version", "ordinal"))


def _of_twins(document: Document) -> QuerySet[Table]:
    """Tables of documents with the same bytes for the same people, such as the original of an
    alias that gets a text of its own."""
    return Table.objects.filter(
        collection=document.collection_id,
        document__source_sha256=document.source_sha256 or None,
        document__access=document.access,
    ).exclude(document=document)


def exported_corrections(document_ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """What curators have corrected, as JSON, by document: tables with `name` and `columns`."""
    found: dict[int, list[dict[str, Any]]] = {pk: [] for pk in document_ids}
    for table in Table.objects.filter(document__in=document_ids).order_by("ordinal"):
        if columns := [column for column in table.columns if "read" in column]:
            found[table.document_id].append({"name": table.name, "columns": columns})
    return found


def import_corrections(document_id: int, exported: Any) -> None:
    """Make a document's corrections those that were exported, as JSON. Raises InvalidInput."""
    try:
        corrections = {
            (table["name"], column["read"]["name"]): {key: column[key] for key in _CORRECTED}
            for table in exported
            for column in table["columns"]
        }
        is_valid = all(map(_is_correction, corrections.values()))
    except (KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise InvalidInput(gettext("“tables” must list tables with their corrected columns."))
    for table in Table.objects.filter(document=document_id):
        before, table.columns = table.columns, []
        for column in before:
            read = column.get("read", column)
            corrected = corrections.get((table.name, read["name"]))
            table.columns.append(corrected | {"read": read} if corrected else read)
        if len({column["name"] for column in table.columns}) < len(table.columns):
            raise InvalidInput(gettext("“tables” gives two columns of a table one name."))
        if table.columns != before:
            table.save(update_fields=["columns"])
        for position, (old, new) in enumerate(zip(before, table.columns, strict=True), 1):
            if old["type"] != new["type"]:
                read_cells_again(table, position)


_CORRECTED = ("name", "type", "unit")


def _is_correction(column: Mapping[str, Any]) -> bool:
    return (
        all(isinstance(value, str) for value in column.values())
        and 0 < len(column["name"]) <= MAX_COLUMN_NAME + len(" (200)")
        and column["type"] in COLUMN_TYPES
        and len(column["unit"]) <= MAX_UNIT
    )


def read_cells_again(table: Table, position: int) -> None:
    """Give the cells of a column, the type of which has changed, their values."""
    blocks = ColumnBlock.objects.filter(table=table, position=position).order_by("ordinal")
    language = _language_of_cells(table.document)
    type_: ColumnType | None = None
    for block in blocks.iterator(1):
        cells = block.cells or []
        if type_ is None:
            type_ = read_as(table.columns[position - 1]["type"], cells, language=language)
        numbers, dates = values_of(cells, type_)
        same = ColumnBlock.objects.filter(table=table, position=position, ordinal=block.ordinal)
        same.update(numbers=numbers, dates=dates)


def write_blocks(
    table: Table,
    starts: Sequence[int],
    rows: Iterator[Sequence[str]],
    types: Sequence[ColumnType],
) -> None:
    """Write the rows of a table that has none."""
    common = (table.pk, table.workspace_id, table.collection_id)

    def blocks() -> Iterator[tuple[Any, ...]]:
        for ordinal in range(0, len(starts), BLOCK_ROWS):
            columns = list(zip(*islice(rows, BLOCK_ROWS), strict=True))
            offsets = list(starts[ordinal : ordinal + BLOCK_ROWS])
            yield (*common, 0, ordinal, None, None, None, offsets)
            for position, (cells, type_) in enumerate(zip(columns, types, strict=True), start=1):
                yield (*common, position, ordinal, list(cells), *values_of(cells, type_), None)

    copy_rows(ColumnBlock._meta.db_table, BLOCK_COLUMNS, blocks())


def values_of(cells: Sequence[str], type_: ColumnType) -> tuple[list[Any] | None, list[Any] | None]:
    """The `numbers` and `dates` of a block with these cells."""
    # Each spelling is read once: dates, quantities, yes and no repeat.
    if type_.kind in ("number", "boolean"):
        numbers = {cell: type_.number(cell) for cell in set(cells)}
        return [numbers[cell] for cell in cells], None
    if type_.kind == "date":
        dates = {cell: type_.date(cell) for cell in set(cells)}
        return None, [dates[cell] for cell in cells]
    return None, None

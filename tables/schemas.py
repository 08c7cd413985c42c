"""Tables of the database as questions see them: columns with the values that occur. Begin with
`load_schemas`."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import date
from threading import Lock
from typing import Any

from django.db import connection
from django.db.models import OuterRef, QuerySet, Subquery

from common.sql import fetch_rows
from documents.models import Chunk
from tables.models import BLOCK_ROWS, Table, TableLayout
from tables.questions.plan import Column, TableSchema

#: With more tables a question is not asked: reading their values would take longer than answering.
MAX_TABLES = 1_000
#: Values of a column that are known, and their length. Those of later blocks are not.
MAX_VALUES, MAX_VALUE_CHARACTERS = 500, 100

#: Tables whose cells are read at once: 20 with 200 columns each are 4,000,000 cells.
_BATCH = 20

_DAYS = """
    SELECT table_id, position, min(day), max(day)
    FROM (
        SELECT table_id, position, unnest(dates) AS day FROM tables_columnblock
        WHERE table_id = ANY(%(tables)s::bigint[]) AND dates IS NOT NULL
    ) AS days
    GROUP BY table_id, position
"""
# Counted here: PostgreSQL takes twice as long for it.
_CELLS = """
    SELECT table_id, position, cells FROM tables_columnblock
    WHERE table_id = ANY(%(tables)s::bigint[]) AND position > 0 AND ordinal = 0
          AND dates IS NULL AND numbers IS NULL
"""


#: Of a column: its first and last day, its values, and whether each cell of the first block that is
#: filled has another one.
_Profile = tuple[date | None, date | None, tuple[str, ...], bool]


class _Profiles:
    """What the columns of tables hold, as this process remembers it: a document that changes gets
    other tables, and a column that a curator corrects another type."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._known: OrderedDict[tuple[object, ...], dict[int, _Profile]] = OrderedDict()

    def __call__(self, tables: Sequence[Table]) -> dict[int, dict[int, _Profile]]:
        """Profiles by table id and position of the column, which counts from 1."""
        keys = {
            table.pk: (table.pk, table.text_sha256, *(each["type"] for each in table.columns))
            for table in tables
        }
        with self._lock:
            known = {pk: self._known.get(key) for pk, key in keys.items()}
        profiles = {pk: {} if profile is None else profile for pk, profile in known.items()}
        missing = [pk for pk, profile in known.items() if profile is None]
        for start in range(0, len(missing), _BATCH):
            parameters = {"tables": missing[start : start + _BATCH]}
            for table, position, first, last in fetch_rows(connection, _DAYS, parameters):
                profiles[table][position] = (first, last, (), False)
            for table, position, cells in fetch_rows(connection, _CELLS, parameters):
                short = [cell for cell in cells if len(cell) <= MAX_VALUE_CHARACTERS]
                filled = list(filter(None, map(str.strip, short)))
                values = tuple(dict.fromkeys(filled))
                is_unique = 0 < len(filled) == len(values)
                profiles[table][position] = (None, None, values[: MAX_VALUES + 1], is_unique)
        with self._lock:
            for pk, key in keys.items():
                self._known[key] = profiles[pk]
                self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return profiles


_profiles = _Profiles(2 * MAX_TABLES)


def load_schemas(tables: QuerySet[Table]) -> list[TableSchema]:
    """The schemas of these tables, which the reader may see; [] where they are too many."""
    found = list(
        tables.filter(row_count__gt=0)
        .select_related("document")
        .only(
            *("name", "columns", "row_count", "text_sha256", "heading_path"),
            *("collection_id", "fingerprint", "is_apart"),
            *("document__title", "document__key"),
        )
        .annotate(language=Subquery(_LANGUAGE))
        .order_by("document__key", "ordinal")[: MAX_TABLES + 1]
    )
    if len(found) > MAX_TABLES:
        return []
    profiles, layouts = _profiles(found), _layouts(found)
    return [_schema(table, profiles[table.pk], layouts) for table in found]


#: The configuration of the first passage of a table's document.
_LANGUAGE = (
    Chunk.objects.filter(document=OuterRef("document")).order_by("ordinal").values("language")[:1]
)
_LANGUAGES = {"english": "en", "german": "de", "spanish": "es"}
#: Group and positions of the columns in it, by collection and fingerprint.
_Layouts = dict[tuple[int, str], tuple[int, tuple[int, ...]]]


def _layouts(tables: Sequence[Table]) -> _Layouts:
    rows = TableLayout.objects.filter(
        collection__in={table.collection_id for table in tables},
        fingerprint__in={table.fingerprint for table in tables},
    ).values_list("collection", "fingerprint", "group", "positions")
    return {(collection, name): (pk, tuple(places)) for collection, name, pk, places in rows}


def _schema(table: Table, profile: dict[int, _Profile], layouts: _Layouts) -> TableSchema:
    group, places = layouts.get((table.collection_id, table.fingerprint), (None, ()))
    if table.is_apart or len(places) != len(table.columns):
        group, places = None, ()
    is_whole = table.row_count <= BLOCK_ROWS
    return TableSchema(
        table.pk,
        table.name,
        tuple(
            _column(column, profile.get(position), is_whole=is_whole)
            for position, column in enumerate(table.columns, 1)
        ),
        f"{table.document.title} {table.document.key.rsplit('/', 1)[-1]}",
        group,
        places,
        table.is_apart,
        table.collection_id,
        _LANGUAGES.get(getattr(table, "language", ""), ""),
    )


def _column(column: dict[str, Any], profile: _Profile | None, *, is_whole: bool) -> Column:
    first, last, values, is_unique = profile or (None, None, (), False)
    return Column(
        column["name"],
        column["type"],
        column.get("unit") or "",
        values[:MAX_VALUES],
        is_whole and len(values) <= MAX_VALUES,
        is_unique=is_unique,
        least=first,
        most=last,
    )

"""Tables of the database as questions see them: columns with the values that occur. Begin with
`load_schemas`."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import date
from threading import Lock
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from common.sql import fetch_rows
from tables.models import BLOCK_ROWS, Table, TableLayout
from tables.querysets import COLUMNS_TEXT, parse_columns
from tables.questions.plan import Column, TableSchema
from tables.questions.shapes import Schemas

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

    def __call__(self, tables: Sequence["_Facts"]) -> dict[int, dict[int, _Profile]]:
        """Profiles by table id and position of the column, which counts from 1."""
        keys = {
            table.pk: (
                *(table.pk, table.text_sha256),
                *(each["type"] for each in parse_columns(table.columns)),
            )
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

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._known.clear()


_profiles = _Profiles(2 * MAX_TABLES)


class _Facts(NamedTuple):
    """What the schema of a table is made of, with its profile; `columns` as JSON."""

    pk: int
    name: str
    columns: str
    row_count: int
    text_sha256: str
    collection: int
    fingerprint: str
    is_apart: bool
    title: str
    key: str


#: Collection, fingerprint, group and positions of the columns in it.
_Layout = tuple[int, str, int, tuple[int, ...]]


class _Known:
    """The schemas that this process has made, by all that they are made of: whoever sees the same
    tables in the same state gets the same, and any change makes others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._known: OrderedDict[tuple[tuple[_Facts, ...], tuple[_Layout, ...]], Schemas] = (
            OrderedDict()
        )

    def __call__(self, facts: tuple[_Facts, ...], layouts: tuple[_Layout, ...]) -> Schemas:
        with self._lock:
            if (schemas := self._known.get((facts, layouts))) is not None:
                self._known.move_to_end((facts, layouts))
                return schemas
        profiles = _profiles(facts)
        placed = {layout[:2]: layout[2:] for layout in layouts}
        schemas = Schemas(_schema(table, profiles[table.pk], placed) for table in facts)
        with self._lock:
            self._known[facts, layouts] = schemas
            while len(self._known) > 1 and sum(map(len, self._known.values())) > self._most:
                self._known.popitem(last=False)
        return schemas

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._known.clear()


_schemas = _Known(2 * MAX_TABLES)


def load_schemas(tables: QuerySet[Table]) -> Schemas:
    """The schemas of these tables, which the reader may see; none where they are too many."""
    rows = (
        tables.filter(row_count__gt=0)
        .order_by("document__key", "ordinal")
        .values_list(
            *("pk", "name", COLUMNS_TEXT, "row_count", "text_sha256", "collection_id"),
            *("fingerprint", "is_apart", "document__title", "document__key"),
        )[: MAX_TABLES + 1]
    )
    facts = tuple(_Facts(*row) for row in rows)
    if len(facts) > MAX_TABLES:
        return Schemas()
    return _schemas(facts, _layouts(facts))


def forget_schemas() -> None:
    """Forget what this process knows of tables."""
    _schemas.clear()
    _profiles.clear()


def _layouts(facts: Sequence[_Facts]) -> tuple[_Layout, ...]:
    rows = TableLayout.objects.filter(
        collection__in={table.collection for table in facts},
        fingerprint__in={table.fingerprint for table in facts},
    ).values_list("collection", "fingerprint", "group", "positions")
    return tuple(
        (collection, name, group, tuple(places))
        for collection, name, group, places in rows.order_by("pk")
    )


def _schema(
    table: _Facts,
    profile: dict[int, _Profile],
    layouts: Mapping[tuple[int, str], tuple[int, tuple[int, ...]]],
) -> TableSchema:
    columns = parse_columns(table.columns)
    group, places = layouts.get((table.collection, table.fingerprint), (None, ()))
    if table.is_apart or len(places) != len(columns):
        group, places = None, ()
    is_whole = table.row_count <= BLOCK_ROWS
    return TableSchema(
        table.pk,
        table.name,
        tuple(
            _column(column, profile.get(position), is_whole=is_whole)
            for position, column in enumerate(columns, 1)
        ),
        f"{table.title} {table.key.rsplit('/', 1)[-1]}",
        group,
        places,
        table.is_apart,
        table.collection,
    )


def _column(column: Mapping[str, Any], profile: _Profile | None, *, is_whole: bool) -> Column:
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

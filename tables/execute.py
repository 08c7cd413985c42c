"""Plans computed over the rows of tables, with the rows as evidence. Begin with `compute`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from common.sql import fetch_rows
from tables.models import Table
from tables.questions.plan import Filter, Period, Plan, Value, worded_number, worded_value
from tables.rows import read_rows, row_source

#: Rows that are shown as evidence, and groups of an answer.
MAX_ROWS, MAX_GROUPS = 20, 100

_AGGREGATES = {
    "count": "count(*)::float8",
    "sum": "sum({column})::float8",
    "mean": "avg({column})::float8",
    "share": "sum({column})::float8",
    "most": "max({column})::float8",
    "least": "min({column})::float8",
}
#: The same of parts that have a `total`, `times` rows and `filled` cells.
_OF_PARTS = {
    "count": ("", "sum(times)"),
    "sum": ("sum({column}) AS total, ", "sum(total)"),
    "mean": (
        "sum({column}) AS total, count({column}) AS filled, ",
        "sum(total) / nullif(sum(filled), 0)",
    ),
    "most": ("max({column}) AS extreme, ", "max(extreme)"),
    "least": ("min({column}) AS extreme, ", "min(extreme)"),
}
_SIGNS = frozenset(("=", ">", ">=", "<", "<="))


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A row that counts: `ordinal` is its place in the table, from 0, `start` its offset in the
    text of the document, `chunk_id` the passage that has it."""

    table_id: int
    ordinal: int
    document_id: int
    document_title: str
    collection: str
    start: int
    chunk_id: int | None
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of rows, or one of two things compared: what was computed of its `count` rows."""

    name: str
    value: float | str | None
    count: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a plan gave: a `value` with its unit, or `groups`. `rows` are the first of the `count`
    rows that it was computed from, with `columns` as names of their cells. `explanation` says it in
    words."""

    value: float | str | None
    unit: str
    groups: tuple[Group, ...]
    count: int
    columns: tuple[str, ...]
    rows: tuple[EvidenceRow, ...]
    explanation: str


def compute(plan: Plan, tables: QuerySet[Table]) -> Result:
    """The result of a plan over those of its tables that are in `tables`: the reader's."""
    found = list(
        tables.filter(pk__in=plan.tables).select_related("document__collection").order_by("pk")
    )
    return _Computation(plan, found).result()


class _Computation:
    """One plan over tables of one group. Columns count from 0 in plans and from 1 in SQL."""

    def __init__(self, plan: Plan, tables: Sequence[Table]) -> None:
        self.plan = plan
        self.tables = {table.pk: table for table in tables}
        same = range(len(plan.columns))
        #: Of each table the columns of the plan, None where it has none.
        self.places: dict[int, Sequence[int | None]] = dict.fromkeys(self.tables, same)
        for layout in plan.layouts:
            self.places |= {pk: layout.places for pk in layout.tables if pk in self.tables}
        self.columns = [self._column(index) for index in same] if tables else []
        used = plan.used_columns
        self.is_mapped = any(
            places[index] != index for places in self.places.values() for index in used
        )
        self.parameters: dict[str, Any] = self._scope(list(self.tables))
        self.whole_count: int | None = None
        self.group_mean: float | None = None

    def _column(self, index: int) -> Mapping[str, Any]:
        """Type and unit of a column, as the tables say that have it."""
        found = [
            self.tables[pk].columns[place]
            for pk, places in self.places.items()
            if (place := places[index]) is not None
        ]
        unit = next((each["unit"] for each in found if each.get("unit")), "")
        return {"type": found[0]["type"] if found else "text", "unit": unit}

    def _scope(self, tables: list[int]) -> dict[str, Any]:
        """The parameters of `row_source` for these tables."""
        scope: dict[str, Any] = {"tables": tables}
        if self.is_mapped:
            for index in self.plan.used_columns:
                scope[f"p{index + 1}"] = [(self.places[pk][index] or 0) + 1 for pk in tables]
        return scope

    def result(self) -> Result:
        plan = self.plan
        groups: tuple[Group, ...] = ()
        value: float | str | None = None
        if not self.tables:
            return Result(None, "", (), 0, plan.columns, (), "")
        extra: Sequence[Filter] = ()
        if plan.compared:
            groups = tuple(self._compared(each) for each in plan.compared)
            values = [each.value for each in groups]
            if all(isinstance(each, float) for each in values):
                value = float(values[0] or 0) - float(values[1] or 0)
            rows = [row for each in plan.compared for row in self._rows((each,))]
            count = sum(each.count for each in groups)
        elif plan.group is not None:
            groups = self._groups()
            value = groups[0].value if plan.order and groups else None
            if plan.is_averaged:
                value = self.group_mean
            extra = self._top_group(groups)
            rows, count = self._rows(extra), self._count(extra)
        elif plan.measure == "share":
            part, count = self._aggregate(plan.part)
            whole, self.whole_count = self._aggregate(())
            value = 100 * (part or 0) / whole if whole else None
            rows = self._rows(plan.part)
        elif plan.measure in ("most", "least", "list"):
            if plan.measure != "list" and plan.column is not None:
                rows, count = self._extremes(plan.column)
            else:
                rows, count = self._rows(()), self._count(())
            value = self._cell(rows)
        else:
            value, count = self._aggregate(())
            rows = self._rows(())
        return Result(
            value,
            self._unit(),
            groups,
            count,
            plan.columns,
            tuple(evidence_rows(rows, self.tables, self.places)),
            self._explanation(rows, count, extra),
        )

    # Parts of statements: names are made of numbers, values are parameters

    def _type(self, index: int) -> str:
        return str(self.columns[index]["type"])

    def _name(self, index: int) -> str:
        """The name of a column in the source, by what it is compared and computed as."""
        letter = {"number": "n", "boolean": "n", "date": "d"}.get(self._type(index), "c")
        return f"{letter}{index + 1}"

    def _source(self, *, ordinals: bool = True) -> str:
        by_letter: dict[str, list[int]] = {"c": [], "n": [], "d": []}
        for index in self.plan.used_columns:
            by_letter[self._name(index)[0]].append(index + 1)
        return row_source(
            cells=by_letter["c"],
            numbers=by_letter["n"],
            dates=by_letter["d"],
            is_mapped=self.is_mapped,
            ordinals=ordinals,
        )

    def _where(self, extra: Sequence[Filter]) -> str:
        conditions = [self._condition(each) for each in (*self.plan.filters, *extra)]
        if alternatives := [self._condition(each) for each in self.plan.alternatives]:
            conditions.append(f"({' OR '.join(alternatives)})")
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _condition(self, each: Filter) -> str:
        column = f"row.{self._name(each.column)}"
        if each.op in ("empty", "filled"):
            kind = self._type(each.column)
            nothing = {"text": "''", "number": "0"}.get(kind)
            text = f"btrim({column})" if kind == "text" else column
            tested = f"nullif({text}, {nothing})" if nothing else text
            return f"{tested} IS {'NOT ' if each.op == 'filled' else ''}NULL"
        if each.other is not None:
            return f"{column} {each.op} row.{self._name(each.other)}"
        if each.op in ("between", "within"):
            first, last = (self._parameter(value) for value in each.values)
            end = "<" if each.op == "within" else "<="
            return f"({column} >= {first} AND {column} {end} {last})"
        if self._type(each.column) == "text":
            values = self._parameter([str(value) for value in each.values])
            words = f"SELECT lower(btrim(value)) FROM unnest({values}::text[]) AS value"  # noqa: S608
            negation = "NOT " if each.op == "!=" else ""
            # Cells have no space around them.
            return f"lower({column}) {negation}IN ({words})"
        if len(each.values) > 1:
            values = ", ".join(self._parameter(value) for value in each.values)
            return f"{column} {'NOT ' if each.op == '!=' else ''}IN ({values})"
        value = each.values[0]
        if isinstance(value, bool):
            value = float(value)
        sign = each.op if each.op in _SIGNS else "<>"
        return f"{column} {sign} {self._parameter(value)}"

    def _parameter(self, value: Value | list[str]) -> str:
        name = f"v{len(self.parameters)}"
        self.parameters[name] = value
        cast = "::date" if isinstance(value, date) else ""
        return f"%({name})s{cast}"

    def _computed(self) -> str:
        plan = self.plan
        if plan.measure == "share" and plan.column is None:
            return _AGGREGATES["count"]
        if plan.measure == "count" and plan.column is not None:
            name = self._name(plan.column)
            text = f"nullif(lower(btrim(row.{name})), '')" if name[0] == "c" else f"row.{name}"
            return f"count(DISTINCT {text})::float8"
        column = f"row.{self._name(plan.column)}" if plan.column is not None else ""
        return _AGGREGATES.get(plan.measure, _AGGREGATES["sum"]).format(column=column)

    # Statements

    def _aggregate(self, extra: Sequence[Filter]) -> tuple[float | None, int]:
        statement = (
            f"SELECT {self._computed()}, count(*)"  # noqa: S608
            f" FROM {self._source(ordinals=False)} AS row{self._where(extra)}"
        )
        ((value, count),) = fetch_rows(connection, statement, self.parameters)
        return value, count

    def _count(self, extra: Sequence[Filter]) -> int:
        if not (where := self._where(extra)):
            return sum(table.row_count for table in self.tables.values())
        source = self._source(ordinals=False)
        statement = f"SELECT count(*) FROM {source} AS row{where}"  # noqa: S608
        ((count,),) = fetch_rows(connection, statement, self.parameters)
        return int(count)

    def _compared(self, each: Filter) -> Group:
        name = " / ".join(worded_value(value, self.plan.language) for value in each.values)
        if each.op == "within":
            name = f"{each.values[0]} …"
        if self.plan.measure == "list":
            return Group(name, self._cell(self._rows((each,))), self._count((each,)))
        value, count = self._aggregate((each,))
        return Group(name, value, count)

    def _groups(self) -> tuple[Group, ...]:
        plan = self.plan
        assert plan.group is not None
        name = f"row.{self._name(plan.group)}"
        key, shown = f"lower(btrim({name}))", f"min(btrim({name}))"
        if self._type(plan.group) == "date":
            key = f"date_trunc('{plan.period or 'month'}', {name})"
            shown = f"to_char(min({name}), '{_PERIODS[plan.period or 'month']}')"
        elif self._type(plan.group) != "text":
            key, shown = name, f"min({name})::text"
        direction = "ASC" if plan.order == "least" else "DESC"
        order = f"2 {direction} NULLS LAST" if plan.order else "4"
        ties = "FIRST %(most)s ROWS WITH TIES" if plan.order else "FIRST %(most)s ROWS ONLY"
        source = f"{self._source(ordinals=False)} AS row{self._where(())}"
        computed, count = self._computed(), "count(*)"
        if "DISTINCT" not in computed:
            # Equal cells first: what is written in different ways is few groups, not many rows.
            parts, whole = _OF_PARTS.get(plan.measure, _OF_PARTS["sum"])
            if plan.column is None:
                parts, whole = _OF_PARTS["count"]
            else:
                parts = parts.format(column=f"row.{self._name(plan.column)}")
            source = (
                f"(SELECT {name}, {parts}count(*) AS times FROM {source} GROUP BY {name}) AS row"  # noqa: S608
            )
            computed, count = f"({whole})::float8", "sum(times)::bigint"
        statement = (
            f"SELECT {shown}, {computed}, {count}, {key} AS key,"  # noqa: S608
            f" avg({computed}) OVER () FROM {source}"  # of all groups, however many are read
            f" GROUP BY {key} HAVING count({name}) > 0 ORDER BY {order} FETCH {ties}"
        )
        self.parameters["most"] = min(plan.limit or MAX_GROUPS, MAX_GROUPS)
        rows = fetch_rows(connection, statement, self.parameters)
        self.group_mean = rows[0][4] if rows else None
        if plan.measure == "share":
            whole, _ = self._aggregate(())
            rows = [
                (name, 100 * (value or 0) / whole, *rest) for name, value, *rest in rows if whole
            ]
        return tuple(Group(name or "–", value, count) for name, value, count, *_ in rows)

    def _top_group(self, groups: Sequence[Group]) -> Sequence[Filter]:
        """The condition of the groups that are named, so that their rows are the evidence."""
        plan = self.plan
        if not plan.order or plan.group is None or not groups:
            return ()
        if self._type(plan.group) != "text":
            if len(groups) > 1:
                return ()
            if self._type(plan.group) == "date":
                days = _days_of(groups[0].name, plan.period or "month")
                return (Filter(column=plan.group, op="within", values=days),)
            return (Filter(column=plan.group, op="=", values=(float(groups[0].name),)),)
        return (Filter(column=plan.group, op="=", values=tuple(each.name for each in groups)),)

    def _rows(self, extra: Sequence[Filter]) -> list[tuple[int, int]]:
        """The first rows, as (table, ordinal)."""
        statement = (
            f"SELECT row.table_id, row.ordinal FROM {self._source()} AS row"  # noqa: S608
            f"{self._where(extra)} LIMIT {MAX_ROWS}"
        )
        return fetch_rows(connection, statement, self.parameters)

    def _extremes(self, column: int) -> tuple[list[tuple[int, int]], int]:
        """The rows with the extremes of a column, with those that equal the last of them, up to
        `MAX_GROUPS`; and how many have a value."""
        plan, name = self.plan, f"row.{self._name(column)}"
        best, direction = ("max", "DESC") if plan.measure == "most" else ("min", "ASC")
        where = self._where(())
        where += f"{' AND' if where else ' WHERE'} {name} IS NOT NULL"
        # Which tables have them first: ordinals of all rows cost more.
        statement = (
            f"SELECT {best}({name}), row.table_id, count(*)"  # noqa: S608
            f" FROM {self._source(ordinals=False)} AS row{where}"
            f" GROUP BY 2 ORDER BY 1 {direction}"
        )
        tables = fetch_rows(connection, statement, self.parameters)
        if not tables:
            return [], 0
        wanted = plan.limit or 1
        last = tables[min(wanted, len(tables)) - 1][0]
        kept = [pk for at, (value, pk, _) in enumerate(tables) if at < wanted or value == last]
        statement = (
            f"SELECT row.table_id, row.ordinal, {name} FROM {self._source()} AS row{where}"  # noqa: S608
            f" ORDER BY {name} {direction}, 1, 2 LIMIT {MAX_GROUPS}"
        )
        # WITH TIES would sort all rows.
        rows = fetch_rows(connection, statement, self.parameters | self._scope(kept))
        last = rows[min(wanted, len(rows)) - 1][2]
        shown = [row[:2] for at, row in enumerate(rows) if at < wanted or row[2] == last]
        return shown, sum(count for _, _, count in tables)

    def _cell(self, rows: Sequence[tuple[int, int]]) -> float | str | None:
        """What the first row has in the column; a text where the rows differ."""
        if not rows or self.plan.column is None:
            return None
        name = self._name(self.plan.column)
        statement = (
            f"SELECT row.{name} FROM {self._source()} AS row"  # noqa: S608
            " WHERE row.table_id = %(table)s AND row.ordinal = ANY(%(ordinals)s::int[])"
        )
        table = rows[0][0]
        ordinals = [ordinal for each, ordinal in rows if each == table]
        if self.plan.measure in ("most", "least"):
            ordinals = ordinals[:1]
        own = {"table": table, "ordinals": ordinals}
        parameters = {**self.parameters, **own, **self._scope([table])}
        values = list(
            dict.fromkeys(row[0] for row in fetch_rows(connection, statement, parameters))
        )
        if len(values) == 1 and len({table for table, _ in rows}) == 1:
            return values[0] if isinstance(values[0], float) else str(values[0])
        return None

    # Words

    def _unit(self) -> str:
        plan = self.plan
        if plan.measure == "share":
            return "%"
        if plan.column is None or plan.measure == "count":
            return ""
        return str(self.columns[plan.column].get("unit") or "")

    def _explanation(
        self, rows: Sequence[tuple[int, int]], count: int, extra: Sequence[Filter]
    ) -> str:
        """“12 rows of price-list.xlsx where Price > 4,000”, in the language of the question."""
        language = self.plan.language if self.plan.language in _EXPLANATIONS else "en"
        one, many, files, where = _EXPLANATIONS[language]
        # Of few rows it is known which files have them.
        of_rows = {table for table, _ in rows} if 0 < count <= len(rows) else self.tables.keys()
        keys = {self.tables[pk].document.key for pk in of_rows}
        source = files.format(count=len(keys)) if len(keys) > 1 else min(keys).rsplit("/", 1)[-1]
        number = worded_number(f"{count:,}", language)
        text = (one if count == 1 else many).format(count=number, source=source)
        if condition := self.plan.condition(extra, language=language):
            text += f" {where} {condition}"
        if self.whole_count is not None:
            number = worded_number(f"{self.whole_count:,}", language)
            text += f", {_OF_ALL[language].format(count=number)}"
        for written, meant in self.plan.corrected:
            text += f" ({_CORRECTED[language].format(written=written, meant=meant)})"
        return text


def evidence_rows(
    rows: Sequence[tuple[int, int]],
    tables: Mapping[int, Table],
    places: Mapping[int, Sequence[int | None]] | None = None,
) -> list[EvidenceRow]:
    """The first of these rows, given as (table, ordinal), with their cells and places. `tables` by
    id, with their documents and collections. `places` are the positions of the cells in each table,
    None where it has none; by default all as they are."""
    shown = rows[:MAX_ROWS]
    by_table: dict[int, list[int]] = {}
    for table_id, ordinal in shown:
        by_table.setdefault(table_id, []).append(ordinal)
    read = {
        (table_id, row.ordinal): row
        for table_id, ordinals in by_table.items()
        for row in read_rows(tables[table_id], ordinals)
    }
    chunks = _chunks_at(
        [(tables[table_id].document_id, row.start) for (table_id, _), row in read.items()]
    )
    found = []
    for key in dict.fromkeys(shown):
        if (row := read.get(key)) is None:
            continue
        document = tables[key[0]].document
        found.append(
            EvidenceRow(
                key[0],
                row.ordinal,
                document.pk,
                document.title or document.key,
                document.collection.slug,
                row.start,
                chunks.get((document.pk, row.start)),
                _placed(row.cells, places[key[0]]) if places else row.cells,
            )
        )
    return found


def _placed(cells: Sequence[str], places: Sequence[int | None]) -> tuple[str, ...]:
    return tuple("" if place is None else cells[place] for place in places)


#: One row, rows, several files and the word before conditions, by language.
_EXPLANATIONS: Mapping[str, tuple[str, str, str, str]] = {
    "en": ("{count} row of {source}", "{count} rows of {source}", "{count} files", "where"),
    "de": ("{count} Zeile aus {source}", "{count} Zeilen aus {source}", "{count} Dateien", "mit"),
    "es": ("{count} fila de {source}", "{count} filas de {source}", "{count} archivos", "con"),
}
_OF_ALL: Mapping[str, str] = {"en": "of {count}", "de": "von {count}", "es": "de {count}"}
_CORRECTED: Mapping[str, str] = {
    "en": "“{written}” read as “{meant}”",
    "de": "„{written}“ gelesen als „{meant}“",
    "es": "«{written}» leído como «{meant}»",
}
_PERIODS: Mapping[str, str] = {
    "day": "YYYY-MM-DD",
    "week": 'IYYY-"W"IW',
    "month": "YYYY-MM",
    "quarter": 'YYYY-"Q"Q',
    "year": "YYYY",
}


def _days_of(name: str, period: Period) -> tuple[date, date]:
    """The first day of a group's period, and the first one after it."""
    if period in ("day", "week"):
        first = date.fromisoformat(name)  # of a week its Monday
        return first, first + timedelta(days=7 if period == "week" else 1)
    year, _, part = name.partition("-")
    months = {"month": 1, "quarter": 3, "year": 12}[period]
    month = 1 if period == "year" else months * (int(part.removeprefix("Q")) - 1) + 1
    after = month - 1 + months
    return date(int(year), month, 1), date(int(year) + after // 12, after % 12 + 1, 1)


_CHUNKS = """
    SELECT place.document, place.start, chunk.id
    FROM unnest(%(documents)s::bigint[], %(starts)s::bigint[]) AS place (document, start)
    JOIN LATERAL (
        SELECT id FROM documents_chunk
        WHERE document_id = place.document AND start <= place.start AND "end" > place.start
        ORDER BY start LIMIT 1
    ) AS chunk ON true
"""


def _chunks_at(places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """The passage at each place, a document and an offset in its text."""
    documents, starts = [each[0] for each in places], [each[1] for each in places]
    rows = fetch_rows(connection, _CHUNKS, {"documents": documents, "starts": starts})
    return {(document, start): pk for document, start, pk in rows}

"""Plans computed over the rows of tables, with the rows as evidence. Begin with `compute`;
`select_rows_of_plan` gives all of these rows, page by page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils.formats import number_format
from django.utils.translation import gettext

from common.errors import InvalidInput, NotFound
from common.sql import fetch_rows
from tables.models import BLOCK_ROWS, Table
from tables.options import PageOptions
from tables.phrases import phrases_of, worded_number, worded_value
from tables.querysets import COLUMNS_TEXT, parse_columns
from tables.questions.plan import Filter, Plan, Value, days_of
from tables.rows import Value as CellValue
from tables.rows import column_position, places_at, row_source, rows_at

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
_SET_SORT = "SELECT set_config('enable_sort', %s, true)"
_SIGNS = frozenset(("=", ">", ">=", "<", "<="))


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A row that counts: `ordinal` is its place in the table, from 0. It is the text of the
    document from `start` to `end`, in the passage `chunk_id`, at `location` (`Prices!A12`)."""

    table_id: int
    ordinal: int
    document_id: int
    document_title: str
    collection: str
    start: int
    end: int
    chunk_id: int | None
    location: str
    cells: tuple[str, ...]
    values: tuple[CellValue, ...]


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


@dataclass(frozen=True, slots=True)
class PlanRows:
    """Rows of a page, of `count` that a plan was computed from, with the sums of their numbers by
    column, from 0. `columns` are as those of a table."""

    columns: list[dict[str, Any]]
    rows: list[EvidenceRow]
    count: int
    sums: dict[int, float]


def compute(plan: Plan, tables: QuerySet[Table]) -> Result:
    """The result of a plan over those of its tables that are in `tables`: the reader's."""
    return _Computation(plan, tables).result()


def select_rows_of_plan(plan: Plan, tables: QuerySet[Table], options: PageOptions) -> PlanRows:
    """A page of the rows that the plan is computed from, as `compute`: of the extreme ones the most
    extreme first. Raises InvalidInput where `options` sort by no column, and NotFound where no
    table is left."""
    return _Computation(plan, tables).page(options)


def all_rows_of_plan(plan: Plan, tables: QuerySet[Table], *, most: int) -> Iterator[EvidenceRow]:
    """All of these rows. Raises InvalidInput where there are more than `most`, and NotFound where
    no table is left, when the first is taken."""
    return _Computation(plan, tables).all_rows(most)


def tables_gone() -> str:
    """What is said where none of a plan's tables is left."""
    return gettext(
        "The tables of this answer are gone or have changed, or you may not see them. Ask the"
        " question again."
    )


@dataclass(frozen=True, slots=True)
class _PlanTable:
    """What is computed with of a table: a plan may be of a thousand."""

    columns: Sequence[Mapping[str, Any]]
    row_count: int
    document_key: str


def _plan_tables(plan: Plan, tables: QuerySet[Table]) -> dict[int, _PlanTable]:
    """The tables of a plan that are in `tables`, by id, without those whose columns have other
    types since."""
    found = tables.filter(pk__in=plan.tables).order_by("pk")
    rows = found.values_list("pk", COLUMNS_TEXT, "row_count", "document__key")
    places, kept = plan.places, dict[int, _PlanTable]()
    for pk, text, count, key in rows:
        columns = parse_columns(text)
        if all(
            place is None or (place < len(columns) and columns[place]["type"] == kind)
            for place, kind in zip(places[pk], plan.types, strict=False)
        ):
            kept[pk] = _PlanTable(columns, count, key)
    return kept


def first_table_of_plan(plan: Plan, tables: QuerySet[Table]) -> Table:
    """The first of the tables that it is computed from. Raises NotFound where none is left."""
    kept = list(_plan_tables(plan, tables))[:1]
    table = tables.filter(pk__in=kept).select_related("document__collection").first()
    if table is None:
        raise NotFound(tables_gone())
    return table


class _Computation:
    """One plan over tables of one group. Columns count from 0 in plans and from 1 in SQL."""

    def __init__(self, plan: Plan, tables: QuerySet[Table]) -> None:
        self.plan = plan
        self.visible = tables
        self.tables = _plan_tables(plan, tables)
        same = range(len(plan.columns))
        self.places = plan.places
        self.columns = [self._column(index) for index in same] if self.tables else []
        self.is_mapped = bool(plan.layouts)
        self.parameters: dict[str, Any] = self._scope(list(self.tables))
        self.whole_count: int | None = None
        self.group_mean: float | None = None

    def _column(self, index: int) -> dict[str, Any]:
        """Name, type and unit of a column, as the tables say that have it."""
        found = [
            self.tables[pk].columns[place]
            for pk in self.tables
            if (place := self.places[pk][index]) is not None
        ]
        unit = next((each["unit"] for each in found if each.get("unit")), "")
        kind = found[0]["type"] if found else "text"
        return {"name": self.plan.columns[index], "type": kind, "unit": unit}

    def _scope(self, tables: list[int]) -> dict[str, Any]:
        """The parameters of `row_source` for these tables."""
        scope: dict[str, Any] = {"tables": tables}
        if self.is_mapped:
            for index in range(len(self.plan.columns)):
                # The block at 0 has no cells: NULL where a table does not have the column.
                at = (self.places[pk][index] for pk in tables)
                scope[f"p{index + 1}"] = [0 if place is None else place + 1 for place in at]
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
            tuple(self._evidence(rows[:MAX_ROWS])),
            self._explanation(rows, count, extra),
        )

    def page(self, options: PageOptions) -> PlanRows:
        """The rows of a page."""
        keys = self._ordered(options.sort, options.descending, options.limit, options.offset)
        numbers = [at for at, each in enumerate(self.columns) if each["type"] == "number"]
        sums = "".join(f", sum(row.{self._name(at)})::float8" for at in numbers)
        statement = f"SELECT count(*){sums} FROM {self._source(*numbers)} AS row{self._whole()}"  # noqa: S608
        ((count, *found),) = fetch_rows(connection, statement, self.parameters)
        pairs = zip(numbers, found, strict=True)
        return PlanRows(
            self.columns,
            self._evidence(keys),
            count,
            {at: total for at, total in pairs if total is not None},
        )

    def all_rows(self, most: int) -> Iterator[EvidenceRow]:
        """All rows in the order of the first page. Raises InvalidInput for more than `most`."""
        keys = self._ordered("", False, most + 1, 0)
        if len(keys) > most:
            raise InvalidInput(
                gettext("More than {most} rows: ask for fewer of them.").format(
                    most=number_format(most, force_grouping=True)
                ),
                field="reading",
            )
        for first in range(0, len(keys), BLOCK_ROWS):
            yield from self._evidence(keys[first : first + BLOCK_ROWS])

    def _evidence(self, rows: Sequence[tuple[int, int]]) -> list[EvidenceRow]:
        found = self.visible.filter(pk__in={table for table, _ in rows})
        tables = {table.pk: table for table in found.select_related("document__collection")}
        return evidence_rows([row for row in rows if row[0] in tables], tables, self.places)

    def _whole(self) -> str:
        """The condition of all rows that count."""
        plan, where = self.plan, self._where(())
        if plan.compared:
            either = " OR ".join(map(self._condition, plan.compared))
            where += f"{' AND' if where else ' WHERE'} ({either})"
        elif plan.group is not None and plan.order:
            where = self._where(self._top_group(self._groups()))
        elif plan.measure in ("most", "least") and plan.column is not None:
            where += f"{' AND' if where else ' WHERE'} row.{self._name(plan.column)} IS NOT NULL"
        return where

    def _ordered(
        self, sort: str, descending: bool, limit: int, offset: int
    ) -> list[tuple[int, int]]:
        """Some of all rows that count, as (table, ordinal)."""
        plan = self.plan
        if not self.tables:
            raise NotFound(tables_gone())
        order, sorted_by = "row.table_id, row.ordinal", plan.column
        if sort:
            sorted_by = column_position(self.columns, sort, field="sort") - 1
            order = f"{self._order(sorted_by, descending=descending)}, {order}"
        elif plan.measure in ("most", "least") and plan.column is not None:
            order = f"{self._order(plan.column, descending=plan.measure == 'most')}, {order}"
        statement = (
            f"SELECT row.table_id, row.ordinal FROM {self._source(sorted_by)} AS row"  # noqa: S608
            f"{self._whole()} ORDER BY {order} LIMIT %(limit)s OFFSET %(offset)s"
        )
        self.parameters |= {"limit": limit, "offset": offset}
        return [(table, at) for table, at in fetch_rows(connection, statement, self.parameters)]

    def _order(self, index: int, *, descending: bool) -> str:
        name = f"row.{self._name(index)}"
        direction = "DESC" if descending else "ASC"
        if self._type(index) == "text":
            return f"{name} = '', lower({name}) {direction}"
        return f"{name} {direction} NULLS LAST"

    # Parts of statements: names are made of numbers, values are parameters

    def _type(self, index: int) -> str:
        return str(self.columns[index]["type"])

    def _name(self, index: int) -> str:
        """The name of a column in the source, by what it is compared and computed as."""
        letter = {"number": "n", "boolean": "n", "date": "d"}.get(self._type(index), "c")
        return f"{letter}{index + 1}"

    def _source(
        self, *indexes: int | None, ordinals: bool = True, aggregates: str = "", where: str = ""
    ) -> str:
        """The rows with the columns that the plan uses, and those at `indexes`; or `aggregates` of
        each block of them."""
        by_letter: dict[str, list[int]] = {"c": [], "n": [], "d": []}
        for index in sorted(self.plan.used_columns | {at for at in indexes if at is not None}):
            by_letter[self._name(index)[0]].append(index + 1)
        return row_source(
            cells=by_letter["c"],
            numbers=by_letter["n"],
            dates=by_letter["d"],
            is_mapped=self.is_mapped,
            ordinals=ordinals,
            aggregates=aggregates,
            where=where,
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
            # Constants for the planner. Cells have no space around them.
            words = (f"lower(btrim({self._parameter(str(value))}::text))" for value in each.values)
            negation = "NOT " if each.op == "!=" else ""
            return f"lower({column}) {negation}IN ({', '.join(words)})"
        if len(each.values) > 1:
            values = ", ".join(self._parameter(value) for value in each.values)
            return f"{column} {'NOT ' if each.op == '!=' else ''}IN ({values})"
        value = each.values[0]
        if isinstance(value, bool):
            value = float(value)
        sign = each.op if each.op in _SIGNS else "<>"
        return f"{column} {sign} {self._parameter(value)}"

    def _parameter(self, value: Value) -> str:
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

    def _hashed(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement that groups by hash. The planner takes the cells of a block for
        few, and would sort a million of them."""
        with transaction.atomic():
            fetch_rows(connection, _SET_SORT, ["off"])
            rows = fetch_rows(connection, statement, self.parameters)
            fetch_rows(connection, _SET_SORT, ["on"])
        return rows

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
        # Called as most of its cells are.
        key, shown = f"lower(btrim({name}))", f"mode() WITHIN GROUP (ORDER BY btrim({name}))"
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
            if self._type(plan.group) == "text":
                shown = f"(array_agg(btrim({name}) ORDER BY times DESC, {name}))[1]"
        counted = f"count({name}) > 0"
        if plan.order and self._type(plan.group) == "text":
            counted += f" AND {key} <> ''"  # Whoever has no name is not the first.
        statement = (
            f"SELECT {shown}, {computed}, {count}, {key} AS key,"  # noqa: S608
            f" avg({computed}) OVER () FROM {source}"  # of all groups, however many are read
            f" GROUP BY {key} HAVING {counted} ORDER BY {order} FETCH {ties}"
        )
        self.parameters["most"] = min(plan.limit or MAX_GROUPS, MAX_GROUPS)
        rows = self._hashed(statement)
        self.group_mean = rows[0][4] if rows else None
        if plan.measure == "share":
            total, _ = self._aggregate(())
            rows = [
                (name, 100 * (value or 0) / total, *rest) for name, value, *rest in rows if total
            ]
        if self._type(plan.group) == "boolean":
            rows = [
                (worded_value(bool(key), plan.language), value, count, key)
                for _, value, count, key, _ in rows
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
                days = days_of(groups[0].name, plan.period or "month")
                return (Filter(column=plan.group, op="within", values=days),)
            if self._type(plan.group) == "boolean":
                is_yes = groups[0].name == worded_value(True, plan.language)
                return (Filter(column=plan.group, op="=", values=(is_yes,)),)
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
        # Which tables have them first: ordinals of all rows cost more.
        aggregates = f"{best}({name}) AS extreme, count({name}) AS times"
        source = self._source(aggregates=aggregates, where=where)
        statement = (
            f"SELECT {best}(extreme), table_id, sum(times)::bigint FROM {source} AS block"  # noqa: S608
            f" WHERE times > 0 GROUP BY 2 ORDER BY 1 {direction}"
        )
        tables = fetch_rows(connection, statement, self.parameters)
        if not tables:
            return [], 0
        wanted = plan.limit or 1
        last = tables[min(wanted, len(tables)) - 1][0]
        kept = [pk for at, (value, pk, _) in enumerate(tables) if at < wanted or value == last]
        where += f"{' AND' if where else ' WHERE'} {name} IS NOT NULL"
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
        language = self.plan.language
        phrases = phrases_of(language)
        # Of few rows it is known which files have them.
        of_rows = {table for table, _ in rows} if 0 < count <= len(rows) else self.tables.keys()
        keys = {self.tables[pk].document_key for pk in of_rows}
        source = min(keys).rsplit("/", 1)[-1]
        if len(keys) > 1:
            source = phrases.files.format(count=len(keys))
        number = worded_number(f"{count:,}", language)
        text = (phrases.row if count == 1 else phrases.rows).format(count=number, source=source)
        if condition := self.plan.condition(extra, language=language):
            text += f" {phrases.where} {condition}"
        if self.whole_count is not None:
            whole = worded_number(f"{self.whole_count:,}", language)
            text += f", {phrases.of_all.format(count=whole)}"
        for written, meant in self.plan.corrected:
            text += f" ({phrases.corrected.format(written=written, meant=meant)})"
        return text


def evidence_rows(
    rows: Sequence[tuple[int, int]],
    tables: Mapping[int, Table],
    places: Mapping[int, Sequence[int | None]] | None = None,
) -> list[EvidenceRow]:
    """These rows, given as (table, ordinal), with their cells and places. `tables` by id, with
    their documents and collections. `places` are the positions of the cells in each table, None
    where it has none; by default all as they are."""
    read = rows_at(tables, list(dict.fromkeys(rows)))
    documents = {key: tables[key[0]].document for key in read}
    found_places = places_at(
        documents.values(), [(documents[key].pk, row.start) for key, row in read.items()]
    )
    found = []
    for key, row in read.items():
        document, order = documents[key], places[key[0]] if places else range(len(row.cells))
        place = found_places.get((document.pk, row.start))
        found.append(
            EvidenceRow(
                key[0],
                row.ordinal,
                document.pk,
                document.title or document.key,
                document.collection.slug,
                row.start,
                place.end if place else row.start,
                place.chunk_id if place else None,
                place.label if place else "",
                tuple("" if at is None else row.cells[at] for at in order),
                tuple(None if at is None else row.values[at] for at in order),
            )
        )
    return found


_PERIODS: Mapping[str, str] = {
    "day": "YYYY-MM-DD",
    "week": 'IYYY-"W"IW',
    "month": "YYYY-MM",
    "quarter": 'YYYY-"Q"Q',
    "year": "YYYY",
}

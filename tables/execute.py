"""Plans computed over the rows of tables, with the rows as evidence. Begin with `compute`;
`select_rows_of_plan` gives all of these rows, page by page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils.formats import number_format
from django.utils.translation import gettext

from common.errors import InvalidInput, NotFound
from common.sql import fetch_rows
from tables.models import BLOCK_ROWS, Table
from tables.options import PageOptions
from tables.phrases import phrases_of, worded_number, worded_value
from tables.questions.plan import Filter, Plan, Value
from tables.rows import Value as CellValue
from tables.rows import column_position, places_at, row_source, rows_at

#: Rows that are shown as evidence, and groups of an answer.
MAX_ROWS, MAX_GROUPS = 20, 100

_AGGREGATES = {
    "count": "count(*)::float8",
    "sum": "sum({column})::float8",
    "mean": "avg({column})::float8",
}
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
    return _Computation(plan, tables_of_plan(plan, tables)).result()


def select_rows_of_plan(plan: Plan, tables: QuerySet[Table], options: PageOptions) -> PlanRows:
    """A page of the rows that the plan is computed from, as `compute`: of the extreme ones the most
    extreme first. Raises InvalidInput where `options` sort by no column, and NotFound where no
    table is left."""
    return _Computation(plan, tables_of_plan(plan, tables)).page(options)


def all_rows_of_plan(plan: Plan, tables: QuerySet[Table], *, most: int) -> Iterator[EvidenceRow]:
    """All of these rows. Raises InvalidInput where there are more than `most`, and NotFound where
    no table is left, when the first is taken."""
    return _Computation(plan, tables_of_plan(plan, tables)).all_rows(most)


def tables_gone() -> str:
    """What is said where none of a plan's tables is left."""
    return gettext(
        "The tables of this answer are gone or have changed, or you may not see them. Ask the"
        " question again."
    )


def tables_of_plan(plan: Plan, tables: QuerySet[Table]) -> list[Table]:
    """The tables of a plan that are in `tables`, without those that have other columns since."""
    found = tables.filter(pk__in=plan.tables).select_related("document__collection").order_by("pk")
    return [
        table for table in found if [each["name"] for each in table.columns] == list(plan.columns)
    ]


class _Computation:
    """One plan over tables of one shape. Columns count from 0 in plans and from 1 in SQL."""

    def __init__(self, plan: Plan, tables: Sequence[Table]) -> None:
        self.plan = plan
        self.tables = {table.pk: table for table in tables}
        self.columns = tables[0].columns if tables else []
        self.parameters: dict[str, Any] = {"tables": list(self.tables)}

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
            rows, count = [row for each in plan.compared for row in self._rows((each,))[0]], 0
            count = sum(each.count for each in groups)
        elif plan.group is not None:
            groups = self._groups()
            value = groups[0].value if plan.order and groups else None
            extra = self._top_group(groups)
            rows, count = self._rows(extra)
        elif plan.measure in ("most", "least", "list"):
            rows, count = self._rows(())
            value = self._cell(rows)
        else:
            value, count = self._aggregate(())
            rows, _ = self._rows(())
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

    def _source(self, *indexes: int | None, starts: bool = False) -> str:
        used = {each for each in (*indexes, self.plan.group) if each is not None}
        used |= {each.column for each in self.plan.filters}
        used |= {each.column for each in self.plan.compared or ()}
        by_letter: dict[str, list[int]] = {"c": [], "n": [], "d": []}
        for index in used:
            by_letter[self._name(index)[0]].append(index + 1)
        return row_source(
            cells=by_letter["c"], numbers=by_letter["n"], dates=by_letter["d"], starts=starts
        )

    def _where(self, extra: Sequence[Filter]) -> str:
        conditions = [self._condition(each) for each in (*self.plan.filters, *extra)]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _condition(self, each: Filter) -> str:
        column = f"row.{self._name(each.column)}"
        if each.op in ("between", "within"):
            first, last = (self._parameter(value) for value in each.values)
            end = "<" if each.op == "within" else "<="
            return f"({column} >= {first} AND {column} {end} {last})"
        if self._type(each.column) == "text":
            values = self._parameter([str(value) for value in each.values])
            words = f"SELECT lower(btrim(value)) FROM unnest({values}::text[]) AS value"  # noqa: S608
            negation = "NOT " if each.op == "!=" else ""
            return f"lower(btrim({column})) {negation}IN ({words})"
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
            f" FROM {self._source(self.plan.column)} AS row{self._where(extra)}"
        )
        ((value, count),) = fetch_rows(connection, statement, self.parameters)
        return value, count

    def _compared(self, each: Filter) -> Group:
        name = " / ".join(worded_value(value, self.plan.language) for value in each.values)
        if each.op == "within":
            name = f"{each.values[0]} …"
        if self.plan.measure == "list":
            rows, count = self._rows((each,))
            return Group(name, self._cell(rows), count)
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
        statement = (
            f"SELECT {shown}, {self._computed()}, count(*), {key} AS key"  # noqa: S608
            f" FROM {self._source(plan.column)} AS row{self._where(())}"
            f" GROUP BY {key} HAVING {key} IS NOT NULL ORDER BY {order} FETCH {ties}"
        )
        self.parameters["most"] = min(plan.limit or MAX_GROUPS, MAX_GROUPS)
        rows = fetch_rows(connection, statement, self.parameters)
        if self._type(plan.group) == "boolean":
            rows = [
                (worded_value(bool(key), plan.language), value, count, key)
                for _, value, count, key in rows
            ]
        return tuple(Group(name or "–", value, count) for name, value, count, _ in rows)

    def _top_group(self, groups: Sequence[Group]) -> Sequence[Filter]:
        """The condition of the groups that are named, so that their rows are the evidence."""
        plan = self.plan
        if not plan.order or plan.group is None or self._type(plan.group) != "text":
            return ()
        return (Filter(column=plan.group, op="=", values=tuple(each.name for each in groups)),)

    def _rows(self, extra: Sequence[Filter]) -> tuple[list[tuple[int, int]], int]:
        """The first rows, as (table, ordinal), and how many there are. Of the extreme ones those
        that the plan asks for, with all that are equal to the last of them."""
        plan = self.plan
        order, fetch = "1, 2", "FIRST %(most)s ROWS ONLY"
        where = self._where(extra)
        most = MAX_ROWS
        if plan.measure in ("most", "least") and plan.column is not None:
            name = f"row.{self._name(plan.column)}"
            direction = "DESC" if plan.measure == "most" else "ASC"
            order, fetch = f"{name} {direction}", "FIRST %(most)s ROWS WITH TIES"
            where += f"{' AND' if where else ' WHERE'} {name} IS NOT NULL"
            most = min(plan.limit or 1, MAX_GROUPS)
        statement = (
            f"SELECT row.table_id, row.ordinal, count(*) OVER ()"  # noqa: S608
            f" FROM {self._source(plan.column)} AS row{where} ORDER BY {order} FETCH {fetch}"
        )
        self.parameters["most"] = most
        rows = fetch_rows(connection, statement, self.parameters)
        return [(table, ordinal) for table, ordinal, _ in rows], rows[0][2] if rows else 0

    def _cell(self, rows: Sequence[tuple[int, int]]) -> float | str | None:
        """What the first row has in the column; a text where the rows differ."""
        if not rows or self.plan.column is None:
            return None
        name = self._name(self.plan.column)
        statement = (
            f"SELECT row.{name} FROM {self._source(self.plan.column)} AS row"  # noqa: S608
            " WHERE row.table_id = %(table)s AND row.ordinal = ANY(%(ordinals)s::int[])"
        )
        table = rows[0][0]
        ordinals = [ordinal for each, ordinal in rows if each == table]
        if self.plan.measure in ("most", "least"):
            ordinals = ordinals[:1]
        parameters = {**self.parameters, "table": table, "ordinals": ordinals, "tables": [table]}
        values = list(
            dict.fromkeys(row[0] for row in fetch_rows(connection, statement, parameters))
        )
        if len(values) == 1 and len({table for table, _ in rows}) == 1:
            return values[0] if isinstance(values[0], float) else str(values[0])
        return None

    def _evidence(self, rows: Sequence[tuple[int, int]]) -> list[EvidenceRow]:
        read = rows_at(self.tables, list(dict.fromkeys(rows)))
        documents = {key: self.tables[key[0]].document for key in read}
        places = places_at(
            documents.values(), [(documents[key].pk, row.start) for key, row in read.items()]
        )
        found = []
        for key, row in read.items():
            document = documents[key]
            place = places.get((document.pk, row.start))
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
                    row.cells,
                    row.values,
                )
            )
        return found

    # Words

    def _unit(self) -> str:
        plan = self.plan
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
        keys = {self.tables[pk].document.key for pk in of_rows}
        source = min(keys).rsplit("/", 1)[-1]
        if len(keys) > 1:
            source = phrases.files.format(count=len(keys))
        number = worded_number(f"{count:,}", language)
        text = (phrases.row if count == 1 else phrases.rows).format(count=number, source=source)
        if condition := self.plan.condition(extra, language=language):
            text += f" {phrases.where} {condition}"
        return text


_PERIODS: Mapping[str, str] = {"month": "YYYY-MM", "quarter": 'YYYY-"Q"Q', "year": "YYYY"}

"""Tables as questions see them, and what is computed of them. Begin with `Plan`. Without Django."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tables.phrases import phrases_of, worded_value

ColumnType = Literal["number", "date", "boolean", "text"]
Measure = Literal["count", "sum", "mean", "most", "least", "list", "share"]
Operator = Literal["=", "!=", ">", ">=", "<", "<=", "between", "within", "empty", "filled"]
Period = Literal["day", "week", "month", "quarter", "year"]
#: Values that a filter compares: texts as they are written in the table.
Value = bool | float | date | str


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `unit` is a currency, `%` or a unit of measure, "" for none. `values` are texts
    that occur, each once; `is_whole` says that there are no others, `is_unique` that none occurs in
    two rows. `least` and `most` limit the dates. `other_names` are what further tables of a group
    call it."""

    name: str
    type: ColumnType = "text"
    unit: str = ""
    values: tuple[str, ...] = ()
    is_whole: bool = True
    is_unique: bool = False
    least: date | None = None
    most: date | None = None
    other_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table: what it is called, and its columns from left to right. `title` is its document's.

    Tables of one `group` are asked as one: `places` are its columns as those of the group. Others
    are asked with those that have the same columns; one that `is_apart`, alone.
    """

    id: int
    name: str
    columns: tuple[Column, ...]
    title: str = ""
    group: int | None = None
    places: tuple[int, ...] = ()
    is_apart: bool = False
    collection: int | None = None


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class Filter(_Value):
    """A condition on the column at index `column`. `=` holds for any of `values`, `!=` for none.
    `between` includes both ends, `within` a span of days without its second one. Of numbers,
    `empty` is 0, too. With `other` the column is compared with that one in the same row."""

    column: int
    op: Operator
    values: tuple[Value, ...] = ()
    other: int | None = None


class Layout(_Value):
    """Tables that have the columns of a plan at `places`, from 0; None where they have none."""

    tables: tuple[int, ...]
    places: tuple[int | None, ...]


class Plan(_Value):
    """What to compute of the `tables`. They have the same columns; else `layouts` say which of
    their columns these are.

    `count` counts rows, or what differs in `column`; `most` and `least` are the rows with the
    extreme of `column`, `list` the cells of `column` in all rows. With `group` the measure is
    computed for each of its values (`most` and `least` are numbers then) or, where it is a date,
    for each `period`, and `order` sorts the groups by it and keeps the first `limit`; with
    `is_averaged` the result is the mean over the groups. `share` is the part of the sum of
    `column`, or of the count of rows, that `part` has, or each group, in percent. `compared` are
    two conditions of which each is computed by itself. One of `alternatives` holds, too, where
    there are any. `label` is the column that names a row. `corrected` are words that were taken
    for other ones: as asked, as meant.
    """

    tables: tuple[int, ...]
    columns: tuple[str, ...]
    measure: Measure
    column: int | None = None
    filters: tuple[Filter, ...] = ()
    group: int | None = None
    period: Period | None = None
    order: Literal["", "most", "least"] = ""
    limit: int | None = None
    compared: tuple[Filter, Filter] | None = None
    label: int | None = None
    is_averaged: bool = False
    part: tuple[Filter, ...] = ()
    alternatives: tuple[Filter, ...] = ()
    corrected: tuple[tuple[str, str], ...] = ()
    language: str = "en"
    layouts: tuple[Layout, ...] = ()
    types: tuple[ColumnType, ...] = ()

    @property
    def places(self) -> dict[int, Sequence[int | None]]:
        """Of each table the places of the columns, from 0; None where it has none."""
        same: Sequence[int | None] = range(len(self.columns))
        mapped = {pk: layout.places for layout in self.layouts for pk in layout.tables}
        return {pk: mapped.get(pk, same) for pk in self.tables}

    @property
    def used_columns(self) -> set[int]:
        """The columns that are computed with: rows of tables without one are none of the plan's."""
        filters = (*self.filters, *self.part, *self.alternatives, *(self.compared or ()))
        used = {self.column, self.group}
        used |= {index for each in filters for index in (each.column, each.other)}
        return {index for index in used if index is not None}

    def condition(self, extra: Sequence[Filter] = (), *, language: str = "en") -> str:
        """The filters in words: “Price > 4,000 and Status = open”; "" for none."""
        joint = f" {phrases_of(language).and_} "
        texts = [self.worded_filter(each, language) for each in (*self.filters, *self.part, *extra)]
        if self.alternatives:
            either = f" {phrases_of(language).or_} "
            text = either.join(self.worded_filter(each, language) for each in self.alternatives)
            texts.append(f"({text})" if texts else text)
        return joint.join(texts)

    def describe(self) -> str:
        """What is computed, in words: “sum of Amount where Category = travel, by Month”."""
        name = self.columns[self.column] if self.column is not None else "rows"
        text = name if self.measure == "list" else f"{self.measure} of {name}"
        if condition := self.condition():
            text += f" where {condition}"
        if self.compared:
            text += f", {' compared with '.join(map(self.worded_filter, self.compared))}"
        if self.group is not None:
            text += f", by {self.period + ' of ' if self.period else ''}{self.columns[self.group]}"
        if self.is_averaged:
            text += ", averaged"
        if self.order:
            text += f", {self.order} first"
        return f"{text}, first {self.limit}" if self.limit else text

    def worded_filter(self, each: Filter, language: str = "en") -> str:
        """A condition in words: “Price > 4,000”."""
        phrases = phrases_of(language)
        values = [worded_value(value, language) for value in each.values]
        name = self.columns[each.column]
        if each.op in ("empty", "filled"):
            return (phrases.empty if each.op == "empty" else phrases.filled).format(name=name)
        if each.other is not None:
            return f"{name} {each.op} {self.columns[each.other]}"
        if each.op in ("between", "within"):
            worded = phrases.between if each.op == "between" else phrases.within
            return worded.format(name=name, first=values[0], last=values[1])
        joint = f" {phrases.or_} "
        return f"{name} {each.op} {joint.join(values)}"


class Unsure(_Value):
    """The question may be one of tables, read in one of at most two ways. `unknown` are the words
    that neither table nor grammar explains."""

    readings: tuple[Plan, ...]
    unknown: tuple[str, ...] = ()


def days_of(name: str, period: Period) -> tuple[date, date]:
    """The first day of a group's period, and the first one after it."""
    if period in ("day", "week"):
        first = date.fromisoformat(name)  # of a week its Monday
        return first, first + timedelta(days=7 if period == "week" else 1)
    year, _, part = name.partition("-")
    months = {"month": 1, "quarter": 3, "year": 12}[period]
    month = 1 if period == "year" else months * (int(part.removeprefix("Q")) - 1) + 1
    after = month - 1 + months
    return date(int(year), month, 1), date(int(year) + after // 12, after % 12 + 1, 1)

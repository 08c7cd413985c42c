"""Tables as questions see them, and what is computed of them. Begin with `Plan`. Without Django."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict

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

    @property
    def used_columns(self) -> set[int]:
        """The columns that are computed with: rows of tables without one are none of the plan's."""
        filters = (*self.filters, *self.part, *self.alternatives, *(self.compared or ()))
        used = {self.column, self.group}
        used |= {index for each in filters for index in (each.column, each.other)}
        return {index for index in used if index is not None}

    def condition(self, extra: Sequence[Filter] = (), *, language: str = "en") -> str:
        """The filters in words: “Price > 4,000 and Status = open”; "" for none."""
        joint = f" {_words(language)['and']} "
        texts = [self._worded(each, language) for each in (*self.filters, *self.part, *extra)]
        if self.alternatives:
            either = f" {_words(language)['or']} "
            text = either.join(self._worded(each, language) for each in self.alternatives)
            texts.append(f"({text})" if texts else text)
        return joint.join(texts)

    def describe(self) -> str:
        """What is computed, in words: “sum of Amount where Category = travel, by Month”."""
        name = self.columns[self.column] if self.column is not None else "rows"
        text = name if self.measure == "list" else f"{self.measure} of {name}"
        if condition := self.condition():
            text += f" where {condition}"
        if self.compared:
            text += f", {' compared with '.join(map(self._worded, self.compared))}"
        if self.group is not None:
            text += f", by {self.period + ' of ' if self.period else ''}{self.columns[self.group]}"
        if self.is_averaged:
            text += ", averaged"
        if self.order:
            text += f", {self.order} first"
        return f"{text}, first {self.limit}" if self.limit else text

    def _worded(self, each: Filter, language: str = "en") -> str:
        says = _words(language)
        values = [worded_value(value, language) for value in each.values]
        name = self.columns[each.column]
        if each.op in ("empty", "filled"):
            return says[each.op].format(name=name)
        if each.other is not None:
            return f"{name} {each.op} {self.columns[each.other]}"
        if each.op in ("between", "within"):
            return says[each.op].format(name=name, first=values[0], last=values[1])
        joint = f" {says['or']} "
        return f"{name} {each.op} {joint.join(values)}"


_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "and": "and",
        "or": "or",
        "yes": "yes",
        "no": "no",
        "between": "{name} from {first} to {last}",
        "within": "{name} from {first} before {last}",
        "empty": "{name} is empty",
        "filled": "{name} is not empty",
    },
    "de": {
        "and": "und",
        "or": "oder",
        "yes": "ja",
        "no": "nein",
        "between": "{name} von {first} bis {last}",
        "within": "{name} ab {first} vor {last}",
        "empty": "{name} ist leer",
        "filled": "{name} ist nicht leer",
    },
    "es": {
        "and": "y",
        "or": "o",
        "yes": "sí",
        "no": "no",
        "between": "{name} de {first} a {last}",
        "within": "{name} desde {first} antes de {last}",
        "empty": "{name} está vacío",
        "filled": "{name} no está vacío",
    },
}


def _words(language: str) -> Mapping[str, str]:
    return _WORDS.get(language, _WORDS["en"])


def worded_number(text: str, language: str) -> str:
    """A number that is written as in English, as the language writes it."""
    return text.translate(str.maketrans(",.", ".,")) if language in ("de", "es") else text


def worded_value(value: Value, language: str = "en") -> str:
    """A value in an explanation: `4,000`, `2026-03-01`, `yes`."""
    if isinstance(value, bool):
        return _words(language)["yes" if value else "no"]
    if isinstance(value, float):
        number = f"{value:,.10g}" if abs(value) < 1e10 else f"{value:,.0f}"
        return worded_number(number, language)
    return str(value)


class Unsure(_Value):
    """The question may be one of tables, read in one of at most two ways. `unknown` are the words
    that neither table nor grammar explains."""

    readings: tuple[Plan, ...]
    unknown: tuple[str, ...] = ()

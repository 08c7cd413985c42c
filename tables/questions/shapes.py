"""Tables that are asked as one, with what their columns are about: `Shape`. Begin with
`shapes_of`. Without Django.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain

from tables.questions.plan import Column, Layout, TableSchema
from tables.questions.words import (
    FAMILIES,
    PERIODS,
    QUALIFIERS,
    SPANISH_SEX,
    concepts_of,
    fold,
    fold_text,
    spans_of,
    split_words,
    word_forms,
)

#: A column of money is about these where no header is.
MONEY = ("amount", "price")
CURRENCIES = frozenset(("EUR", "USD", "GBP", "CHF", "JPY"))
#: Numbers of these columns name rows and are not computed with.
IDENTIFIERS = frozenset(
    [
        "id",
        "no",
        "nr",
        "number",
        "num",
        "nummer",
        "numero",
        "code",
        "year",
        "jahr",
        "ano",
        "zip",
        "plz",
        "postcode",
        "sku",
        "ref",
        "phone",
        "telefon",
        "telefono",
        "pos",
        "position",
        "row",
        "zeile",
        "fila",
        "isbn",
        "ean",
    ]
)
#: What rows are whose first column has numbers and is called after them.
_NUMBERED = frozenset(("thing", "order", "invoice", "booking", "task", "device", "vehicle"))
_OF = frozenset(("of", "de", "der", "von"))
#: What headers say of money that does not come in.
_OUTLAYS = frozenset(("expense", "planned", "tax", "discount"))
#: Words of headers whose numbers are years.
_YEARS = frozenset(("year", "yr", "jahr", "ano", "jahrgang", "vintage", "anada", "cosecha"))
#: “Rent per month”, “€/kg”, “precio por noche”: what the numbers are for each of.
_RATE = re.compile(r"(?:\b(?:per|pro|por|je|al|cada)\s+|/\s*)(?:\d+\s*)?([^\W\d_]+)")


class _Concepts(dict[str, list[int]]):
    """Without a concept no columns. Looking one up adds nothing: threads share it."""

    def __missing__(self, concept: str) -> list[int]:
        return []


class Shape:
    """Tables of one group, or that have the same columns, and are asked as one. `places` are, for
    each table, the columns of the shape in it, None where it has none."""

    def __init__(self, tables: Sequence[TableSchema]) -> None:
        self.tables = list(tables)
        own = [each.places or tuple(range(len(each.columns))) for each in tables]
        order = list(dict.fromkeys(place for places in own for place in sorted(places)))
        if any(each.places for each in tables):
            order.sort()
        self.places = [
            tuple(at.get(place) for place in order)
            for at in ({place: index for index, place in enumerate(places)} for places in own)
        ]
        self.columns = [
            _joined_column(
                [
                    table.columns[place]
                    for table, places in zip(tables, self.places, strict=True)
                    if (place := places[index]) is not None
                ]
            )
            for index in range(len(order))
        ]
        self.names = [split_words(column.name) for column in self.columns]
        self.columns = [
            replace(column, unit=column.unit or _unit_of(column.name))
            if column.type == "number"
            else column
            for column in self.columns
        ]

    def layouts(self, chosen: Collection[int]) -> tuple[Layout, ...]:
        """Where the chosen tables, by their indexes, have the columns; () where each has them all,
        in this order."""
        by_places: defaultdict[tuple[int | None, ...], list[int]] = defaultdict(list)
        for at in chosen:
            by_places[self.places[at]].append(self.tables[at].id)
        if set(by_places) <= {tuple(range(len(self.columns)))}:
            return ()
        return tuple(Layout(tables=tuple(ids), places=at) for at, ids in by_places.items())

    @cached_property
    def folded_values(self) -> list[str]:
        """The values of each column of texts, as `found_values` searches them; "" of others."""
        return [
            folded_lines(column.values) if column.type == "text" else "" for column in self.columns
        ]

    @cached_property
    def families(self) -> dict[str, dict[int, dict[str, str]]]:
        """Columns whose values are all of one kind, such as days of the week, however they are
        written: kind → column → cell → which of the kind."""
        found: dict[str, dict[int, dict[str, str]]] = {kind: {} for kind in FAMILIES}
        for kind, family in FAMILIES.items():
            for index, column in enumerate(self.columns):
                if not column.is_whole or not 0 < len(column.values) <= len(family):
                    continue
                folded = {value: fold(value).rstrip(".") for value in column.values}
                known = {**family, **(SPANISH_SEX if {*folded.values()} == {"h", "m"} else {})}
                if all(value in known for value in folded.values()):
                    found[kind][index] = {cell: known[value] for cell, value in folded.items()}
        return found

    @cached_property
    def concepts(self) -> dict[str, list[int]]:
        """What the columns are about: concept → their indexes."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for index, column in enumerate(self.columns):
            for words in (self.names[index], *map(split_words, column.other_names)):
                for phrase in {*words, " ".join(word for word in words if word not in "€$£¥%")}:
                    for concept in concepts_of(phrase, is_question=False):
                        if index not in found[concept]:
                            found[concept].append(index)
        for kind, columns in self.families.items():
            found[kind] += [index for index in columns if index not in found[kind]]
        for concept in MONEY:
            if not any(self.columns[index].type == "number" for index in found[concept]):
                found[concept] += [
                    at
                    for at, column in enumerate(self.columns)
                    if column.unit in CURRENCIES
                    and (concept == "price" or at not in found["price"])
                ]
        if not found["revenue"]:
            money = [
                index
                for index in self.measurable
                if self.columns[index].unit in CURRENCIES
                and not _OUTLAYS & {QUALIFIERS.get(word) for word in self.names[index]}
            ]
            sums = [i for i in found["amount"] if i in money]
            found["revenue"] = sums or money
        if not found["date"]:
            found["date"] = [at for at, each in enumerate(self.columns) if each.type == "date"]
        return _Concepts(found)

    @cached_property
    def rates(self) -> dict[str, list[int]]:
        """Columns of numbers that are each for one of something: what, as `rate_of`."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for index in self.measurable:
            name = fold_text(self.columns[index].name)
            words = {rate_of(each[1]) for each in _RATE.finditer(name)}
            words |= {rate_of(word) for word in self.names[index] if rate_of(word) in PERIODS}
            for word in words:
                found[word].append(index)
        return found

    @cached_property
    def table_words(self) -> frozenset[str]:
        """The words that its tables are called by."""
        names = (name for table in self.tables for name in table_names(table))
        return frozenset(word for name in names for word in name)

    @cached_property
    def table_concepts(self) -> frozenset[str]:
        """What these words are about."""
        return frozenset(
            concept for word in self.table_words for concept in concepts_of(word, is_question=False)
        )

    @cached_property
    def measurable(self) -> list[int]:
        """The columns of numbers to compute with."""
        return [
            index
            for index, column in enumerate(self.columns)
            if column.type == "number"
            and not self.is_numbering(index)
            and not self.is_of_years(index)
        ]

    @cached_property
    def years(self) -> list[int]:
        """The columns of years."""
        return [index for index in range(len(self.columns)) if self.is_of_years(index)]

    def is_of_years(self, index: int) -> bool:
        """Whether a header says that its numbers are years: “Baujahr”."""
        names = split_words(_RATE.sub(" ", fold_text(self.columns[index].name)))
        return self.columns[index].type == "number" and any(
            name in _YEARS or name.endswith("jahr") for name in names
        )

    @cached_property
    def stocks(self) -> list[int]:
        """The measurable columns of quantities."""
        return [index for index in self.concepts["quantity"] if index in self.measurable]

    def is_numbering(self, index: int) -> bool:
        """Whether a header says that its cells are numbers of rows: “Part no.”, and not “Cost per
        year”."""
        name = _RATE.sub(" ", fold_text(self.columns[index].name))
        if index == 0 and not self.columns[0].unit and len(self.names[0]) == 1:
            concepts = concepts_of(self.names[0][0], is_question=True)
            if _NUMBERED & set(concepts):
                return True  # “Job” of a list of jobs
        words = split_words(name)
        if len(words) > 2 and words[1] in _OF:
            return False  # “No. of visitors”
        return not IDENTIFIERS.isdisjoint(words)


def _joined_column(same: Sequence[Column]) -> Column:
    """What several tables say of one column, called as most of them do."""
    values = tuple(dict.fromkeys(chain.from_iterable(each.values for each in same)))
    days = [day for each in same for day in (each.least, each.most) if day]
    name, *other_names = (name for name, _ in Counter(each.name for each in same).most_common())
    return Column(
        name,
        same[0].type,
        next((each.unit for each in same if each.unit), ""),
        values,
        all(each.is_whole for each in same),
        all(each.is_unique for each in same)
        and len(values) == sum(len(each.values) for each in same),
        min(days, default=None),
        max(days, default=None),
        tuple(other_names),
    )


class Schemas(tuple[TableSchema, ...]):
    """Tables that are asked several questions: their shapes are made once."""

    @cached_property
    def shapes(self) -> list[Shape]:
        """As `shapes_of`; not to be changed."""
        return shapes_of(list(self))


def shapes_of(tables: Sequence[TableSchema]) -> list[Shape]:
    """The tables by their groups, else by names, types and units of their columns, in the same
    order. Groups of several collections are one where their columns are the same."""
    if isinstance(tables, Schemas):
        return tables.shapes
    by_group: defaultdict[object, list[TableSchema]] = defaultdict(list)
    for table in tables:
        own = (table.id, "apart") if table.is_apart else _columns_key(table.columns)
        by_group[own if table.group is None else table.group].append(table)
    by_columns: defaultdict[object, list[Shape]] = defaultdict(list)
    seen = Counter[object]()
    for key, same in by_group.items():
        shape = Shape(same)
        columns = key if same[0].is_apart else _columns_key(shape.columns)
        # Two groups of one collection are different things, whatever their columns are called.
        own = (columns, same[0].collection)
        by_columns[columns, seen[own]].append(shape)
        seen[own] += same[0].group is not None
    return [
        shapes[0] if len(shapes) == 1 else _joined_shape(shapes) for shapes in by_columns.values()
    ]


def _joined_shape(shapes: Sequence[Shape]) -> Shape:
    """The tables of shapes that have the same columns."""
    return Shape(
        [
            replace(table, places=_places_of(places, len(table.columns)))
            for shape in shapes
            for table, places in zip(shape.tables, shape.places, strict=True)
        ]
    )


def _columns_key(columns: Sequence[Column]) -> object:
    return tuple((*split_words(each.name), each.type, each.unit) for each in columns)


def _places_of(indexes: Sequence[int | None], count: int) -> tuple[int, ...]:
    """The columns of a shape that a table's own are, which has them at these indexes."""
    places = [0] * count
    for place, index in enumerate(indexes):
        if index is not None:
            places[index] = place
    return tuple(places)


def table_names(table: TableSchema) -> Sequence[tuple[str, ...]]:
    """What a table is called, in words: its name, and title and file of its document, each word
    once and without the ending of the file."""
    return _words_of_names(table.name, table.title)


@lru_cache(maxsize=10_000)
def _words_of_names(name: str, title: str) -> Sequence[tuple[str, ...]]:
    title = re.sub(r"\.[A-Za-z]\w{1,4}$", "", title)
    names = [tuple(split_words(name)), tuple(dict.fromkeys(split_words(title)))]
    return [each for each in dict.fromkeys(names) if each]


def folded_lines(values: Sequence[str]) -> str:
    return fold_text("\n".join(value.replace("\n", " ") for value in values))


def _unit_of(name: str) -> str:
    """The unit in a header, such as “Kg” or “Unterhalt €/Jahr”; empty where it is what amounts are
    for each of, as in “price per kg”."""
    words = split_words(_RATE.sub(" ", fold_text(name)))
    units = [span.marks["units"] for span in spans_of(words) if "units" in span.marks]
    return units[0] if len(units) == 1 else ""


def rate_of(word: str) -> str:
    """What “per month” or “monthly” is a rate of, however it is written: a period, a unit, or the
    shortest form of the folded word."""
    for span in spans_of([word]):
        marks = span.marks
        if found := marks.get("each") or marks.get("units"):
            return found
        if period := next((each for each in PERIODS if each in marks), ""):
            return period
    return min(word_forms(word), key=lambda form: (len(form), form))

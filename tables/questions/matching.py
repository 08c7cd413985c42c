"""Which words of a question name a table, its columns and the values in them: by word, by form of
the word, by what both are about. Begin with `SchemaIndex`. Without Django.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, takewhile
from typing import Literal

from tables.questions.plan import Column, Layout, TableSchema
from tables.questions.words import (
    FAMILIES,
    MAX_PHRASE,
    PERIODS,
    QUALIFIERS,
    SPANISH_SEX,
    Question,
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
_IDENTIFIERS = frozenset(
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
#: Ends of headers whose numbers name rows.
_NUMBERING = ("nummer", "nr", "number", "id", "code")
#: Letters of the first part of a German compound, and how many more the header has.
_MIN_PART, _MIN_REST = 5, 3
#: “Rent per month”, “€/kg”, “precio por noche”: what the numbers are for each of.
_RATE = re.compile(r"(?:\b(?:per|pro|por|je|al|cada)\s+|/\s*)(?:\d+\s*)?([^\W\d_]+)")
#: Endings that verbs and nouns of one stem differ by.
_ENDING = re.compile(
    r"(?:ings?|ed|ers?|ies|s|y|ungen|ung|te|t|ieron|aron|[ai]d[ao]s?|[aei]n|[aei]r|e)$"
)
_VOWELS = frozenset("aeiou")
#: Letters of a header that is the beginning of a word.
_MIN_SHORT = 3
#: “Parz.” for “Parzelle”.
_ABBREVIATION = re.compile(r"\b([^\W\d_]{2,})\.")


@dataclass(frozen=True, slots=True)
class Match:
    """Words from `start` to `end` that name something: the table, columns, or values of one column.
    `strength` is 4 for exact words, 3 for other forms of them, 2 for a part of a name, 1 for what
    it is about."""

    start: int
    end: int
    kind: Literal["table", "column", "value"]
    columns: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    strength: int = 4


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
            _folded_lines(column.values) if column.type == "text" else "" for column in self.columns
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
                for phrase in {*words, " ".join(words)}:
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
        return not _IDENTIFIERS.isdisjoint(words)


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


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: Literal["table", "column", "value"]
    index: int
    words: tuple[str, ...]
    value: str = ""


class SchemaIndex:
    """The words of a shape: names of tables and columns, and the values that may be named in a
    question. Most values are passed over without being split into words."""

    def __init__(self, shape: Shape, question: Question) -> None:
        # Forms of a word begin alike; a number has only one. A pattern that begins with letters or
        # digits is searched for ten times as fast.
        beginnings = {
            (word, rf"{word}(?<!\d{word})(?!\d)")
            if word.isdecimal()
            else (word[:3], re.escape(word[:3]))
            for word in question.content_words
        }
        # “ebike” may be written “e-bike”.
        hyphened = {f"{word[0]}-{word[1:3]}" for word in question.content_words if len(word) > 3}
        beginnings |= {(part, re.escape(part)) for part in hyphened}
        self.shape = shape
        self._entries: list[_Entry] = []
        self._places: defaultdict[str, set[int]] = defaultdict(set)
        self._abbreviated: list[tuple[str, int]] = []
        self._headers: list[tuple[str, int]] = []
        for index, column in enumerate(shape.columns):
            for name in (column.name, *column.other_names):
                self._add(_Entry("column", index, tuple(split_words(name))))
                if self._entries and self._entries[-1].index == index:
                    at = len(self._entries) - 1
                    self._headers += [(word, at) for word in self._entries[-1].words]
                short = [found[1] for found in _ABBREVIATION.finditer(fold_text(name))]
                if name.isalpha() and len(name) >= _MIN_SHORT and not _is_word(fold(name)):
                    short.append(f"{fold(name)}.")  # “Sev” of “severity”
                self._abbreviated += [
                    (each, len(self._entries) - 1) for each in short if each not in _IDENTIFIERS
                ]
            folded = shape.folded_values[index]
            if patterns := sorted(pattern for part, pattern in beginnings if part in folded):
                may_be_named = re.compile("|".join(patterns))
                for value in found_values(may_be_named, column.values, folded):
                    words = tuple(split_words(value))
                    self._add(_Entry("value", index, words, value))
                    if len(words) == 2 and len(words[0]) == 1:  # “e-bike” may be “ebike”
                        self._add(_Entry("value", index, ("".join(words),), value))
        for at, table in enumerate(shape.tables):
            for words in table_names(table):
                self._add(_Entry("table", at, words))

    def _add(self, entry: _Entry) -> None:
        if entry.words:
            for word in entry.words:
                for form in word_forms(word):
                    self._places[form].add(len(self._entries))
            self._entries.append(entry)

    def matches(self, question: Question) -> list[Match]:
        """What the question's words name, the longest first at each place and only once; names of
        one place in several columns, or of table and column, are several matches."""
        words = question.words
        held = [
            set().union(*(self._places.get(form, ()) for form in word_forms(word)))
            | {entry for start, entry in self._abbreviated if _is_short_for(start, word)}
            for word in words
        ]
        for at, word in enumerate(words):
            if not held[at] and not _marks_of(word):
                held[at] = {entry for name, entry in self._headers if is_derived(word, name)}
        found: list[Match] = []
        at = 0
        while at < len(words):
            entries, end = held[at], at
            longest = (at + 1, entries)
            while entries and end < min(at + MAX_PHRASE, len(words)):
                end += 1
                longest = (end, entries)
                entries = entries & held[end] if end < len(words) else set()
            end, entries = self._without_loose_end(question, at, *longest, held)
            small = question.span(at)
            if (
                end - at > 1
                and small is not None
                and "words" in small.marks
                and not any(len(self._entries[each].words) == end - at for each in entries)
            ):
                at += 1  # “de cabra” of “Rulo de cabra” is named by “cabra”
                continue
            if here := self._matches_at(words, at, end, entries):
                found += here
            at = max(end, at + 1)
        return found + self._familiar(words)

    def _familiar(self, words: Sequence[str]) -> list[Match]:
        """What words such as “women” and “Sundays” mean of columns of “m” and “f”, or “Sun”."""
        found = []
        for kind, columns in self.shape.families.items():
            asked = [(at, FAMILIES[kind].get(word)) for at, word in enumerate(words)]
            for index, meanings in columns.items():
                for at, meant in asked:
                    cells = tuple(cell for cell, each in meanings.items() if each == meant)
                    if cells and len(words[at]) > 2:
                        found.append(Match(at, at + 1, "value", (index,), cells, 3))
        return found

    def _without_loose_end(
        self, question: Question, at: int, end: int, entries: set[int], held: Sequence[set[int]]
    ) -> tuple[int, set[int]]:
        """Without small words at the end, such as in “price of”, unless a name has exactly them."""
        while end - at > 1 and not any(
            len(self._entries[each].words) == end - at for each in entries
        ):
            span = question.span(end - 1)
            if span is None or "words" not in span.marks:
                break
            end -= 1
            entries = set.intersection(*held[at:end])
        return end, entries

    def _matches_at(
        self, words: Sequence[str], at: int, end: int, entries: set[int]
    ) -> list[Match]:
        by_target: defaultdict[tuple[str, int], list[_Entry]] = defaultdict(list)
        for each in sorted(entries):
            entry = self._entries[each]
            by_target[entry.kind, entry.index if entry.kind != "table" else -1].append(entry)
        found = []
        for (kind, index), targets in by_target.items():
            wholes = [each for each in targets if len(each.words) == end - at]
            exact = [each for each in wholes if list(each.words) == list(words[at:end])]
            chosen = exact or wholes or targets
            if kind == "value" and not wholes and end - at == 1 and len(words[at]) < 5:
                # Of part of a value a short word is no form: “owe” is not of Owen.
                chosen = [each for each in targets if words[at] in each.words]
                if not chosen:
                    continue
            strength = 4 if exact else 3 if wholes else 2
            indexes = tuple(sorted({each.index for each in targets if kind == "table"}))
            found.append(
                Match(
                    at,
                    end,
                    chosen[0].kind,
                    indexes if kind == "table" else (index,),
                    tuple(each.value for each in chosen) if kind == "value" else (),
                    strength,
                )
            )
        return found


def _folded_lines(values: Sequence[str]) -> str:
    return fold_text("\n".join(value.replace("\n", " ") for value in values))


def found_values(
    pattern: re.Pattern[str], values: Sequence[str], text: str | None = None
) -> Iterator[str]:
    """The values that it is found in once they are folded, by one search: there may be 100,000.
    `text` is the folded lines of all, where it is known."""
    text = _folded_lines(values) if text is None else text
    at = line = 0
    while (match := pattern.search(text, at)) is not None:
        line += text.count("\n", at, match.start())
        yield values[line]
        end = text.find("\n", match.end())
        if end < 0:
            return
        at, line = end + 1, line + 1


def stem_of(word: str) -> str:
    """A word without the ending that verbs and nouns of one stem differ by."""
    return _ENDING.sub("", word)


def is_derived(word: str, name: str) -> bool:
    """Whether a word is of a table's name: a verb, such as “delivered” of “Deliveries”, or a part
    of a German compound."""
    if len(word) >= 5 and any(
        len(form) >= 5 and other.endswith(form)
        for form in word_forms(word)
        for other in word_forms(name)
    ):
        return True
    stem = stem_of(word)
    if len(stem) >= 5 and stem != word and stem == stem_of(name):
        return True
    pairs = zip(word, name, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared >= 5 and shared >= 0.7 * max(len(word), len(name))


def _unit_of(name: str) -> str:
    """The unit in a header, such as “Kg” or “Unterhalt €/Jahr”; empty where it is what amounts are
    for each of, as in “price per kg”."""
    words = split_words(_RATE.sub(" ", fold_text(name)))
    units = [span.marks["units"] for span in spans_of(words) if "units" in span.marks]
    return units[0] if len(units) == 1 else ""


def _is_short_for(start: str, word: str) -> bool:
    """Whether an abbreviated word of a header may be this one, which begins so."""
    if start.endswith("."):  # Without a point in the header, a syllable must be missing.
        start = start[:-1]
        is_cut = start[-1:] not in _VOWELS and word[len(start) : len(start) + 1] in _VOWELS
        if not is_cut or len(word) < len(start) + 3:
            return False
    return len(word) >= len(start) + 2 and word.startswith(start) and not _marks_of(word)


def _is_word(word: str) -> bool:
    """Whether the grammar knows a word of a header, which then is no abbreviation."""
    return bool(concepts_of(word, is_question=True)) or bool(spans_of([word]))


def _marks_of(word: str) -> bool:
    """Whether a word asks for something by itself, such as “gesamt”."""
    return any(span.marks.keys() - {"words", "rows"} for span in spans_of([word]))


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


def _compounds_of(word: str, shape: Shape) -> list[int]:
    """Columns of numbers whose header is a German compound that ends with this word, else those of
    one that begins with it."""
    names = [
        (index, name)
        for index in shape.measurable
        for name in shape.names[index]
        if len(name) >= len(word) + _MIN_REST and not name.endswith(_NUMBERING)
    ]
    ended = [index for index, name in names if name.endswith(word)]
    return list(dict.fromkeys(ended or [index for index, name in names if name.startswith(word)]))


def concept_matches(question: Question, shape: Shape) -> list[Match]:
    """The columns that single words and phrases of the question mean without naming them, or that
    are the last part of a German compound, such as “Rechnungsbetrag”."""
    found = []
    for at in range(len(question.words)):
        if question.language in ("de", "en") and question.span(at) is None:
            columns = [
                index
                for index, words in enumerate(shape.names)
                if len(words) == 1
                and len(words[0]) >= 5
                and question.words[at].endswith(words[0])
                and question.words[at] != words[0]
            ]
            if not columns:
                # “Zuschauerzahl” is what the column “Zuschauer” counts.
                counted = question.words[at].removesuffix("zahl").removesuffix("an")
                columns = [i for i in shape.measurable if counted in shape.names[i]]
            if not columns and len(question.words[at]) >= _MIN_PART:
                columns = _compounds_of(question.words[at], shape)
            if columns:
                found.append(Match(at, at + 1, "column", tuple(columns), (), 1))
                continue
        span = question.span(at)
        unit = span.marks.get("units", "") if span and at - 1 not in question.numbers else ""
        if unit:
            # “How many kilometers”
            columns = [i for i in shape.measurable if shape.columns[i].unit == unit]
            if columns:
                found.append(Match(at, at + 1, "column", tuple(columns), (), 1))
                continue
        for end in (at + 3, at + 2, at + 1):
            phrase = " ".join(question.words[at:end])
            concepts = concepts_of(phrase, is_question=True)
            columns = [index for concept in concepts for index in shape.concepts.get(concept, ())]
            if columns and end <= len(question.words):
                found.append(Match(at, end, "column", tuple(dict.fromkeys(columns)), (), 1))
                break
    return found

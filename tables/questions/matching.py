"""Which words of a question name a table, its columns and the values in them: by word, by form of
the word, by what both are about. Begin with `SchemaIndex`. Without Django.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tables.questions.plan import Column, TableSchema
from tables.questions.words import MAX_PHRASE, Question, concepts_of, fold, split_words, word_forms

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


class Shape:
    """Tables that have the same columns, and are asked as one."""

    def __init__(self, tables: Sequence[TableSchema]) -> None:
        self.tables = list(tables)
        self.columns = _joined_columns(tables)
        self.names = [split_words(column.name) for column in self.columns]

    @cached_property
    def concepts(self) -> dict[str, list[int]]:
        """What the columns are about: concept → their indexes."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for index, words in enumerate(self.names):
            for phrase in {*words, " ".join(words)}:
                for concept in concepts_of(phrase, is_question=False):
                    if index not in found[concept]:
                        found[concept].append(index)
        for concept in MONEY:
            if not any(self.columns[index].type == "number" for index in found[concept]):
                found[concept] += [
                    at
                    for at, column in enumerate(self.columns)
                    if column.unit in CURRENCIES
                    and (concept == "price" or at not in found["price"])
                ]
        if not found["date"]:
            found["date"] = [at for at, each in enumerate(self.columns) if each.type == "date"]
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
            if column.type == "number" and not _IDENTIFIERS & set(self.names[index])
        ]


def _joined_columns(tables: Sequence[TableSchema]) -> list[Column]:
    joined = []
    for same in zip(*(table.columns for table in tables), strict=True):
        first: Column = same[0]
        days = [day for each in same for day in (each.least, each.most) if day]
        joined.append(
            Column(
                first.name,
                first.type,
                first.unit,
                tuple(dict.fromkeys(value for each in same for value in each.values)),
                all(each.is_whole for each in same),
                len(tables) == 1 and first.is_unique,
                min(days, default=None),
                max(days, default=None),
            )
        )
    return joined


def shapes_of(tables: Sequence[TableSchema]) -> list[Shape]:
    """The tables by their columns: names, types and units, in the same order."""
    by_columns: defaultdict[object, list[TableSchema]] = defaultdict(list)
    for table in tables:
        key = tuple((*split_words(each.name), each.type, each.unit) for each in table.columns)
        by_columns[key].append(table)
    return [Shape(same) for same in by_columns.values()]


def table_names(table: TableSchema) -> list[tuple[str, ...]]:
    """What a table is called, in words: its name, and title and file of its document, each word
    once and without the ending of the file."""
    title = re.sub(r"\.[A-Za-z]\w{1,4}$", "", table.title)
    names = [tuple(split_words(table.name)), tuple(dict.fromkeys(split_words(title)))]
    return [name for name in dict.fromkeys(names) if name]


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
        # Forms of a word begin alike.
        beginnings = {re.escape(word[:3]) for word in question.content_words}
        may_be_named = re.compile("|".join(sorted(beginnings)) or "(?!)").search
        self.shape = shape
        self._entries: list[_Entry] = []
        self._places: defaultdict[str, set[int]] = defaultdict(set)
        for index, column in enumerate(shape.columns):
            self._add(_Entry("column", index, tuple(shape.names[index])))
            if column.type == "text":
                for value in filter(lambda value: may_be_named(fold(value)), column.values):
                    self._add(_Entry("value", index, tuple(split_words(value)), value))
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
            for word in words
        ]
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
            if here := self._matches_at(words, at, end, entries):
                found += here
            at = max(end, at + 1)
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


def concept_matches(question: Question, shape: Shape) -> list[Match]:
    """The columns that single words and phrases of the question mean without naming them, or that
    are the last part of a German compound, such as “Rechnungsbetrag”."""
    found = []
    for at in range(len(question.words)):
        if question.language == "de" and question.span(at) is None:
            columns = [
                index
                for index, words in enumerate(shape.names)
                if len(words) == 1
                and len(words[0]) >= 5
                and question.words[at].endswith(words[0])
                and question.words[at] != words[0]
            ]
            if columns:
                found.append(Match(at, at + 1, "column", tuple(columns), (), 1))
                continue
        for end in (at + 2, at + 1):
            phrase = " ".join(question.words[at:end])
            concepts = concepts_of(phrase, is_question=True)
            columns = [index for concept in concepts for index in shape.concepts.get(concept, ())]
            if columns and end <= len(question.words):
                found.append(Match(at, end, "column", tuple(dict.fromkeys(columns)), (), 1))
                break
    return found

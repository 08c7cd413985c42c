"""Reads a question against one shape of tables: which names its words mention, and which words are
used up. `ShapeReader` is what conditions and measures are read with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tables.questions.matching import Match, concept_matches, is_derived
from tables.questions.plan import Filter
from tables.questions.shapes import CURRENCIES, MONEY, Shape, rate_of
from tables.questions.words import (
    QUALIFIERS,
    Question,
    Span,
    concepts_of,
    without_digraphs,
    word_forms,
)

#: What tables are about that is in their columns, and is no name of their rows.
_MEASURED = frozenset(("price", "quantity", "weight", "duration", "rating", "distance", "capacity"))
#: Letters of a word that a compound begins with.
_MIN_BEGINNING = 4
#: Words of what is over: of two columns it is the one of what was spent.
_PAST = frozenset(
    (
        *("spent", "paid", "cost", "was", "were", "gekostet", "kostete", "kosteten", "ausgegeben"),
        *("bezahlt", "war", "waren", "costo", "costaron", "gastamos", "gastado", "fue", "fueron"),
    )
)
#: Words of headers of what is paid in the end.
_WHOLE_AMOUNTS = frozenset(
    (
        *("total", "amount", "invoice", "betrag", "gesamtbetrag", "rechnungsbetrag", "gesamt"),
        *("summe", "importe", "monto"),
    )
)
#: Words of headers of what a meter shows.
_READINGS = frozenset(("stand", "zahlerstand", "reading", "readings", "lectura", "saldo"))
#: Amounts that are paid beside the main one, which are asked for by name.
_BESIDE = ("utilities", "deposit")
#: Between a word of comparison and its number or time.
_ARTICLES = frozenset(("the", "a", "los", "las", "el", "la", "dem", "den", "der", "die", "das"))


class NotOfTables(Exception):
    """The tables cannot answer this."""


def _is_beginning(word: str, name: str) -> bool:
    """Whether a German compound begins with a word: “Weine” of “Weinkeller”."""
    return any(
        len(form) >= _MIN_BEGINNING and plain.startswith(form) and len(plain) >= len(form) + 4
        for form in word_forms(word)
        for plain in (name, without_digraphs(name))
    )


@dataclass
class ShapeReader:
    """A question before tables of one shape. `used` are the words that are explained so far, and
    `strength` is how well. Of the first choice among several it takes the one at `pick`, and
    `choices` are how many there are. With `is_unsure` it may be meant in another way, too.
    `rates` are the places of words such as “per month” that are part of a column's name."""

    question: Question
    shape: Shape
    matches: list[Match]
    pick: int = 0
    used: set[int] = field(default_factory=set)
    filters: list[Filter] = field(default_factory=list)
    alternatives: tuple[Filter, ...] = ()
    strength: float = 0.0
    choices: int = 1
    is_unsure: bool = False
    rates: set[int] = field(default_factory=set)
    _of_table: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.words = self.question.words
        about = concept_matches(self.question, self.shape)
        # “Without VAT” names the net amounts, and not “VAT”.
        inside = {at for match in about for at in range(match.start + 1, match.end)}
        named = [m for m in self.matches if m.kind == "column" and m.start not in inside]
        places = {
            at for match in named if match.strength > 1 for at in range(match.start, match.end)
        }
        # “Beitrag” is an amount, though “Beitrag bezahlt” has the word, too.
        conditions = {
            match.start
            for match in named
            if match.strength == 2 and all(self._type(i) == "boolean" for i in match.columns)
        }
        self.mentions = named + [
            match
            for match in about
            if match.start not in places
            or (match.start in conditions and len(self._typed(match, "number")) == 1)
        ]
        self.mentions.sort(key=lambda match: (match.start, -match.strength))

    @property
    def names_table(self) -> bool:
        """Whether any word names a table of the shape, or is about it."""
        return any(map(self.is_table_at, range(len(self.words))))

    def is_table_at(self, at: int) -> bool:
        """Whether a word is in the name of a table, or about it."""
        if at >= len(self.words):
            return False
        is_named = any(m.kind == "table" and m.start <= at < m.end for m in self.matches)
        return is_named or self._is_of_table(at) or self._is_about_table(at)

    # What is used up

    def _use(self, start: int, end: int, strength: float = 0.0) -> None:
        self.used.update(range(start, end))
        self.strength += strength

    def _is_free(self, match: Match | Span) -> bool:
        return not self.used & set(range(match.start, match.end))

    def _one_of(self, candidates: Sequence[Any]) -> Any:
        """The only candidate, or one of several: in the first such choice that at `pick`."""
        if len(candidates) > 1 and self.choices == 1:
            self.choices = len(candidates)
            return candidates[self.pick]
        return candidates[0]

    def _use_span(self, *kinds: str) -> Span | None:
        """Use up the first free span that means one of these."""
        for span in self.question.spans:
            if span.marks.keys() & set(kinds) and self._is_free(span):
                self._use(span.start, span.end)
                return span
        return None

    # Where words are

    def _named_at(self, at: int) -> list[Match]:
        """The columns that the words at a place name, the surest first."""
        named = [match for match in self.mentions if match.start == at]
        return sorted(named, key=lambda match: -match.strength)

    def _after_small(self, at: int) -> int:
        """The first word from here on that says something."""
        while (
            (small := self.question.span(at)) and "words" in small.marks and not self._named_at(at)
        ):
            at = small.end
        return at

    def _is_of_table(self, at: int) -> bool:
        """Whether a word is derived from the name of a table."""
        word = self.words[at]
        if word not in self._of_table:
            self._of_table[word] = any(
                is_derived(word, name)
                or (self.question.language == "de" and _is_beginning(word, name))
                for name in self.shape.table_words
            )
        return self._of_table[word]

    def _is_about_table(self, at: int) -> bool:
        """Whether a word is about what a table is called, such as “invoices” of “Rechnungen”."""
        span = self.question.span(at)
        if span and "sum" in span.marks:
            return False
        return bool(
            (self.shape.table_concepts - _MEASURED)
            & set(concepts_of(self.words[at], is_question=True))
        )

    def _before(self, at: int) -> Span | None:
        """The span that ends before this word, a currency sign and articles apart."""
        if at and self.words[at - 1] in "€$£¥":
            at -= 1
        nearest = self._span_to(at)
        while at and self.words[at - 1] in _ARTICLES:
            at -= 1
            further = self._span_to(at)
            if further and "words" not in further.marks:
                return further
        return nearest

    def _span_to(self, end: int) -> Span | None:
        return next((span for span in self.question.spans if span.end == end), None)

    def _type(self, index: int) -> str:
        return self.shape.columns[index].type

    def _typed(self, match: Match, *types: str) -> list[int]:
        return [
            index
            for index in match.columns
            if self._type(index) in types
            and (self._type(index) != "number" or index in self.shape.measurable)
        ]

    def _actual(self, columns: list[int]) -> list[int]:
        """Without what was planned, where the question asks what was spent, and without parts of
        amounts where one column has the whole."""
        if len(columns) > 1 and all(self.shape.columns[i].unit in CURRENCIES for i in columns):
            whole = [i for i in columns if _WHOLE_AMOUNTS & set(self.shape.names[i])]
            columns = whole if len(whole) == 1 else columns
        # What a meter shows is the sum already.
        read = [i for i in columns if not _READINGS & set(self.shape.names[i])]
        columns = read or columns
        beside = {i for each in _BESIDE for i in self.shape.concepts.get(each, ())}
        if len(main := [index for index in columns if index not in beside]) == 1:
            columns = main
        kinds = {
            index: {QUALIFIERS.get(word) for word in self.shape.names[index]} for index in columns
        }
        actual = [index for index in columns if "planned" not in kinds[index]]
        asked = {QUALIFIERS.get(word) for word in self.words}
        if not actual or "planned" in asked or not _PAST & set(self.words):
            return columns
        return actual

    # "Per kilo", "a year", where a column has amounts for each

    def _rates(self) -> None:
        """Words that say what amounts are for each of name the columns of such amounts."""
        for span in self.question.spans:
            at = self._after_small(span.end)
            if "each" in span.marks:
                rate, end = span.marks["each"], span.end
            elif "group" in span.marks and at < len(self.words):
                rate, end = rate_of(self.words[at]), at + 1
            else:
                continue
            columns = self.shape.rates.get(rate, [])
            if not self._is_spoken_of(columns, range(span.start, end)):
                continue
            is_other = any(self._typed(m, "text", "boolean") for m in self._named_at(end - 1))
            if columns and not is_other:
                self.rates.add(span.start)
                self.mentions.append(Match(span.start, end, "column", tuple(columns), (), 4))
        self.mentions.sort(key=lambda match: (match.start, -match.strength))

    def _is_spoken_of(self, columns: list[int], apart: range) -> bool:
        """Whether more than money, and the words at the places `apart`, names the table or these
        columns."""
        return self.names_table or any(
            (match.strength >= 3 or set(match.columns) & set(columns))
            and match.start not in apart
            and not set(MONEY) & set(concepts_of(self.words[match.start], is_question=True))
            for match in self.mentions
        )

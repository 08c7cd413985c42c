"""Which words of a question name a table, its columns and the values in them: by word, by form of
the word, by what both are about. Begin with `SchemaIndex`. Without Django.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from tables.questions.shapes import IDENTIFIERS, Shape, folded_lines, table_names
from tables.questions.words import (
    FAMILIES,
    MAX_PHRASE,
    Question,
    concepts_of,
    fold,
    fold_text,
    spans_of,
    split_words,
    word_forms,
)

#: Ends of headers whose numbers name rows.
_NUMBERING = ("nummer", "nr", "number", "id", "code")


#: Letters of the first part of a German compound, and how many more the header has.
_MIN_PART, _MIN_REST = 5, 3

#: Endings that verbs and nouns of one stem differ by.
_ENDING = re.compile(
    r"(?:ings?|ed|ers?|ies|[ae]nces?|s|y|ungen|ung|te|t|ieron|aron|[ai]d[ao]s?|[aei]n|[aei]r|e)$"
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
                    (each, len(self._entries) - 1) for each in short if each not in IDENTIFIERS
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
        entries_at = [
            set().union(*(self._places.get(form, ()) for form in word_forms(word)))
            | {entry for start, entry in self._abbreviated if _is_short_for(start, word)}
            for word in words
        ]
        for at, word in enumerate(words):
            if not entries_at[at] and not _marks_of(word):
                entries_at[at] = {entry for name, entry in self._headers if is_derived(word, name)}
        found: list[Match] = []
        at = 0
        while at < len(words):
            entries, end = entries_at[at], at
            longest = (at + 1, entries)
            while entries and end < min(at + MAX_PHRASE, len(words)):
                end += 1
                longest = (end, entries)
                entries = entries & entries_at[end] if end < len(words) else set()
            end, entries = self._without_loose_end(question, at, *longest, entries_at)
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
        self,
        question: Question,
        at: int,
        end: int,
        entries: set[int],
        entries_at: Sequence[set[int]],
    ) -> tuple[int, set[int]]:
        """Without small words at the end, such as in “price of”, unless a name has exactly them."""
        while end - at > 1 and not any(
            len(self._entries[each].words) == end - at for each in entries
        ):
            span = question.span(end - 1)
            if span is None or "words" not in span.marks:
                break
            end -= 1
            entries = set.intersection(*entries_at[at:end])
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


def found_values(
    pattern: re.Pattern[str], values: Sequence[str], text: str | None = None
) -> Iterator[str]:
    """The values that it is found in once they are folded, by one search: there may be 100,000.
    `text` is the folded lines of all, where it is known."""
    text = folded_lines(values) if text is None else text
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

"""Rows that a question names by a cell: a part number, a name, the number of an invoice. Begin with
`RowFinder`.

It reads the text of passages, so that hits can be ranked by it without a statement. Without Django.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from math import log2
from string import punctuation

from common.text import has_unspaced_script
from tables.questions.parsing import read_question
from tables.questions.words import concepts_of, fold, word_forms

#: Words of a question that are read.
MAX_WORDS = 60
#: Words of one cell that is named as a whole.
MAX_CELL_WORDS = 8
#: Fewer letters or digits name no row.
MIN_CELL_CHARACTERS = 3
#: Letters of a word that names a cell in part, such as “Adler” for “Jürgen Adler”, and the share of
#: the cell's letters that such words have.
MIN_PART_CHARACTERS, MIN_PART = 4, 0.4
#: How surely a cell names its row: one of several words, of letters with digits, or a long number;
#: one word or a short number; one of which the question has the beginning, or other words, by how
#: much of it.
DISTINCTIVE, PLAIN, BEGINNING, PART = 1.0, 0.7, 0.8, 0.6
#: How much a word with digits counts among the words of a question that a row explains.
NUMBER_WEIGHT = 2.0
#: Letters of the word at the end of a German compound, such as “Lagerbestand”, and of the whole.
MIN_COMPOUND_END, MAX_COMPOUND = 5, 40
#: Digits from which a number is distinctive.
MIN_DISTINCTIVE_DIGITS = 5

_WORD = re.compile(r"[^\W_]+")
_SQUEEZED = {ord(sign): None for sign in " \t" + punctuation if sign != "|"}
_DASHES = re.compile(r"[|\s:-]*-[|\s:-]*")
_LIST_ROW = re.compile(r"Row \d{1,9}:\s*")
_LIST_LINE = re.compile(r"(?:- |  |\s*$)")
_ACCENTS = re.compile("[\u0300-\u036f\u3099\u309a]+")


def _plain(text: str) -> str:
    """Folded, with one spelling of umlauts. It has as many lines and bars as the text."""
    folded = text.casefold()
    if not folded.isascii():
        folded = _ACCENTS.sub("", unicodedata.normalize("NFKD", folded))
    return folded.replace("ae", "a").replace("oe", "o").replace("ue", "u")


def _concepts(word: str) -> frozenset[str]:
    """What a folded word of a question, or the end of a compound, is about."""
    last = len(word) - MIN_COMPOUND_END
    starts = (0, *range(3, last + 1)) if len(word) <= MAX_COMPOUND else (0,)
    ends = (concepts_of(word[start:], is_question=True) for start in starts)
    return frozenset(next(filter(None, ends), ()))


def may_have_rows(text: str) -> bool:
    """Whether a text may have rows of a table: as lines with bars, or as lists of long ones."""
    return "|" in text or ("Row " in text and "\n- " in text)


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row at `start` of the text, up to `end`. `certainty`, 0..1, is how surely the cell that the
    question names best names the row, and `explained`, 0..1, how much of the question the row says
    together with its header. `key` is the text of that cell, the same for equal ones."""

    start: int
    end: int
    certainty: float
    explained: float
    key: str

    @property
    def score(self) -> float:
        """0..1: 1 where the row is all that the question speaks of."""
        return self.certainty * self.explained**2


_NOTHING: tuple[float, set[str]] = (0.0, set())


@dataclass(frozen=True, slots=True)
class _Line:
    """A row: its cells, folded, and the names of its columns as written."""

    start: int
    end: int
    cells: Sequence[str]
    names: Sequence[str]
    places: range  # of its lines in the text


class RowFinder:
    """Finds the rows that a question names. Its words are read once, for any number of texts."""

    def __init__(self, question: str) -> None:
        folded = _WORD.findall(fold(question))[:MAX_WORDS]
        words = [_plain(word) for word in folded]
        reading = read_question(question, today=date.min, language="en")
        small = {word for span in reading.spans for word in reading.words[span.start : span.end]}
        #: Words that say which row and column are meant, with what they are about.
        self._content = {
            plain: concepts
            for word, plain in zip(folded, words, strict=True)
            if (concepts := _concepts(word)) or word not in small
        }
        self._weights = {
            word: NUMBER_WEIGHT if any(map(str.isdigit, word)) else 1.0 for word in self._content
        }
        self._runs = {
            "".join(words[start:end]): (start, end)
            for start in range(len(words))
            for end in range(start + 1, min(start + MAX_CELL_WORDS, len(words)) + 1)
            # Small words alone, such as “all of them”, name nothing.
            if not self._content.keys().isdisjoint(words[start:end])
        }
        # “Adlers” names “Adler”, too.
        for run, place in list(self._runs.items()):
            if run.endswith("s") and len(run) > MIN_PART_CHARACTERS:
                self._runs.setdefault(run[:-1], place)
        self._words = words
        self._parts = {
            form: word
            for word in self._content
            for form in (word, word.removesuffix("s"))
            if len(form) >= MIN_PART_CHARACTERS
        }
        #: Any cell that is named has one of these.
        self._needles = {
            *(word.removesuffix("s") for word in self._content if len(word) >= MIN_CELL_CHARACTERS),
            *(
                run
                for run, (start, end) in self._runs.items()
                if all(len(word) < MIN_CELL_CHARACTERS for word in words[start:end])
                and (len(run) >= MIN_CELL_CHARACTERS or _is_short_name(run))
            ),
        }
        self._unspaced = "".join(words) if has_unspaced_script(question) else ""

    def find(self, text: str) -> list[NamedRow]:
        """The rows of a passage that the question names, in their order. The time grows with the
        text."""
        if not may_have_rows(text):
            return []
        plain = _plain(text.replace("\\|", "  "))
        squeezed = plain.translate(_SQUEEZED)
        if not self._may_name(squeezed):
            return []
        lines = squeezed.split("\n")
        return [
            named
            for line in _lines(text, plain)
            if any(self._may_name(lines[at]) for at in line.places)
            and (named := self._named(line)) is not None
        ]

    def _may_name(self, squeezed: str) -> bool:
        return bool(self._unspaced) or any(needle in squeezed for needle in self._needles)

    def named_cells(self, cells: Iterable[str]) -> tuple[int, ...]:
        """The places, from 0, of the cells that the question names."""
        return tuple(
            at for at, cell in enumerate(cells) if self._certainty(_WORD.findall(_plain(cell)))[0]
        )

    def _named(self, line: _Line) -> NamedRow | None:
        best, key, said = 0.0, "", set[str]()
        for cell in line.cells:
            words = _WORD.findall(cell)
            certainty, named = self._certainty(words)
            said |= named
            if certainty > best:
                best, key = certainty, "".join(words)
        if not best:
            return None
        return NamedRow(line.start, line.end, best, self._explained(line, said), key)

    def _certainty(self, words: Sequence[str]) -> tuple[float, set[str]]:
        """How surely the question names the cell of these words, and those of its own that do."""
        squeezed = "".join(words)
        if len(squeezed) < MIN_CELL_CHARACTERS and not _is_short_name(squeezed):
            return _NOTHING
        if (run := self._runs.get(squeezed)) is not None:
            said = set(self._words[slice(*run)])
            return (DISTINCTIVE if _is_distinctive(squeezed, words) else PLAIN), said
        if self._unspaced and squeezed in self._unspaced and has_unspaced_script(squeezed):
            return DISTINCTIVE, {word for word in self._content if squeezed in word}
        if len(words) > 1 and self._content.keys() >= set(words):  # “Adler, Jürgen”
            return DISTINCTIVE, set(words)
        beginning = self._beginning(words)
        if 2 * len(beginning) >= len(squeezed) and len(beginning) >= MIN_PART_CHARACTERS:
            said = set(self._words[slice(*self._runs[beginning])])
            return BEGINNING * len(beginning) / len(squeezed), said
        forms = self._parts.keys() & words
        share = sum(map(len, forms)) / len(squeezed)
        return (
            (PART * share, {self._parts[form] for form in forms}) if share >= MIN_PART else _NOTHING
        )

    def _beginning(self, words: Sequence[str]) -> str:
        """The most of a cell's first words that the question has, without spaces."""
        longest, joined = "", ""
        for word in words[:MAX_CELL_WORDS]:
            joined += word
            longest = joined if joined in self._runs else longest
        return longest

    def _explained(self, line: _Line, said: set[str]) -> float:
        if not self._content:
            return 1.0
        names = [fold(name) for name in line.names]
        in_header = {word for name in names for word in _WORD.findall(name)}
        forms = {form for word in in_header for form in word_forms(_plain(word))}
        about = {
            concept
            for name in (*names, *in_header)
            for concept in concepts_of(name, is_question=False)
        }
        in_row = {word for cell in line.cells for word in _WORD.findall(cell)}
        explained = sum(
            self._weights[word]
            for word, concepts in self._content.items()
            if word in said
            or word in in_row
            or not forms.isdisjoint(word_forms(word))
            or not about.isdisjoint(concepts)
        )
        return explained / sum(self._weights.values())


def _is_short_name(squeezed: str) -> bool:
    """Whether two characters may be a name: a letter with a digit, or without spaces around."""
    return len(squeezed) == 2 and (
        (squeezed[0].isalpha() and squeezed[1].isdigit()) or has_unspaced_script(squeezed)
    )


def _is_distinctive(squeezed: str, words: Sequence[str]) -> bool:
    if squeezed.isdigit():
        return len(squeezed) >= MIN_DISTINCTIVE_DIGITS or len(words) > 1
    return len(words) > 1 or any(map(str.isdigit, squeezed))


def _lines(text: str, plain: str) -> Iterator[_Line]:
    """The rows of pipe tables and those written as lists, with the header above them in the text.
    `plain` has a line for each line of it."""
    written = text.split("\n")
    ends = list(accumulate(len(line) + 1 for line in written))
    lines = plain.split("\n")
    names: list[str] = []
    is_body = False
    at = 0
    while at < len(lines):
        line, start = lines[at], ends[at - 1] if at else 0
        at += 1
        if "|" in line:
            is_header = not is_body and at < len(lines) and _DASHES.fullmatch(lines[at])
            is_body = True
            if is_header:
                names = _cells(written[at - 1])
                at += 1
            else:
                yield _Line(start, ends[at - 1] - 1, _cells(line), names, range(at - 1, at))
            continue
        is_body = False
        if _LIST_ROW.fullmatch(written[at - 1]):
            first = at
            while at < len(lines) and _LIST_LINE.match(lines[at]):
                at += 1
            places = [each for each in range(first, at) if lines[each].startswith("- ")]
            cells = [lines[each].partition(": ")[2] for each in places]
            listed = [written[each][2:].partition(": ")[0] for each in places]
            yield _Line(start, ends[at - 1] - 1, cells, listed, range(first, at))
        elif line.strip():
            names = []


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def row_spans(text: str) -> list[tuple[int, int]]:
    """Where the rows of tables in a text begin and end, in their order."""
    if not may_have_rows(text):
        return []
    return [(line.start, line.end) for line in _lines(text, text)]


def weigh_rows(found: Sequence[Sequence[NamedRow]]) -> list[list[float]]:
    """The scores of rows of several texts. A cell that many rows have, such as a town, names none
    of them."""
    holders: dict[str, set[tuple[int, int]]] = {}
    for at, rows in enumerate(found):
        for row in rows:
            holders.setdefault(row.key, set()).add((at, row.start))
    return [[row.score / (1 + log2(len(holders[row.key]))) for row in rows] for rows in found]

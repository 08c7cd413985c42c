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

from common.text import has_unspaced_script
from tables.questions.words import concepts_of, fold, read_question, word_forms

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
#: Digits from which a number is distinctive.
MIN_DISTINCTIVE_DIGITS = 5

_WORD = re.compile(r"[^\W_]+")
_NO_LETTER = re.compile(r"[^\w|\n]+|_+")
_DASHES = re.compile(r"[|\s:-]*-[|\s:-]*")
_LIST_ROW = re.compile(r"Row \d{1,9}:\s*")
_LIST_LINE = re.compile(r"(?:- |  |\s*$)")
_DIGRAPHS = re.compile("[aou]e")


def _plain(text: str) -> str:
    """Folded, with one spelling of umlauts. It has as many lines and bars as the text."""
    folded = text.casefold()
    if not folded.isascii():
        letters = unicodedata.normalize("NFKD", folded)
        folded = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _DIGRAPHS.sub(lambda found: found[0][0], folded)


def may_have_rows(text: str) -> bool:
    """Whether a text may have rows of a table: as lines with bars, or as lists of long ones."""
    return "|" in text or "\n- " in text


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
    """A row as written: its cells without anything but letters and digits, folded."""

    start: int
    end: int
    cells: Sequence[str]
    names: Sequence[str]


class RowFinder:
    """Finds the rows that a question names. Its words are read once, for any number of texts."""

    def __init__(self, question: str) -> None:
        folded = _WORD.findall(fold(question))[:MAX_WORDS]
        words = [_plain(word) for word in folded]
        reading = read_question(question, today=date.min, language="en")
        small = {word for span in reading.spans for word in reading.words[span.start : span.end]}
        #: Words that say which row and column are meant, with what they are about.
        self._content = {
            plain: frozenset(concepts_of(word, is_question=True))
            for word, plain in zip(folded, words, strict=True)
            if word not in small or concepts_of(word, is_question=True)
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
        self._unspaced = "".join(words) if has_unspaced_script(question) else ""

    def find(self, text: str) -> list[NamedRow]:
        """The rows of a passage that the question names, in their order. The time grows with the
        text."""
        if not may_have_rows(text):
            return []
        plain = _plain(text.replace("\\|", "  "))
        squeezed = _NO_LETTER.sub("", plain)
        if not self._may_name(squeezed):
            return []
        found = []
        for line in _lines(text, plain):
            if (named := self._named(line)) is not None:
                found.append(named)
        return found

    def _may_name(self, squeezed: str) -> bool:
        return bool(self._unspaced) or any(
            word in squeezed
            for word in (*self._parts, *self._runs)
            if len(word) >= MIN_CELL_CHARACTERS
        )

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
        if len(squeezed) < MIN_CELL_CHARACTERS:
            is_pair = len(squeezed) == 2 and self._unspaced and squeezed in self._unspaced
            if not (is_pair and has_unspaced_script(squeezed)):
                return _NOTHING
        if (run := self._runs.get(squeezed)) is not None:
            said = set(self._words[slice(*run)])
            return (DISTINCTIVE if _is_distinctive(squeezed, words) else PLAIN), said
        if self._unspaced and squeezed in self._unspaced and has_unspaced_script(squeezed):
            return DISTINCTIVE, {word for word in self._content if squeezed in word}
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
        in_header = {word for name in line.names for word in _WORD.findall(name)}
        forms = {form for word in in_header for form in word_forms(word)}
        about = {
            concept
            for name in (*line.names, *in_header)
            for concept in concepts_of(name, is_question=False)
        }
        in_row = {word for cell in line.cells for word in _WORD.findall(cell)}
        explained = sum(
            word in said
            or word in in_row
            or not forms.isdisjoint(word_forms(word))
            or not about.isdisjoint(concepts)
            for word, concepts in self._content.items()
        )
        return explained / len(self._content)


def _is_distinctive(squeezed: str, words: Sequence[str]) -> bool:
    if squeezed.isdigit():
        return len(squeezed) >= MIN_DISTINCTIVE_DIGITS or len(words) > 1
    return len(words) > 1 or any(map(str.isdigit, squeezed))


def _lines(text: str, plain: str) -> Iterator[_Line]:
    """The rows of pipe tables and those written as lists, with the header above them in the text.
    `plain` has a line for each line of it."""
    ends = list(accumulate(len(line) + 1 for line in text.split("\n")))
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
                names = _cells(line)
                at += 1
            else:
                yield _Line(start, ends[at - 1] - 1, _cells(line), names)
            continue
        is_body = False
        if _LIST_ROW.fullmatch(text[start : ends[at - 1] - 1]):
            first = at
            while at < len(lines) and _LIST_LINE.match(lines[at]):
                at += 1
            pairs = [each[2:].partition(": ") for each in lines[first:at] if each.startswith("- ")]
            end = ends[at - 1] - 1
            yield _Line(start, end, [cell for *_, cell in pairs], [name for name, *_ in pairs])
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

"""Runs of words that are written like names. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph.extraction.functionwords import FUNCTION_WORDS, INSIDE_NAMES

#: Longer runs of capitals are headlines, not names.
MOST_WORDS = 10
#: As many small words may stand between two capitals of a name: `Lord of the Rings`.
MOST_INSIDE = 3

_TOKEN = re.compile(r"[^\W_](?:[^\W_]|['’.&/-](?=[^\W_]))*")
_GAP = re.compile(r" {1,2}|-| - | & ")
_AFTER_SHORT = re.compile(r"\. ?")
#: Behind these the next word has its capital from the sentence, the quotation or the line.
_OPENING = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*\s*$|[\"“„«(\[•*|\n]\s*$|\n\s*(?:[-+>]\s*)+$")
_POSSESSIVE = ("'s", "’s")
_TITLES = "st dr mr mrs ms jr sr mt ft prof gen col capt lt sgt rev hon gov sen rep no bros"
#: Their full stop ends no sentence.
_SHORT = frozenset(_TITLES.split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, from `start` to `end`; `opens` where a sentence begins with it."""

    text: str
    start: int
    end: int
    is_capital: bool
    opens: bool

    @property
    def is_number(self) -> bool:
        return self.text[0].isdigit()

    @property
    def is_short(self) -> bool:
        """An initial or an abbreviation, that a full stop belongs to."""
        is_letter = len(self.text) == 1 and self.is_capital
        is_abbreviation = "." in self.text and not self.is_number
        return is_letter or is_abbreviation or self.text.casefold() in _SHORT


@dataclass(frozen=True, slots=True)
class Run:
    """Words that may be one name. `opens` where its first word may owe its capital to where it
    stands."""

    words: Sequence[Word]
    opens: bool

    @property
    def span(self) -> tuple[int, int]:
        return self.words[0].start, self.words[-1].end


def runs(text: str) -> Iterator[Run]:
    """Every name of the text: as a whole first, then the parts that it is made of."""
    for unbroken in _unbroken(text):
        opens = unbroken[0].opens
        words = _without_opening(unbroken) if opens else unbroken
        if not any(word.is_capital for word in words):
            continue
        if len(words) <= MOST_WORDS:
            # `HNSW` and `iPhone` owe their capitals to nothing.
            is_plain = len(words) == 1 and not _has_capitals(words[0].text)
            yield Run(words, opens=opens and is_plain and words[0].opens)
        for part in _parts(words):
            if len(part) < len(words) and any(word.is_capital for word in part):
                yield Run(part, opens=False)


def _words(text: str) -> Iterator[Word]:
    before: Word | None = None
    for found in _TOKEN.finditer(text):
        token = found[0]
        gap = text[before.end if before else 0 : found.start()]
        opens = before is None or bool(_OPENING.search(gap))
        if before is not None and before.is_short and _AFTER_SHORT.fullmatch(gap):
            opens = False
        is_capital = token[0].isupper() or token[0].istitle() or _has_capitals(token)
        before = Word(token, found.start(), found.end(), is_capital, opens)
        yield before


def _has_capitals(token: str) -> bool:
    """`iPhone`, `eBay`."""
    return any(letter.isupper() for letter in token[1:3])


def _unbroken(text: str) -> Iterator[list[Word]]:
    """Runs of capitals and numbers, with small words between them that may be part of a name."""
    run: list[Word] = []
    between: list[Word] = []
    for word in _words(text):
        before = (between or run)[-1] if run else None
        if before is not None and not _continues(text, before, word):
            yield run
            run, between = [], []
        if word.is_capital or (word.is_number and not between):
            run += [*between, word]
            between = []
        elif run and len(between) < MOST_INSIDE and word.text.casefold() in INSIDE_NAMES:
            between.append(word)
        elif run:
            yield run
            run, between = [], []
    if run:
        yield run


def _continues(text: str, before: Word, word: Word) -> bool:
    gap = text[before.end : word.start]
    if before.is_short and _AFTER_SHORT.fullmatch(gap):
        return True
    return not word.opens and bool(_GAP.fullmatch(gap))


def _without_opening(words: list[Word]) -> list[Word]:
    """`In the United States`, at the beginning of a sentence → `United States`."""
    if words[0].text.casefold() not in FUNCTION_WORDS:
        return words
    words = words[1:]
    while words and not words[0].is_capital and not words[0].is_number:
        words = words[1:]
    return words


def _parts(words: Sequence[Word]) -> Iterator[list[Word]]:
    """What stands between small words, and before and behind a possessive."""
    part: list[Word] = []
    for word in words:
        if word.is_capital or word.is_number:
            part.append(word)
        if part and (word.text.endswith(_POSSESSIVE) or part[-1] is not word):
            yield part
            part = []
    if part:
        yield part

"""What a query and a text share in scripts without spaces between words. Pure.

PostgreSQL finds such texts by pairs of letters, which is too little to highlight by: pairs such as
the end of one word with the beginning of the next stand everywhere.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from common.spaceless import (
    BURMESE,
    HANGUL,
    KHMER,
    LAO,
    LETTERS,
    MARKS,
    THAI,
    compiled,
    is_spaceless,
    letters_alone,
)

#: A line may end within a word of all these scripts but Hangul.
_LINE_END = rf"(?<![{HANGUL}])[ \t]*\n[ \t]*(?=[{LETTERS}])(?![{HANGUL}])"
_RUN = f"[{LETTERS}{MARKS}]+(?:{_LINE_END}[{LETTERS}{MARKS}]+)*"
_UNIT = f"[{LETTERS}][{MARKS}]*"
#: Here a pair of letters is less than a word, or a particle like any other.
_LONG_WORDS = f"[{HANGUL}{THAI}{LAO}{KHMER}{BURMESE}]"
#: Hiragana, and the commonest function words of Chinese: what joins words and is none itself.
_CHINESE_GLUE = "的了是在和与與及也就都而着著之个個这這那哪吗嗎呢什么麼"
_GLUE = re.compile(rf"[\u3041-\u309f{_CHINESE_GLUE}]")
_ONLY_GLUE = re.compile(f"[{_CHINESE_GLUE}]+")
#: Other forms of one character for one character, so that offsets stay.
_FOLDED = {
    code: folded
    for block in (range(0x2E80, 0x2FE0), range(0xF900, 0xFB00), range(0xFF01, 0xFFDD))
    for code in block
    if len(folded := unicodedata.normalize("NFKC", chr(code))) == 1
}

Span = tuple[int, int]


def shared_runs(query: str, text: str) -> list[Span]:
    """(start, end) offsets into `text` of what `query` means, in order, none within another.

    A run of the text that the query has too counts from two letters, or three where words are
    longer; a letter that stands alone in the query counts wherever it is.
    """
    if not is_spaceless(query):
        return []
    wanted = _Wanted(query)
    folded = text.translate(_FOLDED)
    return [span for run in compiled(_RUN).finditer(folded) for span in wanted.within(run)]


class _Wanted:
    """The pairs of letters of a query, and which of them begin one of its runs."""

    def __init__(self, query: str) -> None:
        runs = [
            compiled(_UNIT).findall(run) for run in compiled(_RUN).findall(query.translate(_FOLDED))
        ]
        self.alone = set(letters_alone(query))
        self.pairs = {pair for run in runs for pair in pairwise(run)}
        self.first = {(run[0], run[1]) for run in runs if len(run) > 1}

    def within(self, run: re.Match[str]) -> Iterator[Span]:
        """Spans of the text's run, longest ones whole."""
        units = list(compiled(_UNIT).finditer(run.string, *run.span()))
        letters = [unit[0] for unit in units]
        position = 0
        while position < len(letters):
            end = position + 1
            while end < len(letters) and (letters[end - 1], letters[end]) in self.pairs:
                end += 1
            kept = self._kept(letters, position, end)
            if kept:
                yield units[kept[0]].start(), units[kept[1] - 1].end()
            position = end

    def _kept(self, letters: list[str], start: int, end: int) -> Span | None:
        """What of the shared letters is worth marking."""
        if end - start == 1:
            return (start, end) if letters[start] in self.alone else None
        shared = "".join(letters[start:end])
        if _ONLY_GLUE.fullmatch(shared):
            return None
        if end - start == 2:
            begins = (letters[start], letters[start + 1]) in self.first
            return (
                (start, end)
                if begins or not (compiled(_LONG_WORDS).search(shared) or _GLUE.search(shared))
                else None
            )
        return _without_glue(letters, start, end)


def _without_glue(letters: list[str], start: int, end: int) -> Span:
    """Without particles at its ends, where that leaves two letters."""
    first, last = start, end
    while first < last and _GLUE.match(letters[first]):
        first += 1
    while last > first and _GLUE.match(letters[last - 1]):
        last -= 1
    return (first, last) if last - first > 1 else (start, end)

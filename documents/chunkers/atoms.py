"""A text as atoms, the smallest pieces that packing puts together: mostly words."""

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from semantic_text_splitter import TextSplitter

from common.graphemes import is_edge, may_join
from documents.chunkers.measure import Measure

Extent = tuple[int, int]

_WORD = re.compile(r"\S+")
#: White space that some tokenizers drop instead of splitting at: counts do not add up there.
_ODD_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
#: White space beside a character that may form one grapheme cluster with it.
_RISKY_SPACE = re.compile("\\s[^\x00-\u02ff]|[^\x00-\u02ff]\\s")

LONG_WORD = 60
#: Chinese and Thai run on without spaces: the library knows their sentences and words.
_WORD_SPLITTER = TextSplitter((LONG_WORD // 2, LONG_WORD), trim=False)
#: It takes quadratic time over a single word, half a minute for 300,000 letters.
_SLICE = 1000


@dataclass(slots=True)
class Atoms:
    """Atom k is `text[starts[k]:ends[k]]`; atoms i up to k have `totals[k] - totals[i]` tokens.

    `additive` tells whether those sums are exact or near the truth.
    """

    starts: list[int]
    ends: list[int]
    totals: list[int]
    additive: bool

    def __len__(self) -> int:
        return len(self.starts)

    def tokens(self, first: int, last: int) -> int:
        return self.totals[last] - self.totals[first]

    def part(self, first: int, last: int) -> "Atoms":
        """Atoms `first` up to `last` alone."""
        return Atoms(
            starts=self.starts[first:last],
            ends=self.ends[first:last],
            totals=[total - self.totals[first] for total in self.totals[first : last + 1]],
            additive=self.additive,
        )

    def at(self, offset: int) -> int:
        """The first atom that begins at `offset` or behind it."""
        return bisect_left(self.starts, offset)

    def is_inside_word(self, index: int) -> bool:
        """Whether nothing is between this atom and the one before."""
        return self.ends[index - 1] == self.starts[index]


def atomise(text: str, extent: Extent, *, measure: Measure, budget: int) -> Atoms:
    """The atoms of `text[extent]`, none with more tokens than `budget` if that can be."""
    words = list(_glued(text, [match.span() for match in _WORD.finditer(text, *extent)]))
    short = [piece for word in words for piece in _short_pieces(text, *word)]
    counts = measure.count_words([text[start:end] for start, end in short])
    additive = measure.additive and len(short) == len(words) and not has_odd_space(text, *extent)
    if counts and max(counts) > budget:
        short, counts = _within_budget(text, short, counts, measure, budget)
        additive = False
    return Atoms(
        starts=[start for start, _ in short],
        ends=[end for _, end in short],
        totals=list(accumulate(counts, initial=0)),
        additive=additive,
    )


def has_odd_space(text: str, start: int = 0, end: int = sys.maxsize) -> bool:
    """Whether counts of words may not add up in `text[start:end]`."""
    return _ODD_SPACE.search(text, start, end) is not None


def _glued(text: str, words: list[Extent]) -> Iterator[Extent]:
    """Words, joined where the white space between them is part of a grapheme cluster."""
    if not words or not _RISKY_SPACE.search(text, words[0][0], words[-1][1]):
        yield from words
        return
    start, end = words[0]
    for following, its_end in words[1:]:
        if may_join(text[end - 1], text[end]) or may_join(text[following - 1], text[following]):
            end = its_end
        else:
            yield start, end
            start, end = following, its_end
    yield start, end


def _short_pieces(text: str, start: int, end: int) -> Iterator[Extent]:
    if end - start <= LONG_WORD:
        yield start, end
        return
    cuts = [start]
    for begin in range(start, end, _SLICE):
        pieces = _WORD_SPLITTER.chunk_indices(text[begin : min(begin + _SLICE, end)])
        places = (begin + offset for offset, _ in pieces)
        cuts += [at for at in places if at > start and not may_join(text[at - 1], text[at])]
    yield from _trimmed(text, pairwise([*cuts, end]))


def _trimmed(text: str, extents: Iterable[Extent]) -> Iterator[Extent]:
    """Without white space at the edges, unless it carries a mark; glued words have some."""
    for extent in extents:
        start, end = extent
        while start < end and text[start].isspace() and not _joins_at(text, start + 1, end):
            start += 1
        while start < end and text[end - 1].isspace() and not _joins_at(text, end - 1, end):
            end -= 1
        if start < end:
            yield start, end


def _joins_at(text: str, at: int, end: int) -> bool:
    return 0 < at < end and may_join(text[at - 1], text[at])


def _within_budget(
    text: str, extents: list[Extent], counts: list[int], measure: Measure, budget: int
) -> tuple[list[Extent], list[int]]:
    small: list[Extent] = []
    small_counts: list[int] = []
    todo = list(zip(extents, counts, strict=True))[::-1]
    while todo:
        (start, end), count = todo.pop()
        if count <= budget or end - start == 1:
            small.append((start, end))
            small_counts.append(count)
        else:
            middle = _middle(text, start, end)
            halves = list(_trimmed(text, [(start, middle), (middle, end)]))
            half_counts = measure.count_all([text[first:last] for first, last in halves])
            todo += list(zip(halves, half_counts, strict=True))[::-1]
    return small, small_counts


def _middle(text: str, start: int, end: int) -> int:
    """The place nearest to the middle that tears no grapheme cluster; else the middle."""
    middle = (start + end) // 2
    for distance in range(min((end - start + 1) // 2, _SLICE)):
        for at in (middle - distance, middle + distance):
            if start < at < end and is_edge(text, at, start):
                return at
    return middle

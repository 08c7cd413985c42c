"""A text as atoms, the smallest pieces that are packed into chunks (mostly words), with their token
counts. Begin with `atomise`; `Measure` counts tokens and caches words."""

import re
import sys
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from semantic_text_splitter import TextSplitter
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from common.text import is_grapheme_boundary, may_combine
from reading.chunkers.base import TokenCounter

_MAX_KNOWN_WORDS = 200_000
_MAX_MEASURES = 8


class TokenMeasure:
    """Counts with `counter` and caches the counts of words.

    Encoding takes about 2.5 µs a token, a cache hit 0.1 µs. BERT's pre-tokenizer splits at white
    space first, so there the words' counts add up to the text's (`additive`); for other tokenizers
    the sum is close, and `count_all` is exact.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        tokenizer = counter.tokenizer
        if tokenizer is not None and (
            tokenizer.truncation is not None or tokenizer.padding is not None
        ):
            # They would make long texts look short, and short ones long.
            tokenizer = Tokenizer.from_str(tokenizer.to_str())
            tokenizer.no_truncation()
            tokenizer.no_padding()
        self._tokenizer: Tokenizer | None = tokenizer
        self._known: dict[str, int] = {}
        self.additive = tokenizer is not None and isinstance(
            tokenizer.pre_tokenizer, BertPreTokenizer
        )

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Exact tokens of each text."""
        if self._tokenizer is None:
            return [self.counter.count(text) for text in texts]
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    def count_words(self, words: Sequence[str]) -> list[int]:
        """Exact tokens of each word; short words are cached."""
        known = self._known
        new = list({word: None for word in words if word not in known})
        if new:
            if len(known) + len(new) > _MAX_KNOWN_WORDS:
                # Replaced, not cleared: another thread may be reading the old one.
                known = self._known = {}
                new = list(dict.fromkeys(words))
            known.update(zip(new, self.count_all(new), strict=True))
        return [known[word] for word in words]


_measures: OrderedDict[int, TokenMeasure] = OrderedDict()


def measure_for(counter: TokenCounter) -> TokenMeasure:
    """The measure of this counter, shared between documents so that its cache is too."""
    measure = _measures.get(id(counter))
    if measure is None or measure.counter is not counter:
        measure = _measures[id(counter)] = TokenMeasure(counter)
        while len(_measures) > _MAX_MEASURES:
            _measures.popitem(last=False)
    return measure


Extent = tuple[int, int]

_WORD = re.compile(r"\S+")
#: White space that some tokenizers drop instead of splitting at: counts do not add up there.
_NONADDITIVE_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
#: White space beside a character that may form one grapheme cluster with it.
_CLUSTER_SPACE = re.compile("\\s[^\x00-\u02ff]|[^\x00-\u02ff]\\s")

LONG_WORD = 60
#: Chinese and Thai run on without spaces: the library knows their sentences and words.
_WORD_SPLITTER = TextSplitter((LONG_WORD // 2, LONG_WORD), trim=False)
#: It takes quadratic time over a single word, half a minute for 300,000 letters.
_SPLITTER_SLICE = 1000


@dataclass(slots=True)
class Atoms:
    """Atom k is `text[starts[k]:ends[k]]`; atoms i up to k have `totals[k] - totals[i]` tokens.

    `additive`: whether these sums are exact, or close to exact.
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
        """Only atoms `first` up to `last`."""
        return Atoms(
            starts=self.starts[first:last],
            ends=self.ends[first:last],
            totals=[total - self.totals[first] for total in self.totals[first : last + 1]],
            additive=self.additive,
        )

    def at(self, offset: int) -> int:
        """Index of the first atom that begins at or after `offset`."""
        return bisect_left(self.starts, offset)

    def is_inside_word(self, index: int) -> bool:
        """Whether there is no space between this atom and the previous one."""
        return self.ends[index - 1] == self.starts[index]


def atomise(text: str, extent: Extent, *, measure: TokenMeasure, budget: int) -> Atoms:
    """The atoms of `text[extent]`, none with more tokens than `budget` if possible."""
    words = list(_join_clusters(text, [match.span() for match in _WORD.finditer(text, *extent)]))
    short = [piece for word in words for piece in _short_pieces(text, *word)]
    counts = measure.count_words([text[start:end] for start, end in short])
    additive = (
        measure.additive and len(short) == len(words) and not has_nonadditive_space(text, *extent)
    )
    if counts and max(counts) > budget:
        short, counts = _split_long_atoms(text, short, counts, measure, budget)
        additive = False
    return Atoms(
        starts=[start for start, _ in short],
        ends=[end for _, end in short],
        totals=list(accumulate(counts, initial=0)),
        additive=additive,
    )


def has_nonadditive_space(text: str, start: int = 0, end: int = sys.maxsize) -> bool:
    """Whether token counts of words may not add up in `text[start:end]`."""
    return _NONADDITIVE_SPACE.search(text, start, end) is not None


def _join_clusters(text: str, words: list[Extent]) -> Iterator[Extent]:
    """Words, joined where the white space between them is part of a grapheme cluster."""
    if not words or not _CLUSTER_SPACE.search(text, words[0][0], words[-1][1]):
        yield from words
        return
    start, end = words[0]
    for following, its_end in words[1:]:
        if may_combine(text[end - 1], text[end]) or may_combine(
            text[following - 1], text[following]
        ):
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
    for begin in range(start, end, _SPLITTER_SLICE):
        pieces = _WORD_SPLITTER.chunk_indices(text[begin : min(begin + _SPLITTER_SLICE, end)])
        places = (begin + offset for offset, _ in pieces)
        cuts += [at for at in places if at > start and not may_combine(text[at - 1], text[at])]
    yield from _trim_extents(text, pairwise([*cuts, end]))


def _trim_extents(text: str, extents: Iterable[Extent]) -> Iterator[Extent]:
    """Without white space at the edges, unless it carries a mark; glued words have some."""
    for extent in extents:
        start, end = extent
        while start < end and text[start].isspace() and not _is_mark_at(text, start + 1, end):
            start += 1
        while start < end and text[end - 1].isspace() and not _is_mark_at(text, end - 1, end):
            end -= 1
        if start < end:
            yield start, end


def _is_mark_at(text: str, at: int, end: int) -> bool:
    return 0 < at < end and may_combine(text[at - 1], text[at])


def _split_long_atoms(
    text: str, extents: list[Extent], counts: list[int], measure: TokenMeasure, budget: int
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
            # The grapheme boundary nearest to the middle; the middle if there is none.
            half = (start + end) // 2
            distances = range(min((end - start + 1) // 2, _SPLITTER_SLICE))
            nearby = (at for distance in distances for at in (half - distance, half + distance))
            edges = (
                at for at in nearby if start < at < end and is_grapheme_boundary(text, at, start)
            )
            middle = next(edges, half)
            halves = list(_trim_extents(text, [(start, middle), (middle, end)]))
            half_counts = measure.count_all([text[first:last] for first, last in halves])
            todo += list(zip(halves, half_counts, strict=True))[::-1]
    return small, small_counts

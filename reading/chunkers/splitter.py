"""From a document to spans: atomise, weigh the gaps, pack atoms into chunks, check the token
counts. Begin with `split_document`."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from reading.chunkers.atoms import Atoms, Extent, TokenMeasure, has_nonadditive_space
from reading.chunkers.base import Embed, Span
from reading.chunkers.boundaries import (
    HEADING_WORTH,
    SENTENCE_WORTH,
    WORD_WORTH,
    DocumentStructure,
    Window,
    indices_from,
    windows,
)
from reading.parsers import ParsedDocument

AtomRange = tuple[int, int]


def pack_atoms(
    atoms: Atoms, worth: Sequence[float], budget: int, overlap: int, *, share: bool = True
) -> Iterator[AtomRange]:
    """Chunks as half-open ranges of atoms, each of at most `budget` tokens by their sums.

    A chunk ends where the gap's worth plus the chunk's fullness is greatest. The remainder is
    shared between the last two chunks, so that none is tiny, unless `share` is false. The next
    chunk begins up to `overlap` tokens before the end, at a sentence if possible.
    """
    packer = _Packer(atoms, worth, budget, overlap, share)
    start = covered = before = 0
    while covered < len(atoms):
        end = packer.end(start, covered)
        yield start, end
        start, covered, before = packer.next_start(start, end, before), end, end


class _Packer:
    def __init__(
        self, atoms: Atoms, worth: Sequence[float], budget: int, overlap: int, share: bool
    ) -> None:
        self._totals = atoms.totals
        self._size = len(atoms)
        self._worth = worth
        self._budget = budget
        self._overlap = overlap
        self._share = share
        self._strong = [index for index, value in enumerate(worth) if value > WORD_WORTH]

    def end(self, start: int, covered: int) -> int:
        """Where the chunk that begins at `start` ends; always behind `covered`."""
        first = covered + 1
        last = max(self._index(self._totals[start] + self._budget), first)
        if last >= self._size:
            return self._size
        gaps = self._candidates(start, first, last, ideal=self._budget)
        full = self._best(start, gaps or range(first, last + 1), ideal=self._budget)
        if not self._share:
            return full
        # An end that leaves one last chunk of about the same size. That repeats some of this one,
        # but nothing before its heading. If the full chunk would end badly, any gap is accepted.
        behind = self._totals[-1]
        ideal = (behind - self._totals[start]) / 2
        bare = max(first, bisect_left(self._totals, behind - self._budget))
        repeating = max(first, bisect_left(self._totals, behind - self._budget + self._overlap))
        headings = indices_from(self._strong, bare, min(last, repeating - 1))
        gaps = [index for index in headings if self._worth[index] >= HEADING_WORTH]
        gaps += self._candidates(start, repeating, last, ideal=ideal)
        if not gaps and self._worth[full] < WORD_WORTH:
            gaps = list(range(repeating, last + 1))
        if not gaps:
            return full
        shared = self._best(start, gaps, ideal=ideal)
        # Three chunks that end well are better than two that do not.
        leaves_two = behind - self._totals[full] > self._budget
        return full if leaves_two and self._worth[full] > self._worth[shared] else shared

    def next_start(self, start: int, end: int, before: int) -> int:
        """Where the chunk after `start..end` begins; `before` is the end of the one before it."""
        if end >= self._size or self._worth[end] >= HEADING_WORTH:
            return end
        # The overlap leaves room for what must not be cut after `end`, but not beyond the budget:
        # a text may be a single word.
        following = end + 1
        last = min(self._index(self._totals[end] + self._budget) + 1, self._size)
        while following < last and self._worth[following] < WORD_WORTH:
            following += 1
        needed = self._totals[following] - self._totals[end]
        if needed > self._budget:
            needed = self._totals[end + 1] - self._totals[end]
        room = max(0, min(self._overlap, self._budget - needed))
        first = max(bisect_left(self._totals, self._totals[end] - room), start + 1, before)
        strong = indices_from(self._strong, first, end - 1)
        headings = [index for index in strong if self._worth[index] >= HEADING_WORTH]
        if headings:
            return headings[-1]
        sentences = (index for index in strong if self._worth[index] >= SENTENCE_WORTH)
        words = (index for index in range(first, end) if self._worth[index] >= WORD_WORTH)
        return next(sentences, next(words, end))

    def _candidates(self, start: int, first: int, last: int, *, ideal: float) -> list[int]:
        """Gaps in `first..last` that can be the best: the strong ones, and the word nearest to the
        ideal."""
        if first > last:
            return []
        nearest = min(max(self._index(self._totals[start] + ideal), first), last)
        words = (k for k in range(nearest, first - 1, -1) if self._worth[k] >= WORD_WORTH)
        return [*indices_from(self._strong, first, last), *islice(words, 1)]

    def _best(self, start: int, gaps: Iterable[int], *, ideal: float) -> int:
        """The gap with the greatest sum of worth and fullness; the last of equals."""

        def value(index: int) -> tuple[float, int]:
            size = self._totals[index] - self._totals[start]
            return self._worth[index] + 1 - abs(size - ideal) / (ideal or 1), index

        return max(gaps, key=value)

    def _index(self, total: float) -> int:
        """The last gap before which there are at most `total` tokens."""
        return bisect_right(self._totals, total) - 1


def sentence_ranges(atoms: Atoms, worth: Sequence[float], budget: int) -> list[AtomRange]:
    """Sentences as ranges of atoms, in order and without gaps; a heading belongs to the sentence
    after it. One with more tokens than `budget` is cut."""
    starts = [0, *(gap for gap in range(1, len(atoms)) if worth[gap] >= SENTENCE_WORTH), len(atoms)]
    ranges: list[AtomRange] = []
    for first, last in pairwise(starts):
        if atoms.tokens(first, last) > budget:
            pieces = pack_atoms(atoms.part(first, last), worth[first:last], budget, 0)
            ranges += [(first + start, first + end) for start, end in pieces]
        elif first < last:
            ranges.append((first, last))
    return ranges


#: A text with more characters a token than this is not tried as one chunk.
_CHARACTERS_PER_TOKEN = 16

#: Atoms, worth of their gaps, budget and overlap in tokens → ranges of atoms.
ArrangeFunction = Callable[[Atoms, Sequence[float], int, int], Iterable[AtomRange]]
WeighFunction = Callable[[Window, int], list[float]]
#: The first atom of a piece, that after its last one, and its true count of tokens.
Piece = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Chunker:
    """Cuts documents into spans by a strategy, with values for its options.

    Spans are in order. Between and around them is nothing but white space; only neighbours
    overlap. None is empty or begins or ends with white space, none has more tokens than the
    budget, no cut goes through a grapheme cluster (so a space that carries a mark stays with
    it). The same document gives the same spans. The one exception: a single grapheme cluster
    with more tokens than the budget is cut.

    `limit` is the model's context less the chunk's own context, in tokens.
    """

    strategy: "Strategy"
    values: Mapping[str, int]
    measure: TokenMeasure
    limit: int
    embed: Embed | None = None

    @property
    def tokens(self) -> int:
        """The most tokens of a chunk."""
        return min(self.values["max_tokens"], self.limit)

    @property
    def overlap(self) -> int:
        """The most tokens that a chunk repeats; at most half of one."""
        return min(self.values.get("overlap", 0), self.tokens // 2)

    def split(self, document: ParsedDocument) -> list[Span]:
        return self.strategy(self, document)


Strategy = Callable[[Chunker, ParsedDocument], list[Span]]


def split_document(
    chunker: Chunker,
    document: ParsedDocument,
    *,
    find_blocks: Callable[[ParsedDocument], list[Extent]] | None = None,
    weigh: WeighFunction = Window.worth,
    arrange: ArrangeFunction = pack_atoms,
    try_single_chunk: bool = True,
) -> list[Span]:
    """For any text: cuts at headings, else paragraphs, else sentences, else words.

    `weigh` rates the gaps otherwise, `arrange` chooses among them otherwise; the extents of
    `find_blocks` are kept together where they fit. A text that fits the budget is one chunk if
    `try_single_chunk`.
    """
    structure, measure, tokens = DocumentStructure(document), chunker.measure, chunker.tokens
    text = document.text
    # Most texts need no cutting, only counting.
    if try_single_chunk and len(text) <= tokens * _CHARACTERS_PER_TOKEN and text.strip():
        start = len(text) - len(text.lstrip())
        stripped = text.strip()
        if measure.additive and not has_nonadditive_space(stripped):
            count = sum(measure.count_words(stripped.split()))
        else:
            (count,) = measure.count_all([stripped])
        if count <= tokens:
            return [structure.span(start, start + len(stripped), count)]
    blocks = find_blocks(document) if find_blocks else ()
    return [
        structure.span(*piece_extent(window.atoms, piece))
        for window in windows(document, measure=measure, budget=tokens, blocks=blocks)
        for piece in fit_to_budget(
            text, window.atoms, weigh(window, tokens), measure, tokens, chunker.overlap, arrange
        )
    ]


def fit_to_budget(
    text: str,
    atoms: Atoms,
    worth: Sequence[float],
    measure: TokenMeasure,
    tokens: int,
    overlap: int = 0,
    arrange: ArrangeFunction = pack_atoms,
) -> list[Piece]:
    """Pieces arranged by the sums of atoms; where sums are estimates, with a smaller budget until
    all fit."""
    aim = tokens
    while True:
        ranges = list(arrange(atoms, worth, aim, overlap))
        if atoms.additive:
            counts = [atoms.tokens(first, last) for first, last in ranges]
        else:
            extents = [(atoms.starts[first], atoms.ends[last - 1]) for first, last in ranges]
            counts = measure.count_all([text[start:end] for start, end in extents])
        most = max(counts, default=0)
        if most <= tokens or aim == 0:
            return [(*piece, count) for piece, count in zip(ranges, counts, strict=True)]
        aim = min(aim - 1, aim * tokens // most)
        overlap = min(overlap, aim // 2)


def piece_extent(atoms: Atoms, piece: Piece) -> tuple[int, int, int]:
    """Start, end and tokens of a piece."""
    first, last, tokens = piece
    return atoms.starts[first], atoms.ends[last - 1], tokens

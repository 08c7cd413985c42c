"""From a document to spans: atomise, weigh the gaps, pack atoms into chunks, check the token
counts. Begin with `split_document`."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from documents.chunkers.atoms import Atoms, Extent, TokenMeasure, has_nonadditive_space
from documents.chunkers.base import Span
from documents.chunkers.boundaries import (
    HEADING_WORTH,
    SENTENCE_WORTH,
    WORD_WORTH,
    DocumentStructure,
    Window,
    indices_from,
    windows,
)
from documents.parsers import ParsedDocument

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
        last = max(self._index(self._totals[start] + self._budget), covered + 1)
        if last >= self._size:
            return self._size
        gaps = self._candidates(start, covered + 1, last, ideal=self._budget)
        full = self._best(start, gaps or range(covered + 1, last + 1), ideal=self._budget)
        shared = self._shared_end(start, covered + 1, last, full) if self._share else None
        if shared is None:
            return full
        # Three chunks that end well are better than two that do not.
        leaves_two = self._totals[-1] - self._totals[full] > self._budget
        return full if leaves_two and self._worth[full] > self._worth[shared] else shared

    def _shared_end(self, start: int, first: int, last: int, full: int) -> int | None:
        """The end that leaves one last chunk of about the same size; None if there is none.

        The last chunk repeats some of this one, but nothing before its heading. If the `full` chunk
        would end badly, any gap is accepted.
        """
        behind = self._totals[-1]
        ideal = (behind - self._totals[start]) / 2
        bare = max(first, bisect_left(self._totals, behind - self._budget))
        repeating = max(first, bisect_left(self._totals, behind - self._budget + self._overlap))
        headings = indices_from(self._strong, bare, min(last, repeating - 1))
        gaps = [index for index in headings if self._worth[index] >= HEADING_WORTH]
        gaps += self._candidates(start, repeating, last, ideal=ideal)
        if not gaps and self._worth[full] < WORD_WORTH:
            gaps = list(range(repeating, last + 1))
        return self._best(start, gaps, ideal=ideal) if gaps else None

    def next_start(self, start: int, end: int, before: int) -> int:
        """Where the chunk after `start..end` begins; `before` is the end of the one before it."""
        if end >= self._size or self._worth[end] >= HEADING_WORTH:
            return end
        first = max(bisect_left(self._totals, self._totals[end] - self._room(end)), start + 1)
        first = max(first, before)
        strong = indices_from(self._strong, first, end - 1)
        headings = [index for index in strong if self._worth[index] >= HEADING_WORTH]
        if headings:
            return headings[-1]
        sentences = (index for index in strong if self._worth[index] >= SENTENCE_WORTH)
        words = (index for index in range(first, end) if self._worth[index] >= WORD_WORTH)
        return next(sentences, next(words, end))

    def _room(self, end: int) -> int:
        """Tokens of overlap that leave room for what must not be cut after `end`."""
        following = end + 1
        # Not beyond the budget: a text may be a single word.
        last = min(self._index(self._totals[end] + self._budget) + 1, self._size)
        while following < last and self._worth[following] < WORD_WORTH:
            following += 1
        needed = self._totals[following] - self._totals[end]
        if needed > self._budget:
            needed = self._totals[end + 1] - self._totals[end]
        return max(0, min(self._overlap, self._budget - needed))

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


@dataclass(frozen=True, slots=True)
class Budget:
    """Maximum tokens of a chunk, and of its overlap with the previous one."""

    tokens: int
    overlap: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of atoms that fits the budget, with its true count of tokens."""

    first: int
    last: int
    tokens: int


def split_document(
    document: ParsedDocument,
    *,
    measure: TokenMeasure,
    budget: Budget,
    blocks: Sequence[Extent] = (),
    weigh: WeighFunction = Window.worth,
    arrange: ArrangeFunction = pack_atoms,
    try_single_chunk: bool = True,
) -> list[Span]:
    """Spans of the document; `blocks` are extents that are kept together where they fit.

    `weigh` rates each gap, `arrange` chooses among them. A text that fits the budget is one chunk
    if `try_single_chunk`.
    """
    structure = DocumentStructure(document)
    whole = _as_single_chunk(document.text, measure, budget.tokens) if try_single_chunk else None
    if whole is not None:
        return [structure.span(*whole)]
    return [
        structure.span(*piece_extent(window.atoms, piece))
        for window in windows(document, measure=measure, budget=budget.tokens, blocks=blocks)
        for piece in fit_to_budget(
            window.text, window.atoms, weigh(window, budget.tokens), measure, budget, arrange
        )
    ]


def _as_single_chunk(text: str, measure: TokenMeasure, budget: int) -> tuple[int, int, int] | None:
    """Start, end and tokens of the text if it fits: most texts need no cutting, only counting."""
    if len(text) > budget * _CHARACTERS_PER_TOKEN or not (stripped := text.strip()):
        return None
    if measure.additive and not has_nonadditive_space(stripped):
        count = sum(measure.count_words(stripped.split()))
    else:
        (count,) = measure.count_all([stripped])
    start = len(text) - len(text.lstrip())
    return (start, start + len(stripped), count) if count <= budget else None


def fit_to_budget(
    text: str,
    atoms: Atoms,
    worth: Sequence[float],
    measure: TokenMeasure,
    budget: Budget,
    arrange: ArrangeFunction = pack_atoms,
) -> list[Piece]:
    """Pieces arranged by the sums of atoms; where sums are estimates, with a smaller budget until
    all fit."""
    aim, overlap = budget.tokens, budget.overlap
    while True:
        pieces = list(_count_pieces(text, atoms, arrange(atoms, worth, aim, overlap), measure))
        most = max((piece.tokens for piece in pieces), default=0)
        if most <= budget.tokens or aim == 0:
            return pieces
        aim = min(aim - 1, aim * budget.tokens // most)
        overlap = min(overlap, aim // 2)


def _count_pieces(
    text: str, atoms: Atoms, chunks: Iterable[AtomRange], measure: TokenMeasure
) -> Iterator[Piece]:
    chunks = list(chunks)
    if atoms.additive:
        counts = [atoms.tokens(first, last) for first, last in chunks]
    else:
        extents = [(atoms.starts[first], atoms.ends[last - 1]) for first, last in chunks]
        counts = measure.count_all([text[start:end] for start, end in extents])
    for (first, last), count in zip(chunks, counts, strict=True):
        yield Piece(first, last, count)


def piece_extent(atoms: Atoms, piece: Piece) -> tuple[int, int, int]:
    """Start, end and tokens of a piece."""
    return atoms.starts[piece.first], atoms.ends[piece.last - 1], piece.tokens

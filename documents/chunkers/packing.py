"""Putting atoms together into chunks that end where a reader would pause."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from documents.chunkers.atoms import Atoms
from documents.chunkers.boundaries import HEADING, SENTENCE, WORD, indices_from

Chunk = tuple[int, int]


def pack(
    atoms: Atoms, worth: Sequence[float], budget: int, overlap: int, *, share: bool = True
) -> Iterator[Chunk]:
    """Chunks as half-open ranges of atoms, each of at most `budget` tokens by their sums.

    A chunk ends where the gap's worth plus the chunk's fullness is greatest. What is left for
    the last two is shared between them, so that no crumb remains, unless `share` is false. The
    next chunk begins up to `overlap` tokens before the end, at a sentence if it can.
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
        self._strong = [index for index, value in enumerate(worth) if value > WORD]

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

        The last chunk repeats some of this one, but nothing of what is before its heading. Where
        the `full` chunk would end badly, any place will do.
        """
        behind = self._totals[-1]
        ideal = (behind - self._totals[start]) / 2
        bare = max(first, bisect_left(self._totals, behind - self._budget))
        repeating = max(first, bisect_left(self._totals, behind - self._budget + self._overlap))
        headings = indices_from(self._strong, bare, min(last, repeating - 1))
        gaps = [index for index in headings if self._worth[index] >= HEADING]
        gaps += self._candidates(start, repeating, last, ideal=ideal)
        if not gaps and self._worth[full] < WORD:
            gaps = list(range(repeating, last + 1))
        return self._best(start, gaps, ideal=ideal) if gaps else None

    def next_start(self, start: int, end: int, before: int) -> int:
        """Where the chunk after `start..end` begins; `before` is the end of the one before it."""
        if end >= self._size or self._worth[end] >= HEADING:
            return end
        first = max(bisect_left(self._totals, self._totals[end] - self._room(end)), start + 1)
        first = max(first, before)
        strong = indices_from(self._strong, first, end - 1)
        headings = [index for index in strong if self._worth[index] >= HEADING]
        if headings:
            return headings[-1]
        sentences = (index for index in strong if self._worth[index] >= SENTENCE)
        words = (index for index in range(first, end) if self._worth[index] >= WORD)
        return next(sentences, next(words, end))

    def _room(self, end: int) -> int:
        """Tokens of overlap that leave room for what may not be cut behind `end`."""
        following = end + 1
        # What is over the budget is found to be so without reading on: a text may be one word.
        last = min(self._index(self._totals[end] + self._budget) + 1, self._size)
        while following < last and self._worth[following] < WORD:
            following += 1
        needed = self._totals[following] - self._totals[end]
        if needed > self._budget:
            needed = self._totals[end + 1] - self._totals[end]
        return max(0, min(self._overlap, self._budget - needed))

    def _candidates(self, start: int, first: int, last: int, *, ideal: float) -> list[int]:
        """Gaps in `first..last` that can be the best: the strong, and the word at the ideal."""
        if first > last:
            return []
        nearest = min(max(self._index(self._totals[start] + ideal), first), last)
        words = (k for k in range(nearest, first - 1, -1) if self._worth[k] >= WORD)
        return [*indices_from(self._strong, first, last), *islice(words, 1)]

    def _best(self, start: int, gaps: Iterable[int], *, ideal: float) -> int:
        """The gap with the greatest worth and fullness; of equals the last."""

        def value(index: int) -> tuple[float, int]:
            size = self._totals[index] - self._totals[start]
            return self._worth[index] + 1 - abs(size - ideal) / (ideal or 1), index

        return max(gaps, key=value)

    def _index(self, total: float) -> int:
        """The last gap before which there are at most `total` tokens."""
        return bisect_right(self._totals, total) - 1

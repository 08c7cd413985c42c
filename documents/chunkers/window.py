"""A window of some sentences that slides over the text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from documents.chunkers.atoms import Atoms
from documents.chunkers.base import Span
from documents.chunkers.measure import Measure
from documents.chunkers.packing import Chunk
from documents.chunkers.sentences import sentences
from documents.chunkers.splitting import Budget, split_document
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class WindowChunker:
    """Each chunk has `size` sentences, if they fit, and begins `step` behind the one before.

    `step` is at least half of `size`, so that only neighbours overlap.
    """

    measure: Measure
    tokens: int
    size: int
    step: int

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(
            document,
            measure=self.measure,
            budget=Budget(self.tokens, 0),
            arrange=self._slide,
            try_whole=False,
        )

    def _slide(
        self, atoms: Atoms, worth: Sequence[float], budget: int, overlap: int
    ) -> Iterator[Chunk]:
        units = sentences(atoms, worth, budget)
        first = before = 0
        while first < len(units):
            last = self._reach(atoms, units, first, budget)
            yield units[first][0], units[last - 1][1]
            if last == len(units):
                return
            first, before = max(before, min(first + self.step, last)), last
            while self._reach(atoms, units, first, budget) <= before:
                first += 1

    def _reach(self, atoms: Atoms, units: Sequence[Chunk], first: int, budget: int) -> int:
        """Behind the last sentence of the window that begins with `first`."""
        start = units[first][0]
        last = first + 1
        while (
            last < min(first + self.size, len(units))
            and atoms.tokens(start, units[last][1]) <= budget
        ):
            last += 1
        return last

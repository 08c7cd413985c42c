"""Cuts where the meaning changes: where neighbouring sentences are far apart for a model."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from documents.chunkers.atoms import Atoms
from documents.chunkers.base import Embed, Span
from documents.chunkers.measure import Measure
from documents.chunkers.packing import Chunk
from documents.chunkers.sentences import sentences
from documents.chunkers.splitting import Budget, extent, fitting
from documents.chunkers.structure import Structure
from documents.chunkers.windows import Window, windows
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class SemanticChunker:
    """Compares the `group` sentences before each gap with the `group` behind it.

    Of the distances of a text the greatest are cuts, those above its `percentile`, unless a piece
    would have fewer than `min_tokens`. Pieces above the budget are cut further as by `recursive`.
    Every sentence is embedded `group` times, besides the chunks themselves.
    """

    measure: Measure
    budget: Budget
    min_tokens: int
    group: int
    percentile: int
    embed: Embed

    def split(self, document: ParsedDocument) -> list[Span]:
        structure = Structure(document)
        return [
            structure.span(*found)
            for window in windows(document, measure=self.measure, budget=self.budget.tokens)
            for found in self._within(window)
        ]

    def _within(self, window: Window) -> Iterator[tuple[int, int, int]]:
        worth = window.worth(self.budget.tokens)
        units = sentences(window.atoms, worth, self.budget.tokens)
        for first, last in pairwise(self._edges(window, units)):
            part = window.atoms.part(first, last)
            pieces = fitting(window.text, part, worth[first:last], self.measure, self.budget)
            yield from (extent(part, piece) for piece in pieces)

    def _edges(self, window: Window, units: Sequence[Chunk]) -> list[int]:
        """Atoms at which pieces begin, and the end."""
        atoms, edges = window.atoms, [0, len(window.atoms)]
        if len(units) < 2 or atoms.tokens(0, len(atoms)) < 2 * self.min_tokens:
            return edges
        distances = self._distances(window, units)
        least = np.percentile(distances, self.percentile)
        # A stable sort: of equal distances the first is taken.
        for index in np.argsort(-distances, kind="stable"):
            if distances[index] > least:
                self._cut(atoms, edges, units[index + 1][0])
        return edges

    def _cut(self, atoms: Atoms, edges: list[int], gap: int) -> None:
        place = bisect_left(edges, gap)
        sizes = atoms.tokens(edges[place - 1], gap), atoms.tokens(gap, edges[place])
        if min(sizes) >= self.min_tokens:
            insort(edges, gap)

    def _distances(self, window: Window, units: Sequence[Chunk]) -> NDArray[np.float64]:
        """Cosine distance over each gap between two sentences, shape (len(units) - 1,)."""
        sides = [
            (
                (units[max(0, gap - self.group)][0], units[gap - 1][1]),
                (units[gap][0], units[min(len(units), gap + self.group) - 1][1]),
            )
            for gap in range(1, len(units))
        ]
        ranges = {
            side: index for index, side in enumerate(dict.fromkeys(chain.from_iterable(sides)))
        }
        texts = [_text(window, first, last) for first, last in ranges]
        vectors = np.asarray(self.embed(texts), dtype=np.float64)
        left = vectors[[ranges[before] for before, _ in sides]]
        right = vectors[[ranges[behind] for _, behind in sides]]
        # A vector that is not finite tells nothing: no cut there.
        distances = 1 - (left * right).sum(axis=1, dtype=np.float64)
        return np.where(np.isfinite(distances), distances, 0.0)


def _text(window: Window, first: int, last: int) -> str:
    return window.text[window.atoms.starts[first] : window.atoms.ends[last - 1]]

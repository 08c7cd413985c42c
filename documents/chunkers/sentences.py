"""The sentences of a window, as ranges of atoms."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from documents.chunkers.atoms import Atoms
from documents.chunkers.boundaries import SENTENCE
from documents.chunkers.packing import Chunk, pack


def sentences(atoms: Atoms, worth: Sequence[float], budget: int) -> list[Chunk]:
    """In order and without gaps; a heading is part of the sentence behind it. One that has more
    tokens than `budget` is cut."""
    starts = [0, *(gap for gap in range(1, len(atoms)) if worth[gap] >= SENTENCE), len(atoms)]
    return [
        piece
        for first, last in pairwise(starts)
        for piece in _within(atoms, worth, first, last, budget)
    ]


def _within(
    atoms: Atoms, worth: Sequence[float], first: int, last: int, budget: int
) -> Iterator[Chunk]:
    if first == last or atoms.tokens(first, last) <= budget:
        yield from [(first, last)] * (first < last)
        return
    for start, end in pack(atoms.part(first, last), worth[first:last], budget, 0):
        yield first + start, first + end

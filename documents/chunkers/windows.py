"""Long texts part by part, so that memory does not grow with them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.graphemes import is_edge
from documents.chunkers.atoms import Atoms, Extent, atomise
from documents.chunkers.boundaries import (
    keep_blocks_whole,
    keep_headings_with_text,
    natural_worth,
)
from documents.chunkers.measure import Measure
from documents.chunkers.structure import HeadingLine, heading_lines
from documents.parsers import ParsedDocument

#: Characters of a window, about.
WINDOW = 500_000


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a text as atoms, with what in it is to be kept together."""

    text: str
    atoms: Atoms
    headings: Sequence[HeadingLine] = ()
    blocks: Sequence[Extent] = ()

    def worth(self, budget: int) -> list[float]:
        """How good the gap before each atom is to cut at, for chunks of `budget` tokens."""
        worth = natural_worth(self.text, self.atoms)
        keep_blocks_whole(worth, self.text, self.atoms, self.blocks, budget=budget)
        keep_headings_with_text(worth, self.atoms, self.headings)
        return worth


def windows(
    document: ParsedDocument, *, measure: Measure, budget: int, blocks: Sequence[Extent] = ()
) -> Iterator[Window]:
    """The document's windows in order; no atom has more tokens than `budget` if that can be."""
    headings = heading_lines(document)
    for start, end in _extents(document.text, blocks, headings):
        yield Window(
            text=document.text,
            atoms=atomise(document.text, (start, end), measure=measure, budget=budget),
            headings=headings[_until(headings, start) : _until(headings, end)],
            blocks=[block for block in blocks if start <= block[0] and block[1] <= end],
        )


def _extents(
    text: str, blocks: Sequence[Extent], headings: Sequence[HeadingLine]
) -> Iterator[Extent]:
    start = 0
    while len(text) - start > WINDOW:
        end = _end(text, start, start + WINDOW)
        inside = next((block for block in blocks if block[0] < end < block[1]), None)
        if inside and inside[0] > start:
            end = inside[0]
        end = _before_headings(text, start, end, headings)
        yield start, end
        start = end
    yield start, len(text)


def _end(text: str, start: int, end: int) -> int:
    """Behind the last paragraph, else line, else word, else anywhere outside a grapheme."""
    for separator in ("\n\n", "\n", " "):
        found = text.rfind(separator, start, end)
        if found > start:
            return found
    edges = (at for at in range(end, start, -1) if is_edge(text, at, start))
    return next(edges, end)


def _before_headings(text: str, start: int, end: int, headings: Sequence[HeadingLine]) -> int:
    """`end`, or where the headings begin that would be torn from their text by it."""
    for (first, last), _ in reversed(headings[: _until(headings, end)]):
        if first <= start or text[last:end].strip():
            break
        end = first
    return end


def _until(headings: Sequence[HeadingLine], offset: int) -> int:
    """How many headings begin before `offset`."""
    return bisect_left(headings, offset, key=lambda line: line[0][0])

"""From a document to spans: atomise, weigh the gaps, pack, check the counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from documents.chunkers.atoms import Atoms, Extent, atomise, has_odd_space
from documents.chunkers.base import Span
from documents.chunkers.boundaries import (
    keep_blocks_whole,
    keep_headings_with_text,
    natural_worth,
)
from documents.chunkers.graphemes import may_join
from documents.chunkers.measure import Measure
from documents.chunkers.packing import pack
from documents.chunkers.structure import Structure, heading_lines
from documents.parsers import ParsedDocument

#: Longer texts are cut window by window, so that memory does not grow with them.
WINDOW = 500_000
#: A text with more characters a token than this is not tried as one chunk.
_CHARACTERS_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Budget:
    """Most tokens of a chunk, and of what it repeats from the one before."""

    tokens: int
    overlap: int


def split_document(
    document: ParsedDocument, *, measure: Measure, budget: Budget, blocks: Sequence[Extent] = ()
) -> list[Span]:
    """Spans of the document; `blocks` are extents that are kept whole where they fit."""
    structure = Structure(document)
    whole = _as_one(document.text, measure, budget.tokens)
    extents = [whole] if whole else _cut(document, measure, budget, blocks)
    return [
        Span(start, end, count, structure.heading_path(start), structure.page(start))
        for start, end, count in extents
    ]


def _as_one(text: str, measure: Measure, budget: int) -> tuple[int, int, int] | None:
    """Most documents are short: they need no cutting, only counting."""
    if len(text) > budget * _CHARACTERS_PER_TOKEN or not (stripped := text.strip()):
        return None
    (count,) = _count_texts([stripped], measure)
    start = len(text) - len(text.lstrip())
    return (start, start + len(stripped), count) if count <= budget else None


def _count_texts(texts: list[str], measure: Measure) -> list[int]:
    if not measure.additive:
        return measure.count_all(texts)
    return [
        measure.count_all([text])[0]
        if has_odd_space(text)
        else sum(measure.count_words(text.split()))
        for text in texts
    ]


def _cut(
    document: ParsedDocument, measure: Measure, budget: Budget, blocks: Sequence[Extent]
) -> Iterator[tuple[int, int, int]]:
    text, headings = document.text, heading_lines(document)
    for window in _windows(text, blocks):
        atoms = atomise(text, window, measure=measure, budget=budget.tokens)
        worth = natural_worth(text, atoms)
        keep_blocks_whole(worth, text, atoms, _within(blocks, window), budget=budget.tokens)
        keep_headings_with_text(
            worth, atoms, [line for line in headings if window[0] <= line[0][0] < window[1]]
        )
        yield from _fitting(text, atoms, worth, measure, budget)


def _fitting(
    text: str, atoms: Atoms, worth: Sequence[float], measure: Measure, budget: Budget
) -> list[tuple[int, int, int]]:
    """Packed by the sums of the atoms; where these only estimate, packed tighter until it fits."""
    aim, overlap = budget.tokens, budget.overlap
    while True:
        chunks = list(pack(atoms, worth, budget=aim, overlap=overlap))
        extents = [(atoms.starts[first], atoms.ends[last - 1]) for first, last in chunks]
        if atoms.additive:
            counts = [atoms.tokens(first, last) for first, last in chunks]
        else:
            counts = measure.count_all([text[start:end] for start, end in extents])
        most = max(counts, default=0)
        if most <= budget.tokens or aim == 0:
            return [(*extent, count) for extent, count in zip(extents, counts, strict=True)]
        aim = min(aim - 1, aim * budget.tokens // most)
        overlap = min(overlap, aim // 2)


def _windows(text: str, blocks: Sequence[Extent]) -> Iterator[Extent]:
    start = 0
    while len(text) - start > WINDOW:
        end = _window_end(text, start, start + WINDOW)
        inside = next((block for block in blocks if block[0] < end < block[1]), None)
        if inside and inside[0] > start:
            end = inside[0]
        yield start, end
        start = end
    yield start, len(text)


def _window_end(text: str, start: int, end: int) -> int:
    """Behind the last paragraph, else line, else word, else anywhere outside a grapheme."""
    for separator in ("\n\n", "\n", " "):
        found = text.rfind(separator, start, end)
        if found > start:
            return found
    while may_join(text[end - 1], text[end]) and end > start + 1:
        end -= 1
    return end


def _within(extents: Sequence[Extent], window: Extent) -> list[Extent]:
    return [extent for extent in extents if window[0] <= extent[0] and extent[1] <= window[1]]

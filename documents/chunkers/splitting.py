"""From a document to spans: atomise, weigh the gaps, arrange, check the counts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from documents.chunkers.atoms import Atoms, Extent, has_odd_space
from documents.chunkers.base import Span
from documents.chunkers.measure import Measure
from documents.chunkers.packing import Chunk, pack
from documents.chunkers.structure import Structure
from documents.chunkers.windows import Window, windows
from documents.parsers import ParsedDocument

#: A text with more characters a token than this is not tried as one chunk.
_CHARACTERS_PER_TOKEN = 16

#: Atoms, worth of their gaps, budget and overlap in tokens → ranges of atoms.
Arrange = Callable[[Atoms, Sequence[float], int, int], Iterable[Chunk]]
Weigh = Callable[[Window, int], list[float]]


@dataclass(frozen=True, slots=True)
class Budget:
    """Most tokens of a chunk, and of what it repeats from the one before."""

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
    measure: Measure,
    budget: Budget,
    blocks: Sequence[Extent] = (),
    weigh: Weigh = Window.worth,
    arrange: Arrange = pack,
    try_whole: bool = True,
) -> list[Span]:
    """Spans of the document; `blocks` are extents that are kept whole where they fit.

    `weigh` says how good each gap is to cut at, `arrange` which gaps are taken. A text that fits
    the budget is one chunk if `try_whole`.
    """
    structure = Structure(document)
    whole = _as_one(document.text, measure, budget.tokens) if try_whole else None
    if whole is not None:
        return [structure.span(*whole)]
    return [
        structure.span(*extent(window.atoms, piece))
        for window in windows(document, measure=measure, budget=budget.tokens, blocks=blocks)
        for piece in fitting(
            window.text, window.atoms, weigh(window, budget.tokens), measure, budget, arrange
        )
    ]


def _as_one(text: str, measure: Measure, budget: int) -> tuple[int, int, int] | None:
    """Start, end and tokens of the whole text if it fits: most need no cutting, only counting."""
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


def fitting(
    text: str,
    atoms: Atoms,
    worth: Sequence[float],
    measure: Measure,
    budget: Budget,
    arrange: Arrange = pack,
) -> list[Piece]:
    """Arranged by the sums of the atoms; where these only estimate, tighter until it fits."""
    aim, overlap = budget.tokens, budget.overlap
    while True:
        pieces = list(_counted(text, atoms, arrange(atoms, worth, aim, overlap), measure))
        most = max((piece.tokens for piece in pieces), default=0)
        if most <= budget.tokens or aim == 0:
            return pieces
        aim = min(aim - 1, aim * budget.tokens // most)
        overlap = min(overlap, aim // 2)


def _counted(text: str, atoms: Atoms, chunks: Iterable[Chunk], measure: Measure) -> Iterator[Piece]:
    chunks = list(chunks)
    if atoms.additive:
        counts = [atoms.tokens(first, last) for first, last in chunks]
    else:
        extents = [(atoms.starts[first], atoms.ends[last - 1]) for first, last in chunks]
        counts = measure.count_all([text[start:end] for start, end in extents])
    for (first, last), count in zip(chunks, counts, strict=True):
        yield Piece(first, last, count)


def extent(atoms: Atoms, piece: Piece) -> tuple[int, int, int]:
    """Start, end and tokens of a piece."""
    return atoms.starts[piece.first], atoms.ends[piece.last - 1], piece.tokens

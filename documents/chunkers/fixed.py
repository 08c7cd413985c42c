"""Chunks of one size, whatever the text is like."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from documents.chunkers.atoms import Atoms
from documents.chunkers.base import Span
from documents.chunkers.boundaries import INSIDE_WORD, WORD
from documents.chunkers.measure import Measure
from documents.chunkers.packing import Chunk, pack
from documents.chunkers.splitting import Budget, split_document
from documents.chunkers.windows import Window
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class FixedChunker:
    """As many words as fit, every time; the last chunk has what is left."""

    measure: Measure
    budget: Budget

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(
            document, measure=self.measure, budget=self.budget, weigh=_alike, arrange=_filled
        )


def _alike(window: Window, budget: int) -> list[float]:
    atoms = window.atoms
    return [INSIDE_WORD if k and atoms.is_inside_word(k) else WORD for k in range(len(atoms))]


def _filled(atoms: Atoms, worth: Sequence[float], budget: int, overlap: int) -> Iterator[Chunk]:
    return pack(atoms, worth, budget, overlap, share=False)

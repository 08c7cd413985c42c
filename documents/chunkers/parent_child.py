"""Small chunks to be searched, that know the larger passage they are a part of."""

from collections.abc import Iterator
from dataclasses import dataclass

from documents.chunkers.atoms import Extent
from documents.chunkers.base import Span
from documents.chunkers.markdown import whole_blocks
from documents.chunkers.measure import Measure
from documents.chunkers.splitting import Budget, extent, fitting
from documents.chunkers.structure import Structure
from documents.chunkers.windows import Window, windows
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class ParentChildChunker:
    """Cuts into parents of at most `parent_tokens`, and each of these into children.

    Parents do not overlap, and their text is that of their children. No model reads a parent as
    one, so that it may be longer than what a model reads.
    """

    measure: Measure
    budget: Budget
    parent_tokens: int

    def split(self, document: ParsedDocument) -> list[Span]:
        structure = Structure(document)
        blocks = whole_blocks(document.text) if document.rendering == "markdown" else []
        return [
            structure.span(*child, parent)
            for parent, children in enumerate(self._parents(document, blocks))
            for child in children
        ]

    def _parents(
        self, document: ParsedDocument, blocks: list[Extent]
    ) -> Iterator[list[tuple[int, int, int]]]:
        for window in windows(
            document, measure=self.measure, budget=self.budget.tokens, blocks=blocks
        ):
            yield from self._within(window)

    def _within(self, window: Window) -> Iterator[list[tuple[int, int, int]]]:
        text, atoms = window.text, window.atoms
        worth = window.worth(self.budget.tokens)
        parents = fitting(
            text,
            atoms,
            window.worth(self.parent_tokens),
            self.measure,
            Budget(self.parent_tokens, 0),
        )
        for parent in parents:
            part = atoms.part(parent.first, parent.last)
            children = fitting(
                text, part, worth[parent.first : parent.last], self.measure, self.budget
            )
            yield [extent(part, child) for child in children]

"""The default: cuts at headings, else paragraphs, else sentences, else words."""

from dataclasses import dataclass

from documents.chunkers.base import Span
from documents.chunkers.measure import Measure
from documents.chunkers.splitting import Budget, split_document
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class RecursiveChunker:
    """For any text."""

    measure: Measure
    budget: Budget

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(document, measure=self.measure, budget=self.budget)

"""Whole sentences, or whole paragraphs, as many as fit."""

from dataclasses import dataclass

from documents.chunkers.base import Span
from documents.chunkers.boundaries import INSIDE_WORD, PARAGRAPH, SENTENCE
from documents.chunkers.measure import Measure
from documents.chunkers.splitting import Budget, split_document
from documents.chunkers.windows import Window
from documents.parsers import ParsedDocument

#: More than fullness can outweigh.
_STEP = 2.0


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Cuts a sentence only where it does not fit a chunk."""

    measure: Measure
    budget: Budget

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(
            document, measure=self.measure, budget=self.budget, weigh=_between_sentences
        )


@dataclass(frozen=True, slots=True)
class ParagraphChunker:
    """Cuts a paragraph only where it does not fit a chunk, and then between sentences."""

    measure: Measure
    budget: Budget

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(
            document, measure=self.measure, budget=self.budget, weigh=_between_paragraphs
        )


def _between_sentences(window: Window, budget: int) -> list[float]:
    # Ends of sentences and of paragraphs are worth the same here, headings more.
    return [
        SENTENCE if SENTENCE <= value <= PARAGRAPH else value
        for value in _only(SENTENCE, window.worth(budget))
    ]


def _between_paragraphs(window: Window, budget: int) -> list[float]:
    return _only(PARAGRAPH, window.worth(budget))


def _only(least: float, worth: list[float]) -> list[float]:
    """Gaps of less worth are taken where there is no other."""
    return [value - _STEP if INSIDE_WORD <= value < least else value for value in worth]

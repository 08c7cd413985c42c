"""Like recursive, and keeps code blocks and tables of Markdown whole where they fit."""

from dataclasses import dataclass

from documents.chunkers.atoms import Extent
from documents.chunkers.base import Span
from documents.chunkers.measure import Measure
from documents.chunkers.splitting import Budget, split_document
from documents.parsers import ParsedDocument
from documents.parsers.markdown import line_offsets, markdown_blocks

_WHOLE = frozenset({"fence", "code_block", "table_open", "html_block"})


@dataclass(frozen=True, slots=True)
class MarkdownChunker:
    """For text whose rendering is Markdown, whatever the file was."""

    measure: Measure
    budget: Budget

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(
            document,
            measure=self.measure,
            budget=self.budget,
            blocks=whole_blocks(document.text),
        )


def whole_blocks(text: str) -> list[Extent]:
    """Extents of code blocks and tables, in order, those inside lists and quotations too."""
    lines = line_offsets(text)
    return [
        (lines[token.map[0]], lines[token.map[1]])
        for token in markdown_blocks(text)
        if token.type in _WHOLE and token.map
    ]

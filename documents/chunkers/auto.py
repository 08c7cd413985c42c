"""Chooses by what the text is."""

from dataclasses import dataclass

from documents.chunkers.base import Chunker, Span
from documents.chunkers.code import is_code
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class AutoChunker:
    """Markdown as Markdown, source code as code, everything else as plain text."""

    plain: Chunker
    markdown: Chunker
    code: Chunker

    def split(self, document: ParsedDocument) -> list[Span]:
        return self._chunker(document).split(document)

    def _chunker(self, document: ParsedDocument) -> Chunker:
        if is_code(document):
            return self.code
        return self.markdown if document.rendering == "markdown" else self.plain

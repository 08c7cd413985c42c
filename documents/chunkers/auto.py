"""Chooses by what the text is."""

from dataclasses import dataclass

from documents.chunkers.base import Chunker, Span
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class AutoChunker:
    """Markdown as Markdown, everything else as plain text."""

    plain: Chunker
    markdown: Chunker

    def split(self, document: ParsedDocument) -> list[Span]:
        chunker = self.markdown if document.rendering == "markdown" else self.plain
        return chunker.split(document)

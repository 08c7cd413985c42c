"""One chunk a document, for texts that are passages already."""

from dataclasses import dataclass

from documents.chunkers.base import ChunkerError, Span
from documents.chunkers.measure import Measure
from documents.chunkers.structure import Structure
from documents.parsers import ParsedDocument


@dataclass(frozen=True, slots=True)
class WholeChunker:
    """Refuses a text that the model (`limit` tokens) could not read at once."""

    measure: Measure
    limit: int

    def split(self, document: ParsedDocument) -> list[Span]:
        text = document.text.strip()
        if not text:
            return []
        (count,) = self.measure.count_all([text])
        if count > self.limit:
            raise ChunkerError(
                f"The document has {count:,} tokens and the model reads {self.limit:,} at once. "
                "Choose the chunker “recursive” for its collection."
            )
        start = len(document.text) - len(document.text.lstrip())
        structure = Structure(document)
        return [structure.span(start, start + len(text), count)]

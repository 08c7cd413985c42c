"""Plain text, and every text-like format without a parser of its own."""

from documents.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from documents.parsers.metadata import readable_title
from documents.parsers.normalise import decode_text


class PlainParser:
    """The text is the document."""

    media_types: tuple[str, ...] = ("text/plain",)
    suffixes: tuple[str, ...] = (".txt", ".text", ".log")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        text = decode_text(data)
        if not text or text.isspace():
            raise ParseError("empty", "The file has no text. Check that it was saved.")
        return ParsedDocument(text=text, media_type="text/plain", title=readable_title(name))

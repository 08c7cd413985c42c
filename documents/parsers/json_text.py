"""JSON and JSON Lines as readable text: records apart, titles as headings."""

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from documents.parsers.json_leaves import leaves
from documents.parsers.json_records import Record, records
from documents.parsers.metadata import readable_title
from documents.parsers.normalise import decode_text

#: Beyond that a record is a row of data, and naming its title once is enough.
MAX_HEADINGS = 20_000
_BETWEEN = "\n\n"


class JsonParser:
    """One value, a list of records, or a record on each line."""

    def __init__(self, media_type: str, suffixes: tuple[str, ...]) -> None:
        self.media_types: tuple[str, ...] = (media_type,)
        self.suffixes: tuple[str, ...] = suffixes

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        source = decode_text(data)
        if not source.strip():
            raise ParseError("empty", "The file has no text. Check that it was saved.")
        written = _Written(limits.max_characters)
        for record in records(leaves(source)):
            written.add(record)
        text = written.text()
        if not text:
            raise ParseError("no_text", "The JSON holds nothing but empty strings.")
        if text in {"[]", "{}"}:
            raise ParseError("empty", f"The JSON is empty, {text}. Check that it was saved.")
        return ParsedDocument(
            text=text,
            media_type=self.media_types[0],
            title=written.only_title() or readable_title(name),
            headings=written.headings(),
            metadata={"records": written.count},
        )


JSON_PARSERS = (
    JsonParser("application/json", (".json", ".geojson")),
    JsonParser("application/x-ndjson", (".jsonl", ".ndjson")),
)


class _Written:
    """The text so far, and where each record with a title begins."""

    def __init__(self, max_characters: int) -> None:
        self.count = 0
        self._max = max_characters
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._number = -1

    def add(self, record: Record) -> None:
        if not record.text:
            return
        offset = self._length + len(_BETWEEN) * bool(self._parts)
        if record.number != self._number:
            self.count += 1
            self._number = record.number
            self._note(record, offset)
        self._parts.append(record.text)
        self._length = offset + len(record.text)
        if self._length > self._max:
            raise ParseError(
                "too_large",
                f"Written out with its names the JSON has more than {self._max:,} characters."
                " Split the file.",
            )

    def text(self) -> str:
        return _BETWEEN.join(self._parts)

    def only_title(self) -> str:
        return self._headings[0].title if self.count == 1 and self._headings else ""

    def headings(self) -> tuple[Heading, ...]:
        """None for a single record, whose title is the document's."""
        fit = self.count > 1 and len(self._headings) <= MAX_HEADINGS
        return tuple(self._headings) if fit else ()

    def _note(self, record: Record, offset: int) -> None:
        """A record without a title ends what the title above it speaks of."""
        if record.title or self._headings:
            title = record.title or f"Record {record.number + 1}"
            self._headings.append(Heading(offset, 1, title))

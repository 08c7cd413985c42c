"""CSV and TSV as tables whose column names stand in every part."""

import csv
import io
from collections.abc import Iterator
from itertools import chain, islice

from documents.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from documents.parsers.csv_dialect import Dialect, guess_dialect, has_header
from documents.parsers.metadata import readable_title
from documents.parsers.normalise import decode_text
from documents.parsers.table_writer import table_blocks

_COLUMNS_LISTED = 200
_NAME_CHARACTERS = 200
_SAMPLE_ROWS = 100
_TABBED = (".tsv", ".tab")


class CsvParser:
    """Delimiter and header are found out; what stands above the table stays above it."""

    media_types: tuple[str, ...] = ("text/csv",)
    suffixes: tuple[str, ...] = (".csv", *_TABBED)

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        text = decode_text(data).strip("\n")
        if not text.strip():
            raise ParseError("empty", "The file has no text. Check that it was saved.")
        csv.field_size_limit(limits.max_characters)
        dialect = guess_dialect(text, prefers_tab=name.lower().endswith(_TABBED))
        text = text[dialect.start :]
        try:
            table = _Table(_reader(text, dialect, strict=True), dialect)
            written = _written(table, limits)
        except csv.Error:
            table = _Table(_reader(text, dialect, strict=False), dialect)
            written = _written(table, limits)
        if not written:
            raise ParseError("no_text", "All cells are empty. Check that the table was saved.")
        return ParsedDocument(
            text=written,
            media_type="text/csv",
            title=readable_title(name),
            rendering="markdown",
            metadata={"columns": _listed(table.header), "rows": table.count},
        )


class _Table:
    """What stands above the table, its column names, and the other rows, which are counted."""

    def __init__(self, rows: Iterator[list[str]], dialect: Dialect) -> None:
        sample = list(islice(rows, _SAMPLE_ROWS))
        self.above: list[str] = []
        while len(sample) > 1 and dialect.width > 1 and len(_filled(sample[0])) == 1:
            self.above += _filled(sample.pop(0))
        self.header = sample.pop(0) if has_header(sample) else []
        self.count = 0
        self._rows = chain(sample, rows)

    def rows(self) -> Iterator[list[str]]:
        for row in self._rows:
            self.count += 1
            yield row


def _reader(text: str, dialect: Dialect, *, strict: bool) -> Iterator[list[str]]:
    """Rows with a filled cell. `csv.Error` if strict and a quotation mark is not where it may be.

    A mark that is never closed would make the rest of the file one cell: then none means anything.
    """
    is_closed = strict or text.count('"') % 2 == 0
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.delimiter,
        skipinitialspace=True,
        strict=strict,
        quoting=csv.QUOTE_MINIMAL if is_closed else csv.QUOTE_NONE,
    )
    return (row for row in reader if _filled(row))


def _written(table: _Table, limits: Limits) -> str:
    parts, length = [], 0
    for part in chain(table.above, table_blocks(table.header, table.rows())):
        length += len(part) + 2
        if length > limits.max_characters:
            raise ParseError(
                "too_large",
                f"Written out with its column names the table has more than"
                f" {limits.max_characters:,} characters. Split the file.",
            )
        parts.append(part)
    return "\n\n".join(parts)


def _filled(row: list[str]) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]


def _listed(header: list[str]) -> list[str]:
    names = (" ".join(name.split())[:_NAME_CHARACTERS] for name in header[:_COLUMNS_LISTED])
    return [name for name in names if name]

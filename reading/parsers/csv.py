"""CSV and TSV as tables whose column names are repeated in every block. Delimiter and header are
guessed."""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice, pairwise

from reading.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from reading.parsers.column_types import ColumnTypes
from reading.parsers.normalise import decode_nonblank, readable_title
from reading.parsers.table_writer import from_row, row_pages, table_blocks

#: The first one wins where several fit alike.
_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 64 * 1024
_DIALECT_SAMPLE_ROWS = 200
#: The first line that Excel understands.
_SEP_LINE = re.compile(r"sep=(.)\n")
#: Figures, dates and times as they are written anywhere.
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d.,'’\s:/-]*[%)]?(?:[eE][-+]?\d+)?\s?[$€£¥]?|[-+]?\.\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")


def guess_dialect(text: str, *, prefers_tab: bool = False) -> tuple[str, int, int]:
    """The delimiter that splits most rows of the first 64 kB into equally many columns, how many
    these are, and where the first row begins."""
    declared = _SEP_LINE.match(text)
    if declared:
        start = declared.end()
        return declared[1], _column_fit(text[start:], declared[1])[1], start
    candidates = sorted(_DELIMITERS, key=lambda mark: mark != "\t") if prefers_tab else _DELIMITERS
    fits = {delimiter: _column_fit(text, delimiter) for delimiter in candidates}
    best = max(candidates, key=lambda delimiter: fits[delimiter])
    return best if fits[best][1] > 1 else candidates[0], fits[best][1], 0


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: nothing in it looks like a value.

    Names are filled, distinct and not numbers; consecutive years count as names too.
    """
    if not rows:
        return False
    names = [cell.strip() for cell in rows[0]]
    filled = [name for name in names if name]
    figures = [name for name in filled if _NUMBER.fullmatch(name)]
    if len(set(filled)) < len(filled) or len(filled) * 2 < len(names):
        return False
    if not figures:
        return True
    if not 2 <= len(figures) < len(filled) or not all(map(_YEAR.fullmatch, figures)):
        return False
    steps = {int(later) - int(earlier) for earlier, later in pairwise(figures)}
    return len(steps) == 1


def _column_fit(text: str, delimiter: str) -> tuple[float, int]:
    """The share of rows with the most common width, 0 where that is one column, and that width."""
    sample = text[:_SAMPLE_BYTES]
    if len(text) > _SAMPLE_BYTES:
        sample = sample[: sample.rfind("\n") + 1] or sample
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=True)
    widths = Counter(len(row) for row in islice(reader, _DIALECT_SAMPLE_ROWS) if len(row) > 0)
    if not widths:
        return 0.0, 1
    width, rows = max(widths.items(), key=lambda pair: (pair[1], pair[0]))
    return (rows / widths.total() if width > 1 else 0.0), width


_COLUMNS_LISTED = 200
_NAME_CHARACTERS = 200
_HEADER_SAMPLE_ROWS = 100
_TAB_SUFFIXES = (".tsv", ".tab")


def parse_csv(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Delimiter and header are detected; text above the table stays above it."""
    text = decode_nonblank(data).strip("\n")
    csv.field_size_limit(limits.max_characters)
    delimiter, width, start = guess_dialect(text, prefers_tab=name.lower().endswith(_TAB_SUFFIXES))
    text = text[start:]
    try:
        written, header, rows, first = _table(text, delimiter, width, limits, strict=True)
    except csv.Error:
        written, header, rows, first = _table(text, delimiter, width, limits, strict=False)
    if not written:
        raise ParseError("no_text", "All cells are empty. Check that the table was saved.")
    columns = (" ".join(name.split())[:_NAME_CHARACTERS] for name in header[:_COLUMNS_LISTED])
    return ParsedDocument(
        text=written,
        media_type="text/csv",
        title=readable_title(name),
        rendering="markdown",
        pages=tuple(row_pages(written, first)),
        metadata={"columns": [name for name in columns if name], "rows": rows.count}
        | ({"types": rows.types(header[:_COLUMNS_LISTED])} if header else {}),
    )


def _table(
    text: str, delimiter: str, width: int, limits: Limits, *, strict: bool
) -> tuple[str, list[str], ColumnTypes, int]:
    """The table with the text above it, its column names, its other rows' types, and the number of
    the first of them: as a spreadsheet counts, but without blank rows.

    Raises `csv.Error` if strict and a quotation mark is misplaced. An unclosed quotation mark would
    make the rest of the file one cell; then quotes are ignored.
    """
    is_closed = strict or text.count('"') % 2 == 0
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        skipinitialspace=True,
        strict=strict,
        quoting=csv.QUOTE_MINIMAL if is_closed else csv.QUOTE_NONE,
    )
    rows = (row for row in reader if _filled(row))
    sample = list(islice(rows, _HEADER_SAMPLE_ROWS))
    above: list[str] = []
    while len(sample) > 1 and width > 1 and len(_filled(sample[0])) == 1:
        above += _filled(sample.pop(0))
    header = sample.pop(0) if has_header(sample) else []
    first = len(above) + bool(header) + 1
    types = ColumnTypes()
    parts, length = [], 0
    blocks = table_blocks(header, map(types.seen, chain(sample, rows)), first_row=first)
    for part in chain(above, [from_row(first)] if above else [], blocks):
        length += len(part) + 2
        limits.check_characters(length, "The table, written out with its column names,")
        parts.append(part)
    return "\n\n".join(parts), header, types, 1 if above else first


def _filled(row: list[str]) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]

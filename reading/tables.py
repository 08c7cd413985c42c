"""The tables in a document's text, as `table_blocks` and authors of Markdown write them: pipe
tables, and rows as lists where they are long. Begin with `tables_of`. Without Django."""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from reading.parsers.column_types import ColumnType, column_type, decimal_mark

#: Rows of a document, and columns of a table, that are kept.
MAX_ROWS, MAX_COLUMNS = 1_000_000, 200
#: Rows from the beginning that types are decided by, and one in so many of the others.
_SAMPLE_ROWS, _SAMPLE_STEP = 1_000, 50

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*$")
_DASHES = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_ROW_MARK = re.compile(r"(From row|Row) \d{1,9}:")
_UNNAMED = re.compile(r"Column (\d{1,5})")
_PIPE = re.compile(r"(?<!\\)\|")
_TOTAL = re.compile(r"(?:grand[ -]?)?totals?|(?:gesamt)?summe|(?:ins)?gesamt|suma|sum")
#: How far a sum may be from that of its rounded parts.
_TOTAL_TOLERANCE = 0.005


@dataclass(slots=True, eq=False)
class ParsedTable:
    """A table: `heading_path` are the headings above it, `start` its offset in the text. `rows`
    reads its rows, `types` what its columns hold."""

    text: str
    start: int
    heading_path: tuple[str, ...]
    names: list[str]
    #: Offsets of the rows' first characters, and of those behind the last, negative for lists.
    starts: "array[int]" = field(default_factory=lambda: array("q"))
    ends: "array[int]" = field(default_factory=lambda: array("q"))
    rows_left_out: int = 0
    columns_left_out: int = 0

    @property
    def name(self) -> str:
        """The sheet, or the heading above the table; empty without."""
        return self.heading_path[-1] if self.heading_path else ""

    def rows(self, step: int = 1, first: int = 0) -> Iterator[list[str]]:
        """The cells of each `step`-th row, as many as columns."""
        width = len(self.names)
        for start, end in islice(zip(self.starts, self.ends, strict=True), first, None, step):
            if end > 0:
                cells = _cells(self.text[start:end])
            else:
                found = dict(_list_cells(self.text[start:-end], self.names))
                cells = [found.get(name, "") for name in self.names]
            if len(cells) != width:
                cells = (cells + [""] * width)[:width]
            yield cells

    def types(self, *, language: str = "") -> list[ColumnType]:
        """What each column holds, by the first thousand rows and each fiftieth of the others; the
        document's `language` (ISO code) settles what they do not."""
        columns: list[list[str]] = [[] for _ in self.names]
        for rows in (islice(self.rows(), _SAMPLE_ROWS), self.rows(_SAMPLE_STEP, _SAMPLE_ROWS)):
            for row in rows:
                for column, cell in zip(columns, row, strict=True):
                    column.append(cell)
        marks = "".join(map(decimal_mark, columns))
        decimal = max(".,", key=marks.count) if marks.count(".") != marks.count(",") else ""
        return [
            column_type(column, name=name, language=language, decimal=decimal)
            for name, column in zip(self.names, columns, strict=True)
        ]

    def leave_out_total(self, types: Sequence[ColumnType]) -> None:
        """Forget the last row if it says the totals of the others, which would count twice."""
        if len(self.starts) < 3:
            return
        last = next(self.rows(first=len(self.starts) - 1))
        label = next((cell for cell in last if cell), "").lower().strip(" :*_")
        if not _TOTAL.fullmatch(label):
            return
        totals = {
            at: total
            for at, (type_, cell) in enumerate(zip(types, last, strict=True))
            if type_.kind == "number" and (total := type_.number(cell)) is not None
        }
        sums = dict.fromkeys(totals, 0.0)
        for row in islice(self.rows(), len(self.starts) - 1):
            for at in totals:
                sums[at] += types[at].number(row[at]) or 0.0
        if any(
            abs(sums[at] - total) <= abs(total) * _TOTAL_TOLERANCE for at, total in totals.items()
        ):
            self.starts.pop()
            self.ends.pop()


def tables_of(text: str, *, max_rows: int = MAX_ROWS) -> list[ParsedTable]:
    """The tables with at least one row, in their order. Blocks of one table, each with the header,
    are joined. Of more than `max_rows` rows in all, and of more than 200 columns, the first are
    kept. Time and memory grow with the text: 16 bytes a row beside it."""
    reader = _Reader(text, max_rows)
    if "|" in text or "\n- " in text:
        reader.read()
    return [table for table in reader.tables if table.starts and any(table.names)]


def row_end(text: str, start: int) -> int:
    """Where the row ends that begins at `start`: a line of a pipe table, or a list of its cells."""
    lines = _lines(text[start:])
    _, first = next(lines, (0, ""))
    end = len(first.rstrip())
    if _ROW_MARK.fullmatch(first.strip()):
        for at, line in lines:
            if line.strip() and not line.startswith(("- ", "  ")):
                break
            end = at + len(line.rstrip()) if line.strip() else end
    return start + end


class _Reader:
    """Goes through the lines of a text once."""

    def __init__(self, text: str, max_rows: int) -> None:
        self.text = text
        self.tables: list[ParsedTable] = []
        self._open: ParsedTable | None = None
        self._header = ""
        self._room = max_rows
        self._headings: list[tuple[int, str]] = []
        self._before_start = 0

    def read(self) -> None:
        fence = ""
        before = ""  # the line above, if it may be a header
        is_body = False  # whether the line above is a header's dashes or a row
        listed = -1  # where the row begins that is written as a list
        for start, line in _lines(self.text):
            stripped = line.strip()
            if fence:
                fence = "" if stripped.startswith(fence) and not stripped.strip(fence[0]) else fence
                continue
            if listed >= 0 and (not stripped or line.startswith(("- ", "  "))):
                self._extend_list(listed, start + len(line.rstrip()), line)
                continue
            listed = -1
            if not stripped:
                is_body, before = False, ""
            elif is_body and "|" in stripped:
                self._add(start, start + len(line.rstrip()))
            elif "|" in before and _DASHES.fullmatch(stripped) and stripped.count("|"):
                self._begin(before, self._before_start)
                is_body = True
            elif mark := _FENCE.match(line):
                fence, self._open = mark[1], None
            elif heading := _HEADING.match(line):
                self._set_heading(len(heading[1]), heading[2])
            elif mark := _ROW_MARK.fullmatch(stripped):
                is_body, before = False, ""
                listed = self._begin_list(start) if mark[1] == "Row" else -1
            else:
                is_body = False
                before, self._before_start = (stripped if "|" in stripped else ""), start
                if not before:
                    self._open = None

    def _set_heading(self, level: int, title: str) -> None:
        self._headings = [each for each in self._headings if each[0] < level] + [(level, title)]
        self._open = None

    def _new(self, start: int, names: list[str]) -> ParsedTable:
        path = tuple(title for _, title in self._headings)
        table = ParsedTable(self.text, start, path, names[:MAX_COLUMNS])
        table.columns_left_out = max(0, len(names) - MAX_COLUMNS)
        self.tables.append(table)
        return table

    def _begin(self, header: str, start: int) -> None:
        """A header: of the open table again, or of another."""
        if self._open is not None and header == self._header:
            return
        names = _cells(header)
        self._header = header
        if self._open is None or not _continues(self._open.names, names):
            self._open = self._new(start, names)
        elif len(names) > len(self._open.names):
            self._open.names = names[:MAX_COLUMNS]

    def _add(self, start: int, end: int) -> None:
        table = self._open
        assert table is not None
        if self._room <= 0:
            table.rows_left_out += 1
            return
        self._room -= 1
        table.starts.append(start)
        table.ends.append(end)

    def _begin_list(self, start: int) -> int:
        if self._open is None:
            self._open, self._header = self._new(start, []), ""
        self._add(start, -start - 1)
        return start

    def _extend_list(self, start: int, end: int, line: str) -> None:
        """One more line of the row at `start`, which may name another column."""
        table = self._open
        if not line.strip() or table is None or not table.starts or table.starts[-1] != start:
            return  # between two lines, or of a row that is left out
        table.ends[-1] = -end
        if line.startswith("- "):
            for name, _ in _list_cells(line, table.names):
                if name not in table.names and len(table.names) < MAX_COLUMNS:
                    table.names.append(name)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, text[start:end]
        start = end + 1


def _cells(line: str) -> list[str]:
    """The cells of a line of a pipe table."""
    line = line.strip()
    line = line[1:] if line.startswith("|") else line
    if "\\" in line:
        parts = _PIPE.split(line)
        if len(parts) > 1 and not parts[-1].strip():
            parts.pop()
        return [part.strip().replace("\\|", "|") for part in parts]
    line = line[:-1] if line.endswith("|") else line
    return [part.strip() for part in line.split("|")]


def _list_cells(text: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and value of each `- name: value` in the text; lines between belong to the value above.
    Of names that contain a colon those that are known, `names`, go before."""
    name, parts = "", list[str]()
    for line in text.split("\n"):
        if not line.startswith("- "):
            if name and line.strip():
                parts.append(line.strip())
            continue
        if name:
            yield name, "\n".join(parts)
        name, _, value = line[2:].partition(": ")
        if value.count(": "):
            name, value = _known_name(line[2:], name, value, names)
        name = name.removesuffix(":")
        parts = [value.strip()]
    if name:
        yield name, "\n".join(parts)


def _known_name(line: str, name: str, value: str, names: Sequence[str]) -> tuple[str, str]:
    if name in names:
        return name, value
    known = max((each for each in names if line.startswith(f"{each}: ")), key=len, default="")
    return (known, line[len(known) + 2 :]) if known else (name, value)


def _continues(known: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a header is that of a table with more or fewer columns without names."""
    shorter, longer = sorted((known, names), key=len)
    return list(longer[: len(shorter)]) == list(shorter) and all(
        _UNNAMED.fullmatch(name) for name in longer[len(shorter) :]
    )

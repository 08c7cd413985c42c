"""Questions that a table answers: by its least or greatest number, such as “which bike is the
cheapest?”, by a row whose cell is named, or by the prices in it. Begin with `answering_rows`.

No sentence says it, and no model that reads row by row can tell: the rows of the table that is
asked about are compared by the column that is asked for. Words by language are in
`superlatives.toml`. Without Django.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag.answering.answer_types import AnswerKind
from rag.answering.groundedness import content_stems, number_value, word_stem
from rag.events import Passage
from reading.row_text import split_row
from reading.segments import Segment, split_segments
from tables.questions.named_rows import RowFinder, weigh_rows

with (Path(__file__).parent / "superlatives.toml").open("rb") as _file:
    _TOML: dict[str, dict[str, str]] = tomllib.load(_file)


def _words(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)


_MIN, _MAX, _COLUMNS = (
    {dimension: _words(words) for dimension, words in _TOML[name].items()}
    for name in ("min", "max", "columns")
)
_LEAST, _GREATEST = _words(_TOML["least"]["words"]), _words(_TOML["greatest"]["words"])

#: Rows that are named: the extreme one, those with the same number, and the next.
MAX_ROWS = 2
#: Rows with prices that are favoured.
MAX_PRICED = 6
#: How surely a cell of a row must be named, as `tables.questions.named_rows` tells it.
MIN_NAMED_SCORE = 0.5
#: Share of what the question is about that a table and one of its rows must name.
MIN_SUBJECT_SHARE = 0.5
#: Share of a column's cells that must be numbers, and how many rows make a table.
MIN_NUMBER_SHARE, MIN_TABLE_ROWS = 0.75, 2

_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?")


@dataclass(frozen=True, slots=True)
class Extreme:
    """What a superlative asks for: the greatest or the least number of the columns whose headers
    fit `column`; any column that the question names where it is None. `words` are its own."""

    is_greatest: bool
    column: re.Pattern[str] | None
    words: str


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a passage's table: where it is, and its cells."""

    passage: Passage
    part: Segment
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one document under the same header and headings."""

    header: tuple[str, ...]
    heading: str
    rows: list[TableRow]


def find_extreme(question: str) -> Extreme | None:
    """The superlative in a question; None if it has none that a table can answer."""
    for is_greatest, dimensions in ((False, _MIN), (True, _MAX)):
        for dimension, words in dimensions.items():
            if found := words.search(question):
                return Extreme(is_greatest, _COLUMNS[dimension], found[0])
    for is_greatest, words in ((False, _LEAST), (True, _GREATEST)):
        if found := words.search(question):
            named = [column for column in _COLUMNS.values() if column.search(question)]
            return Extreme(is_greatest, named[0] if named else None, found[0])
    return None


def extreme_rows(question: str, passages: Sequence[Passage]) -> list[TableRow]:
    """The rows that answer a question for the least or greatest of a table: the row itself first,
    then rows with the same number or the next one. Empty where nothing of the kind is asked, or no
    table of `passages` has the column and is about what is asked."""
    extreme = find_extreme(question)
    if extreme is None:
        return []
    asked = question.replace(extreme.words, " ")
    rows, columns = next(iter(_rows_about(asked, passages, extreme.column)), ([], []))
    numbered = [
        (number, row)
        for row in rows
        if (number := _row_number(row, columns, is_greatest=extreme.is_greatest)) is not None
    ]
    numbered.sort(key=lambda each: -each[0] if extreme.is_greatest else each[0])
    return [row for _, row in numbered[:MAX_ROWS]]


def answering_rows(
    question: str, passages: Sequence[Passage], kind: AnswerKind | None
) -> list[TableRow]:
    """The rows of tables that a question for the least or greatest, for what a named row says, or
    for an amount of money (`kind`), is about."""
    return (
        extreme_rows(question, passages)
        or named_rows(question, passages)
        or (priced_rows(question, passages)[:MAX_PRICED] if kind == "money" else [])
    )


def named_rows(question: str, passages: Sequence[Passage]) -> list[TableRow]:
    """The rows that the question names by a cell, such as a part number, and says nearly all of."""
    finder = RowFinder(question)
    found = [finder.find(passage.text) for passage in passages]
    scores = weigh_rows(found)
    best = max((score for each in scores for score in each), default=0.0)
    if best < MIN_NAMED_SCORE:
        return []
    return [
        TableRow(passage, part, tuple(split_row(passage.text[part.start : part.end])))
        for passage, rows, row_scores in zip(passages, found, scores, strict=True)
        for row, score in zip(rows, row_scores, strict=True)
        if score == best
        for part in split_segments(passage.text)
        if part.kind == "row" and row.start <= part.start < row.end
    ][:MAX_ROWS]


def priced_rows(question: str, passages: Sequence[Passage]) -> list[TableRow]:
    """The rows of tables of prices that are about what a question for an amount asks for; first
    those that say least else: “Battery 500 Wh” rather than “Bike with a battery of 500 Wh”."""
    rows = [row for rows, _ in _rows_about(question, passages, _COLUMNS["price"]) for row in rows]
    return sorted(rows, key=lambda row: len(content_stems(" ".join(row.cells))))


def _rows_about(
    question: str, passages: Sequence[Passage], column: re.Pattern[str] | None
) -> list[tuple[list[TableRow], list[int]]]:
    """The rows that name most of what is asked for, of each table that with its headings names as
    much of it as any other, with the columns of numbers that fit `column`, or are named where it is
    None."""
    stems = content_stems(question)
    if column is not None:
        # Words for the column, such as “price”, name no row.
        stems -= {word_stem(word[0]) for word in column.finditer(question)}
    best: list[tuple[list[TableRow], list[int]]] = []
    best_share = MIN_SUBJECT_SHARE
    for table in _tables(passages):
        columns = _number_columns(table, column, question)
        subject = stems - _stems_of_columns(table, columns)
        if not columns or not subject:
            continue
        of_heading = subject & content_stems(table.heading, content_only=False)
        held = [
            len((subject - of_heading) & content_stems(" ".join(row.cells), content_only=False))
            for row in table.rows
        ]
        share = (len(of_heading) + max(held)) / len(subject)
        if share >= best_share:
            named = zip(table.rows, held, strict=True)
            rows = [row for row, count in named if count == max(held)]
            best = [*(best if share == best_share else ()), (rows, columns)]
            best_share = share
    return best


def _tables(passages: Sequence[Passage]) -> Iterator[Table]:
    """The tables of the passages, best passage first. Parts of a table that were cut into several
    with the same header are one."""
    tables: dict[tuple[int, str, str], Table] = {}
    for passage in passages:
        for part in split_segments(passage.text):
            if part.kind != "row" or not part.header:
                continue
            header = tuple(split_row(part.header.split("\n")[0]))
            heading = f"{passage.heading} {part.heading}"
            key = (passage.document_id, heading, "|".join(header))
            cells = tuple(split_row(passage.text[part.start : part.end]))
            table = tables.setdefault(key, Table(header, heading, []))
            if len(cells) == len(header):
                table.rows.append(TableRow(passage, part, cells))
    return (table for table in tables.values() if len(table.rows) >= MIN_TABLE_ROWS)


def _number_columns(table: Table, column: re.Pattern[str] | None, question: str) -> list[int]:
    """The columns of numbers that are asked for: whose header or, for amounts, whose cells fit, or
    whose header has a word of the question."""
    asked = content_stems(question)
    found = []
    for place, name in enumerate(table.header):
        cells = [row.cells[place] for row in table.rows]
        if sum(_number(cell) is not None for cell in cells) < MIN_NUMBER_SHARE * len(cells):
            continue
        if column is None:
            fits = bool(asked & content_stems(name, content_only=False))
        else:
            fits = bool(column.search(name) or all(map(column.search, cells)))
        if fits:
            found.append(place)
    return found


def _stems_of_columns(table: Table, columns: Sequence[int]) -> frozenset[str]:
    return content_stems(" ".join(table.header[place] for place in columns), content_only=False)


def _row_number(row: TableRow, columns: Sequence[int], *, is_greatest: bool) -> float | None:
    found = [number for place in columns if (number := _number(row.cells[place])) is not None]
    return (max(found) if is_greatest else min(found)) if found else None


def _number(cell: str) -> float | None:
    """The number in a cell that has one; None for others."""
    found = _NUMBER.findall(cell)
    value = number_value(found[0]) if len(found) == 1 else None
    try:
        return float(value) if value is not None else None
    except ValueError:
        return None

"""The rows of tables that a page of hits shows, each with the header of its table. Begin with
`tables_of_hits`."""

from collections.abc import Iterable, Mapping, Sequence

from reading.row_text import row_in_words
from search.query import Query
from search.results import Hit, HitRow, HitTable, Passage
from search.snippets import Span
from tables.found_rows import rows_at
from tables.questions.named_rows import RowFinder, may_have_rows, row_spans

#: Rows of a hit, and the share of the best row's score that the others reach.
MAX_ROWS, MIN_SHARE = 3, 0.7
#: A lower score names no row.
MIN_SCORE = 0.1
#: Share of the words found in a passage that one of its rows has, if no cell is named.
MIN_WORDS_SHARE = 0.6


def tables_of_hits(
    query: Query, passages: Iterable[Passage], marked: Mapping[int, Sequence[Span]]
) -> dict[int, HitTable]:
    """By chunk id, the rows of tables that fit best, read in one statement; none is run where no
    passage has one. `marked` are the words of the question found in each passage.
    """
    listing = [passage for passage in passages if may_have_rows(passage.text)]
    if not listing:
        return {}
    finder = RowFinder(query.text)
    places = {
        passage.pk: [
            (passage.document_id, passage.start + start)
            for start in _best_rows(finder, passage.text, marked.get(passage.pk, ()))
        ]
        for passage in listing
    }
    read = rows_at({place for each in places.values() for place in each})
    tables: dict[int, HitTable] = {}
    for chunk_id, wanted in places.items():
        if rows := [read[place] for place in wanted if place in read]:
            table = rows[0]
            tables[chunk_id] = HitTable(
                table.table_id,
                table.table_name,
                table.columns,
                tuple(
                    HitRow(row.ordinal, row.start, row.cells, finder.named_cells(row.cells))
                    for row in rows
                    if row.table_id == table.table_id
                ),
            )
    return tables


def _best_rows(finder: RowFinder, text: str, marked: Sequence[Span]) -> list[int]:
    """Where the best rows of a text begin, best first."""
    named = [row for row in finder.find(text) if row.score >= MIN_SCORE]
    if named:
        named.sort(key=lambda row: -row.score)
        least = MIN_SHARE * named[0].score
        return [row.start for row in named if row.score >= least][:MAX_ROWS]
    held = [
        (len(_words(text, (span for span in marked if start <= span[0] and span[1] <= end))), start)
        for start, end in row_spans(text)
    ]
    most = max((count for count, _ in held), default=0)
    if not most or most < MIN_WORDS_SHARE * len(_words(text, marked)):
        return []
    return [start for count, start in held if count == most][:MAX_ROWS]


def _words(text: str, marked: Iterable[Span]) -> set[str]:
    return {text[start:end].casefold() for start, end in marked}


def row_lines(hit: Hit) -> list[str]:
    """The rows of a hit in words."""
    if hit.table is None:
        return []
    return [row_in_words(hit.table.columns, row.cells) for row in hit.table.rows]

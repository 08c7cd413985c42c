"""Tables of a PDF page: from ruling lines (`ruled_tables`), and from words that stand in columns
without any (`aligned_tables`)."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from reading.parsers.pdf_lines import (
    LIST_ITEM,
    WIDE_GAP,
    Row,
    first_word_width,
    join_texts,
    line_text,
    make_fragments,
    make_rows,
)
from reading.parsers.pdf_page import Box, TextRun


@dataclass(slots=True)
class Table:
    """Rows of cells, all of one length. `edges` are the borders of the columns in points, one more
    than there are columns. `has_header` is None where neither weight nor lines tell."""

    box: Box
    edges: list[float]
    rows: list[list[str]]
    has_header: bool | None = None


_Words = list[TextRun]

#: Points within which two lines are one, and within which lines touch.
_SAME_LINE = 2.5
_MAX_CELLS = 20_000
#: A cell with more is a box around prose.
_MAX_CELL_CHARACTERS = 1_500
#: A table with lines between its columns alone has a band for its names, its rows and their sum.
_MAX_OPEN_BANDS = 3


def ruled_tables(
    words: Sequence[TextRun], rules: Sequence[Box]
) -> tuple[list[Table], list[TextRun]]:
    """Tables whose cells have borders, and the words that are in none."""
    tables: list[Table] = []
    left = list(words)
    for horizontal, vertical in _components(rules):
        if not horizontal or not vertical:
            continue
        xs, ys = _positions(vertical, 0), _positions(horizontal, 1)
        _add_open_sides(xs, horizontal, 0)
        _add_open_sides(ys, vertical, 1)
        if len(xs) < 3 or len(ys) < 2 or (len(xs) - 1) * (len(ys) - 1) > _MAX_CELLS:
            continue
        inside: _Words = []
        outside: _Words = []
        for word in left:
            x, y = (word.x0 + word.x1) / 2, (word.y0 + word.y1) / 2
            is_in = xs[0] < x < xs[-1] and ys[0] < y < ys[-1]
            (inside if is_in else outside).append(word)
        table = _ruled_table(inside, xs, ys, horizontal, vertical)
        if table:
            tables.append(table)
            left = outside
    return tables, left


def _components(rules: Sequence[Box]) -> list[tuple[list[Box], list[Box]]]:
    """Horizontal and vertical lines that touch one another, directly or by others; lines that are
    continued are one."""
    horizontal = _joined([r for r in rules if r[2] - r[0] >= r[3] - r[1]], along=0)
    vertical = _joined([r for r in rules if r[2] - r[0] < r[3] - r[1]], along=1)
    if len(vertical) < 3 or len(horizontal) < 2:
        return []
    parents = list(range(len(horizontal) + len(vertical)))

    def root(item: int) -> int:
        while parents[item] != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    near = _SAME_LINE
    for index, (x0, y0, x1, y1) in enumerate(vertical, start=len(horizontal)):
        for other, (a0, b0, a1, b1) in enumerate(horizontal):
            if a0 - near <= x1 and x0 <= a1 + near and b0 <= y1 + near and y0 - near <= b1:
                parents[root(index)] = root(other)
    groups: dict[int, tuple[list[Box], list[Box]]] = {}
    for index, line in enumerate((*horizontal, *vertical)):
        pair = groups.setdefault(root(index), ([], []))
        pair[index >= len(horizontal)].append(line)
    return sorted(groups.values(), key=lambda pair: min((r[1] for r in pair[0]), default=0.0))


def _joined(rules: Iterable[Box], *, along: int) -> list[Box]:
    """Lines of one direction, with those that overlap or continue one another as one."""
    across = 1 - along
    lines: list[list[float]] = []
    for rule in sorted(rules, key=lambda each: (round(each[across]), each[along])):
        for line in reversed(lines[-8:]):
            if (
                abs(line[across] - rule[across]) <= _SAME_LINE
                and rule[along] <= line[along + 2] + _SAME_LINE
                and line[along] <= rule[along + 2] + _SAME_LINE
            ):
                line[along] = min(line[along], rule[along])
                line[along + 2] = max(line[along + 2], rule[along + 2])
                break
        else:
            lines.append(list(rule))
    return [(line[0], line[1], line[2], line[3]) for line in lines]


def _positions(lines: Sequence[Box], axis: int) -> list[float]:
    """Where lines are, those on one place once."""
    found: list[float] = []
    for place in sorted((line[axis] + line[axis + 2]) / 2 for line in lines):
        if not found or place - found[-1] > 2 * _SAME_LINE:
            found.append(place)
    return found


def _add_open_sides(places: list[float], crossing: Sequence[Box], axis: int) -> None:
    """Add where the lines of the other direction end, if the table has no frame there."""
    first = min(line[axis] for line in crossing)
    last = max(line[axis + 2] for line in crossing)
    if places and first < places[0] - 4 * _SAME_LINE:
        places.insert(0, first)
    if places and last > places[-1] + 4 * _SAME_LINE:
        places.append(last)


def _ruled_table(
    words: _Words,
    xs: list[float],
    ys: list[float],
    horizontal: Sequence[Box],
    vertical: Sequence[Box],
) -> Table | None:
    """The table in a grid of lines; None if it is a frame, a drawing or a box around prose."""
    columns, count = len(xs) - 1, len(ys) - 1
    cells = _merged_cells(xs, ys, horizontal, vertical)
    filled: dict[tuple[int, int], _Words] = {}
    for word in words:
        row = bisect_right(ys, (word.y0 + word.y1) / 2) - 1
        column = bisect_right(xs, (word.x0 + word.x1) / 2) - 1
        filled.setdefault(cells[row][column], []).append(word)
    if len({row for row, _ in filled}) * len({column for _, column in filled}) < 2:
        return None
    if count <= _MAX_OPEN_BANDS:
        lines = make_rows(make_fragments(words))
        if _are_rows_in_bands(lines, xs, ys):
            return _table_of_lines(lines, xs[1:-1], (xs[0], xs[-1]), ys[1:-1])
    if len(filled) < 3:
        return None
    texts = {place: _cell_text(words) for place, words in filled.items()}
    if any(len(text) > _MAX_CELL_CHARACTERS for text in texts.values()):
        return None
    rows = [[""] * columns for _ in range(count)]
    for (row, column), text in texts.items():
        rows[row][column] = text
        # A cell over several rows is said in each, so that each can be read alone.
        for below in range(row + 1, count):
            if cells[below][column] != (row, column):
                break
            rows[below][column] = text
    kept = [row for row in rows if any(row)]
    used = [column for column in range(columns) if any(row[column] for row in kept)]
    if len(kept) < 2 or len(used) < 2:
        return None
    first = [words for (row, _), words in filled.items() if row == 0]
    return Table(
        (xs[0], ys[0], xs[-1], ys[-1]),
        [xs[column] for column in used] + [xs[-1]],
        [[row[column] for column in used] for row in kept],
        _is_header_by_weight(first, [words for (row, _), words in filled.items() if row > 0]),
    )


def _are_rows_in_bands(lines: Sequence[Row], xs: Sequence[float], ys: Sequence[float]) -> bool:
    """Whether a band between two horizontal lines has many rows, of at least two cells each."""
    counts = [0] * (len(ys) + 1)
    for line in lines:
        cells = {bisect_right(xs, (word.x0 + word.x1) / 2) for word in line.words}
        counts[bisect_right(ys, (line.y0 + line.y1) / 2)] += 1 if len(cells) > 1 else -2
    return max(counts) >= (2 if len(ys) == 2 else 3)


def _merged_cells(
    xs: list[float], ys: list[float], horizontal: Sequence[Box], vertical: Sequence[Box]
) -> list[list[tuple[int, int]]]:
    """For each place in the grid the row and column of the cell that it belongs to: its first."""
    columns, count = len(xs) - 1, len(ys) - 1
    walls = {at: [r for r in vertical if abs((r[0] + r[2]) / 2 - x) <= 2 * _SAME_LINE]
             for at, x in enumerate(xs)}  # fmt: skip
    floors = {at: [r for r in horizontal if abs((r[1] + r[3]) / 2 - y) <= 2 * _SAME_LINE]
              for at, y in enumerate(ys)}  # fmt: skip
    cells = [[(row, column) for column in range(columns)] for row in range(count)]
    for row in range(count):
        middle = (ys[row] + ys[row + 1]) / 2
        for column in range(columns):
            across = (xs[column] + xs[column + 1]) / 2
            if column and not any(r[1] <= middle <= r[3] for r in walls[column]):
                cells[row][column] = cells[row][column - 1]
            elif row and not any(r[0] <= across <= r[2] for r in floors[row]):
                cells[row][column] = cells[row - 1][column]
    return cells


def _cell_text(words: _Words) -> str:
    """The lines of a cell as one."""
    if all(word.y0 == words[0].y0 for word in words):
        return line_text(sorted(words, key=lambda word: word.x0))
    text = ""
    for row in make_rows(make_fragments(words)):
        text = join_texts(text, line_text(row.words), breaks=False)
    return text.replace("\u00ad", "")


def _is_header_by_weight(first: Iterable[_Words], others: Iterable[_Words]) -> bool | None:
    """Whether the first row alone is bold; None where all of it, or nothing, is."""
    first_bold = [all(word.is_bold for word in words) for words in first]
    others_bold = [all(word.is_bold for word in words) for words in others]
    if not first_bold or not others_bold:
        return None
    if all(first_bold):
        return None if all(others_bold) else True
    # Names of rows are bold, and those of columns would be too.
    return False if sum(others_bold) * 4 >= len(others_bold) and any(first_bold) else None


#: In sizes of the font: a gap between columns, where all rows leave one.
_COLUMN_GAP = 0.45
_NUMBER = re.compile(r"[-+(]?[$€£¥]?\s?\d[\d.,'’\s:/%-]*[)]?\s?[$€£¥%]?|[-–—]")
#: Rows further apart, in heights of a row, are not of one table.
_MAX_ROW_DISTANCE = 3.2
#: Lines without a gap in a row inside a table, such as continued cells and titles of groups.
_MAX_SINGLE_ROWS = 3


def aligned_tables(rows: Sequence[Row], rules: Sequence[Box]) -> list[tuple[int, int, Table]]:
    """Tables in the rows of a column of the page, as first row, row after the last, and table.

    The words of at least three rows stand in the same columns, of two rows if there are three
    columns. Two columns of prose, lists and labels with a colon are no table.
    """
    found: list[tuple[int, int, Table]] = []
    index = 0
    while index < len(rows):
        if not rows[index].has_wide_gap or _is_leader(rows[index]):
            index += 1
            continue
        end, crossing = _end_of_run(rows, index)
        run = rows[index:end]
        separators = column_separators(
            [row for at, row in enumerate(run, start=index) if at not in crossing]
        )
        table = None
        if separators and not _is_text(run, separators):
            box = (min(r.x0 for r in run), run[0].y0, max(r.x1 for r in run), run[-1].y1)
            floors = sorted(
                (rule[1] + rule[3]) / 2
                for rule in rules
                if min(rule[2], box[2]) - max(rule[0], box[0]) >= 0.5 * (box[2] - box[0])
                and box[1] < rule[1] < box[3]
            )
            table = _table_of_lines(run, separators, (box[0], box[2]), floors)
        if table is None:
            index += 1
            continue
        found.append((index, end, table))
        index = end
    return found


def _is_leader(row: Row) -> bool:
    """Whether dots lead to a page number, as in a table of contents."""
    return any("…" in word.text or "....." in word.text for word in row.words) or (
        sum(word.text == "." for word in row.words) > 4
    )


def _is_item(row: Row) -> bool:
    """Whether it is an item of a list: a sign and its text."""
    least = WIDE_GAP * row.size
    gaps = sum(right.x0 - left.x1 > least for left, right in pairwise(row.words))
    return gaps < 2 and LIST_ITEM.match(row.words[0].text + " ") is not None


def _free(row: Row, gaps: list[tuple[float, float]], least: float) -> list[tuple[float, float]]:
    """What the words of a row leave of gaps, where at least `least` wide."""
    for word in row.words:
        left: list[tuple[float, float]] = []
        for start, end in gaps:
            if word.x1 <= start or word.x0 >= end:
                left.append((start, end))
                continue
            if word.x0 - start >= least:
                left.append((start, word.x0))
            if end - word.x1 >= least:
                left.append((word.x1, end))
        gaps = left
    return gaps


def _inner(gaps: Iterable[tuple[float, float]], x0: float, x1: float) -> list[tuple[float, float]]:
    return [gap for gap in gaps if x0 < gap[0] and gap[1] < x1]


def _end_of_run(rows: Sequence[Row], start: int) -> tuple[int, set[int]]:
    """The row after the last that leaves the same gaps as the rows from `start` on, and those
    between them whose words cross a gap, such as a sum's name."""
    size = rows[start].size
    least = _COLUMN_GAP * size
    gaps = _free(rows[start], [(float("-inf"), float("inf"))], least)
    x0, x1 = rows[start].x0, rows[start].x1
    # Spaces between the words of a single row are no gaps of the table.
    most = sum(right - left > WIDE_GAP * size for left, right in _inner(gaps, x0, x1))
    end, singles = start + 1, 0
    crossing: set[int] = set()
    steps: list[float] = []
    for index in range(start + 1, len(rows)):
        row, before = rows[index], rows[index - 1]
        step = row.y1 - before.y1
        usual = median(steps) if steps else step
        if (
            step > _MAX_ROW_DISTANCE * (row.y1 - row.y0)
            or step > 2.2 * usual
            or abs(row.size - size) > 0.35 * size
            or _is_leader(row)
            or (most > 1 and _is_item(row))
        ):
            break
        left = _free(row, gaps, least)
        wide = min(x0, row.x0), max(x1, row.x1)
        inner = _inner(left, *wide)
        clear = sum(right - left > WIDE_GAP * size for left, right in inner)
        if not inner or clear < most:
            # Half of the gaps and the last column, in a row that is near enough.
            is_part = 2 * clear >= most and step <= 1.4 * usual and inner and row.x1 > inner[-1][1]
            if not is_part or index - start < 2 or len(crossing) > 0.2 * (index - start):
                break
            crossing.add(index)
            end, singles = index + 1, 0
            continue
        if row.has_wide_gap:
            singles = 0
            end = index + 1
            steps.append(step)
        else:
            singles += 1
            # A continued cell is close to its row; a paragraph behind the table is not.
            if singles > _MAX_SINGLE_ROWS:
                break
            if step <= 1.35 * max(row.size, size):
                end = index + 1
        gaps, (x0, x1) = left, wide
        most = max(most, clear)
    return end, {index for index in crossing if index < end}


def column_separators(run: Sequence[Row]) -> list[float]:
    """Where columns are parted: gaps that all rows leave and that are wide in enough of them."""
    many = [row for row in run if row.has_wide_gap]
    if len(many) < 2:
        return []
    gaps = [(float("-inf"), float("inf"))]
    least = _COLUMN_GAP * run[0].size
    for row in run:
        gaps = _free(row, gaps, least)
    inner = _inner(gaps, min(row.x0 for row in run), max(row.x1 for row in run))
    separators = []
    for start, end in inner:
        middle = (start + end) / 2
        support = 0
        for row in many:
            before = max((word.x1 for word in row.words if word.x1 <= middle), default=None)
            behind = min((word.x0 for word in row.words if word.x0 >= middle), default=None)
            if before is not None and behind is not None:
                support += behind - before > WIDE_GAP * row.size
        if support >= max(2, 0.4 * len(many)):
            separators.append(middle)
    return separators if len(many) >= (2 if len(separators) > 1 else 3) else []


def _split(row: Row, separators: Sequence[float]) -> list[_Words]:
    """The words of a row by column."""
    cells: list[_Words] = [[] for _ in range(len(separators) + 1)]
    for word in row.words:
        cells[bisect_right(separators, (word.x0 + word.x1) / 2)].append(word)
    return cells


#: The number of a clause, or of a section.
CLAUSE = re.compile(r"(?:§+ ?|Art\. ?)?\(?(?:\d{1,3}\.){0,4}\d{1,3}[.)]?|[IVXLC]{1,6}[.)]?")
#: Letters a line of prose has at least on average, and how wide it is compared with its column.
PROSE_LETTERS = 18
_FULL_LINE = 0.75


def is_prose_column(lines: Sequence[Sequence[TextRun]]) -> bool:
    """Whether most lines are long and as wide as the column."""
    cells = [words for words in lines if words]
    if len(cells) < 3:
        return False
    width = max(words[-1].x1 for words in cells) - min(words[0].x0 for words in cells)
    full = sum(words[-1].x1 - words[0].x0 >= _FULL_LINE * width for words in cells)
    letters = sum(len(word.text) for words in cells for word in words)
    return full >= 0.5 * len(cells) and letters >= PROSE_LETTERS * len(cells)


def is_prose(rows: Sequence[Row]) -> bool:
    """Whether rows are lines of prose, in one column or in several."""
    separators = column_separators(rows)
    columns = zip(*(_split(row, separators) for row in rows), strict=True)
    return all(is_prose_column(column) for column in columns)


def _is_text(run: Sequence[Row], separators: Sequence[float]) -> bool:
    """Whether it is prose in columns, a list, or labels with what they name."""
    columns = list(zip(*(_split(row, separators) for row in run), strict=True))
    if sum(is_prose_column(column) for column in columns) >= 2:
        return True
    if sum(row.is_monospaced for row in run) * 2 > len(run) and not _has_numbers(columns):
        return True  # code with comments or types behind it
    if len(columns) > 2:
        return False
    first = [line_text(words) for words in columns[0] if words]
    signs = sum(LIST_ITEM.fullmatch(text) is not None for text in first)
    labels = sum(text.endswith(":") for text in first)
    if not first or signs >= 0.6 * len(first) or labels >= 0.6 * len(first):
        return True
    # Clauses of a contract, each with its number.
    numbers = sum(CLAUSE.fullmatch(text) is not None for text in first)
    second = [sum(len(word.text) for word in words) for words in columns[1] if words]
    return numbers >= 0.6 * len(first) and sum(second) >= 25 * len(second)


def _has_numbers(columns: Sequence[Sequence[_Words]]) -> bool:
    """Whether most cells of a column are numbers."""
    for column in columns:
        texts = [" ".join(word.text for word in words) for words in column if words]
        if sum(_NUMBER.fullmatch(text) is not None for text in texts) * 2 > len(texts):
            return True
    return False


def _table_of_lines(
    run: Sequence[Row],
    separators: Sequence[float],
    sides: tuple[float, float],
    floors: Sequence[float],
) -> Table | None:
    """The table of rows of words: lines that continue the cells above them belong to their row.

    `floors` are the heights of horizontal lines in it.
    """
    split = [_split(row, separators) for row in run]
    if len(split) < 2:
        return None
    columns = len(separators) + 1
    edges = [sides[0], *separators, sides[1]]
    widths = [
        max((cells[at][-1].x1 - cells[at][0].x0 for cells in split if cells[at]), default=0.0)
        for at in range(columns)
    ]
    bands = [bisect_right(floors, (row.y0 + row.y1) / 2) for row in run]
    is_ruled = len(set(bands)) >= max(3, 0.4 * len(run))
    if not is_ruled and (names := _centred_names(run, split)):
        # Every line goes to the nearest name.
        bands = [
            min(range(len(names)), key=lambda at: abs(run[names[at]].y1 - row.y1)) for row in run
        ]
        is_ruled = True
    rows: list[list[_Words]] = []
    texts: list[list[str]] = []
    for index, cells in enumerate(split):
        is_new = not rows or bands[index] != bands[index - 1]
        if not is_new and not is_ruled:
            step = (run[index].y1 - run[index - 1].y1) / max(run[index].size, 1.0)
            is_new = not _continues(split[index - 1], cells, widths, step, is_first=len(rows) == 1)
        if is_new:
            rows.append([list(words) for words in cells])
            texts.append([line_text(words) for words in cells])
            continue
        for at, words in enumerate(cells):
            rows[-1][at] += words
            texts[-1][at] = join_texts(texts[-1][at], line_text(words), breaks=False)
    if len(texts) < 2:
        return None
    has_header = _is_header_by_weight(
        (words for words in rows[0] if words),
        (words for cells in rows[1:] for words in cells if words),
    )
    if has_header is None and set(bands) == {0, 1} and bands.count(0) <= 2:
        has_header = True  # the only line in it is below the first row
    box = (sides[0], run[0].y0, sides[1], run[-1].y1)
    return Table(box, edges, texts, has_header)


def _centred_names(run: Sequence[Row], split: Sequence[list[_Words]]) -> list[int]:
    """Indices of the lines with a cell in the first column, if some of them are at half the height
    of their rows: above and below such a line there are cells in a column that it leaves empty."""
    names = [index for index, cells in enumerate(split) if cells[0]]
    for index in names:
        if not 0 < index < len(run) - 1:
            continue
        above, cells, below = split[index - 1 : index + 2]
        distances = run[index].y1 - run[index - 1].y1, run[index + 1].y1 - run[index].y1
        if (
            not above[0]
            and not below[0]
            and abs(distances[0] - distances[1]) < 0.2 * run[index].size
            and any(
                high and low and not own for high, own, low in zip(above, cells, below, strict=True)
            )
        ):
            return names
    return []


#: Lines of one cell are mostly this close, in sizes of the font.
_CLOSE = 1.4
_MAX_STEP = 2.2


def _continues(
    above: list[_Words],
    cells: list[_Words],
    widths: Sequence[float],
    step: float,
    *,
    is_first: bool,
) -> bool:
    """Whether a line, `step` sizes of its font below the one above, continues the cells there: the
    first word of each would not have had room. A row has a name in its first column; names of
    several lines are told by their distance."""
    if step > _MAX_STEP:
        return False
    filled = [at for at, words in enumerate(cells) if words]
    if is_first and not above[0] and cells[0] and step <= _CLOSE:
        return not any(_is_number(words) for words in cells)
    if cells[0]:
        has_words = " " in " ".join(word.text for word in above[0])
        is_name = filled == [0] and has_words and step <= _CLOSE
        is_heading = is_first and step <= _CLOSE and not any(map(_is_number, cells))
        if not is_name and not (is_heading and len(filled) < len(cells)):
            return False
    for at in filled:
        words = cells[at]
        if not above[at] or _is_number(words):
            return False
        needed = first_word_width(words[0]) + 0.25 * words[0].size
        if above[at][-1].x1 - above[at][0].x0 + needed <= widths[at]:
            return False
    return True


def _is_number(words: _Words) -> bool:
    return bool(words) and _NUMBER.fullmatch(" ".join(word.text for word in words)) is not None

"""The layout of a PDF page: paragraphs and tables in reading order, by the places of its words.
Begin with `page_blocks`."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median_low
from typing import NamedTuple, TypeGuard

from reading.parsers.boxes import turned_box
from reading.parsers.pdf_lines import (
    LIST_ITEM,
    Fragment,
    Row,
    join_lines,
    join_texts,
    line_text,
    make_fragments,
    make_line,
    make_rows,
)
from reading.parsers.pdf_page import Box, TextRun
from reading.parsers.pdf_tables import (
    CLAUSE,
    PROSE_LETTERS,
    Table,
    aligned_tables,
    is_prose,
    ruled_tables,
)


@dataclass(slots=True)
class TextBlock:
    """A paragraph, a heading or a list. `size` is its font's in points, `lines` how many lines it
    takes on the page."""

    text: str
    size: float
    is_bold: bool
    lines: int
    is_note: bool = False
    is_code: bool = False


Block = TextBlock | Table


class _TableFragment(Fragment):
    """A table that takes part in the order of the fragments around it."""

    __slots__ = ("table",)

    def __init__(self, table: Table) -> None:
        self.words = []
        self.x0, self.y0, self.x1, self.y1 = table.box
        self.size = 0.0
        self.table = table


def page_blocks(
    words: Sequence[TextRun], rules: Sequence[Box], *, width: float, height: float
) -> list[Block]:
    """The blocks of a page of `width` and `height` points in the order of reading: columns one
    after the other, notes in the margin behind the text beside them, footnotes last. Text that runs
    in another direction than most of the page follows it."""
    if len(words) > _MAX_RUNS:
        return [_unplaced(words)]
    angles = Counter(word.angle for word in words)
    blocks: list[Block] = []
    for number, (angle, _) in enumerate(angles.most_common()):
        turned = words if len(angles) == 1 else [word for word in words if word.angle == angle]
        lines: Sequence[Box] = () if number else rules
        size = (height, width) if angle in {90, 270} else (width, height)
        if angle:
            turned = [
                word._replace(**turned_box(word[1:5], -angle, width, height)._asdict())
                for word in turned
            ]
            lines = [turned_box(rule, -angle, width, height) for rule in lines]
        blocks += _upright_blocks(turned, lines, *size)
    return blocks


#: A page with more is a map or a drawing, and finding its layout would take minutes.
_MAX_RUNS = 10_000


def _unplaced(words: Sequence[TextRun]) -> TextBlock:
    """The lines of a page in the order of its content."""
    lines: list[list[TextRun]] = []
    for word in words:
        if word.begins_line or not lines:
            lines.append([])
        lines[-1].append(word)
    return TextBlock("\n".join(map(line_text, lines)), words[0].size, False, len(lines))


def _upright_blocks(
    words: Sequence[TextRun], rules: Sequence[Box], width: float, height: float
) -> list[Block]:
    tables, rest = ruled_tables(words, rules) if len(rules) > 4 else ([], list(words))
    fixed = sum(word.is_monospaced for word in rest)
    if fixed > 0.7 * len(rest):  # a text of a typewriter is no code
        rest = [word._replace(is_monospaced=False) for word in rest]
    items = make_fragments(rest)
    sizes: Counter[float] = Counter()
    for item in items:
        sizes[round(item.size, 1)] += item.characters
    body = max(sizes, key=lambda size: sizes[size]) if sizes else 0.0
    items += [_TableFragment(table) for table in tables]
    blocks: list[Block] = []
    notes: list[Block] = []
    for flow in _flows(items, body or 10.0):
        own = list(_flow_blocks(flow, rules, width))
        first_note = _first_note(own, body)
        notes += own[first_note:]
        own = own[:first_note]
        if blocks and own:
            _join_over_columns(blocks, own)
        for block in own:
            last = blocks[-1] if blocks else None
            if _is_code(block) and _is_code(last):
                last.text += f"\n\n{block.text}"
                last.lines += block.lines
            else:
                blocks.append(block)
    for note in notes:
        if isinstance(note, TextBlock):
            note.is_note = True
    return blocks + notes


def _is_code(block: Block | None) -> TypeGuard[TextBlock]:
    return isinstance(block, TextBlock) and block.is_code


_MAX_DEPTH = 4
_MIN_ITEMS = 4
#: How many gutters are tried, and by how many numbers of fragments that may cover them.
_TRIES = 6
_LEVELS = 8


class _Flow(NamedTuple):
    """Fragments that are read from top to bottom, on the whole page or as a column of it."""

    items: list[Fragment]
    is_column: bool


def _flows(
    items: list[Fragment], size: float, depth: int = 0, *, is_column: bool = False
) -> list[_Flow]:
    """The fragments of a page column by column. What goes over all columns parts those above it
    from those below it."""
    if len(items) >= _MIN_ITEMS and depth <= _MAX_DEPTH:
        for gutter in _gutters(items, size):
            if flows := _split_at(items, gutter, size, depth, is_column=is_column):
                return flows
    return [_Flow(items, is_column)] if items else []


def _gutters(items: Sequence[Fragment], size: float) -> Iterator[float]:
    """Where columns may be parted: places that few fragments cover, best first."""
    changes: Counter[int] = Counter()
    for item in items:
        changes[round(item.x0)] += 1
        changes[round(item.x1)] -= 1
    places = sorted(changes)
    covers = list(accumulate(changes[place] for place in places))
    levels = sorted({cover for cover in covers if cover <= 0.7 * len(items)})
    # There must be something on both sides.
    least, most = min(item.x1 for item in items), max(item.x0 for item in items)
    tried: list[float] = []
    for level in levels[:: len(levels) // _LEVELS + 1]:
        start: int | None = None
        for place, cover in zip(places, covers, strict=True):
            if cover <= level:
                start = place if start is None else start
                continue
            # Not the left margin.
            if start is not None and place - start >= 0.8 * size and start > places[0]:
                middle = (start + place) / 2
                is_new = all(abs(middle - other) >= 2 * size for other in tried)
                if is_new and least <= middle <= most:
                    tried.append(middle)
                    yield middle
                    if len(tried) >= _TRIES:
                        return
            start = None


def _split_at(
    items: Sequence[Fragment], gutter: float, size: float, depth: int, *, is_column: bool
) -> list[_Flow] | None:
    """The flows to both sides of a gutter, and those over it; None if there are no columns."""
    over = sorted(
        (item for item in items if item.x0 < gutter < item.x1), key=lambda item: item.y0 + item.y1
    )
    heights = [item.y0 + item.y1 for item in over]
    bands: list[tuple[list[Fragment], list[Fragment]]] = [([], []) for _ in range(len(over) + 1)]
    for item in items:
        if item.x0 < gutter < item.x1:
            continue
        middle = item.y0 + item.y1
        number = next((at for at, height in enumerate(heights) if height > middle), len(over))
        bands[number][item.x0 >= gutter].append(item)
    parts = [_column_part(left, right, size) for left, right in bands]
    if not any(parts):
        return None
    flows: list[_Flow] = []
    current: list[Fragment] = []
    for number, (part, band) in enumerate(zip(parts, bands, strict=True)):
        if part is None:
            current += band[0] + band[1]
        else:
            above, left, right, below = part
            flows += _flows(current + above, size, depth + 1, is_column=is_column)
            current = below
            for side in (right, left) if _is_margin_note(left, right) else (left, right):
                flows += _flows(side, size, depth + 1, is_column=True)
        if number < len(over):
            current.append(over[number])
    return flows + _flows(current, size, depth + 1, is_column=is_column)


_Side = list[Fragment]


def _column_part(
    left: _Side, right: _Side, size: float
) -> tuple[_Side, _Side, _Side, _Side] | None:
    """What is above two columns, the two, and what is below them; None if there are none. To the
    left there may be short lines of the whole width of the page."""
    if not left or not right:
        return None
    top, bottom = min(item.y0 for item in right), max(item.y1 for item in right)
    above = [item for item in left if item.y1 <= top + 0.3 * size]
    beside = [item for item in left if item.y1 > top + 0.3 * size]
    low = [item for item in beside if item.words and item.y0 >= bottom - 0.3 * size]
    rest = [item for item in beside if item.y0 < bottom - 0.3 * size]
    below: _Side = []
    if low and rest:
        is_apart = min(item.y0 for item in low) - max(item.y1 for item in rest) > 0.8 * size
        if is_apart and not is_prose(make_rows(low)):
            beside, below = rest, [item for item in beside if item.y0 >= bottom - 0.3 * size]
    return (above, beside, right, below) if _are_columns(beside, right, size) else None


def _are_columns(left: _Side, right: _Side, size: float) -> bool:
    """Whether two sides are read one after the other, and not row by row as a table."""
    left, right = ([item for item in side if item.words] for side in (left, right))
    if not left or not right or len(left) + len(right) < _MIN_ITEMS:
        return False
    fewer, more = sorted((make_rows(left), make_rows(right)), key=len)
    if len(fewer) < 3:
        return (
            len(more) >= 3
            and is_prose(more)
            and all(row.characters >= PROSE_LETTERS for row in fewer)
        )
    prose = is_prose(fewer), is_prose(more)
    if all(prose):
        return True
    steps = [
        median_low([low.y1 - high.y1 for high, low in pairwise(rows)]) for rows in (fewer, more)
    ]
    if len(fewer) < len(more) and steps[0] > 1.3 * steps[1]:
        return False  # names of rows may stand at half the height of these
    # Names of rows stand on lines of the other side; lines of columns do so by chance.
    bases = [row.y1 for row in more]
    aligned = sum(any(abs(base - row.y1) <= 0.2 * size for base in bases) for row in fewer)
    return aligned < 0.6 * len(fewer) and (any(prose) or len(fewer) >= 5)


def _is_margin_note(side: Sequence[Fragment], other: Sequence[Fragment]) -> bool:
    """Whether a side has notes in the margin of the other."""
    widths = [
        max(item.x1 for item in each) - min(item.x0 for item in each) for each in (side, other)
    ]
    letters = [sum(item.characters for item in each) for each in (side, other)]
    return widths[0] < 0.4 * widths[1] and letters[0] < 0.4 * letters[1]


def _flow_blocks(flow: _Flow, rules: Sequence[Box], page_width: float) -> Iterator[Block]:
    """The blocks of a flow, from top to bottom."""
    tables = sorted(
        (item for item in flow.items if isinstance(item, _TableFragment)), key=lambda item: item.y0
    )
    texts = [item for item in flow.items if not isinstance(item, _TableFragment)]
    if not texts:
        yield from (item.table for item in tables)
        return
    rows = make_rows(texts)
    x0, right = min(row.x0 for row in rows), max(row.x1 for row in rows)
    full = sum(row.x1 > right - 3 * row.size for row in rows)
    is_wrapped = full >= max(3, 0.3 * len(rows)) and right - x0 > 0.3 * page_width
    if not flow.is_column and not is_wrapped and x0 < 0.3 * page_width:
        # Where lines are short, as far as the margin, if it is the same on both sides.
        right = max(right, x0 + 0.9 * (page_width - 2 * x0))
    start = 0
    for item in [*tables, None]:
        end = start
        while end < len(rows) and (item is None or rows[end].y1 < item.y1):
            end += 1
        yield from _rows_blocks(rows[start:end], rules, right)
        start = end
        if item is not None:
            yield item.table


def _rows_blocks(rows: Sequence[Row], rules: Sequence[Box], right: float) -> Iterator[Block]:
    """Tables among rows, and the paragraphs between them."""
    at = 0
    for start, end, table in aligned_tables(rows, rules):
        yield from _paragraphs(rows[at:start], right)
        yield table
        at = end
    yield from _paragraphs(rows[at:], right)


#: Sizes that differ by less are one.
_SAME_SIZE = 0.08


def _paragraphs(rows: Sequence[Row], right: float) -> Iterator[TextBlock]:
    """Rows to blocks: parted by distance, size, weight and indentation."""
    if not rows:
        return
    steps = [
        (low.y1 - high.y1) / max(low.size, 1.0)
        for high, low in pairwise(rows)
        if abs(high.size - low.size) <= _SAME_SIZE * low.size and low.y1 - high.y1 < 3 * low.size
    ]
    leading = min(max(median_low(steps), 1.0), 2.6) if steps else 1.4
    left = min(row.x0 for row in rows)
    current = [rows[0]]
    for high, low in pairwise(rows):
        size = max(high.size, low.size)
        is_other = (
            abs(high.size - low.size) > _SAME_SIZE * size
            or high.is_bold != low.is_bold
            or high.is_monospaced != low.is_monospaced
            or low.y1 - high.y1 > 1.22 * leading * size + 0.5
            or _begins_clause(low)
        )
        # A first line further right, under a line at the margin that is no list's.
        is_indented = (
            low.x0 > high.x0 + 0.8 * size
            and high.x0 - left < 0.5 * size
            and not _begins_item(high)
            and not _begins_clause(high)
            and len(current) > 1
        )
        # What stands left of the text of the list above it.
        is_outdented = low.x0 < high.x0 - 0.5 * size and _begins_item(current[0])
        if is_other or is_indented or (is_outdented and not _begins_item(low)):
            yield _block(current, right)
            current = []
        current.append(low)
    yield _block(current, right)


def _begins_item(row: Row) -> bool:
    return LIST_ITEM.match(row.words[0].text + " ") is not None


def _begins_clause(row: Row) -> bool:
    """Whether it begins with a number that stands apart from its text, as in a contract."""
    first = row.fragments[0]
    return len(row.fragments) > 1 and CLAUSE.fullmatch(line_text(first.words)) is not None


def _block(rows: Sequence[Row], right: float) -> TextBlock:
    lines = [make_line(row.words) for row in rows]
    x0, x1 = min(line.x0 for line in lines), max(line.x1 for line in lines)
    # A narrow block of few lines, such as an address, tells nothing about where lines must end.
    full = sum(line.x1 > x1 - 3 * line.size for line in lines[:-1])
    is_column = (
        len(lines) >= 3 and x1 - x0 >= 0.45 * (right - x0) and full >= 0.6 * (len(lines) - 1)
    )
    edge = x1 if is_column else right
    letters: Counter[float] = Counter()
    for row in rows:
        letters[row.size] += len(row.words)
    is_code = rows[0].is_monospaced
    return TextBlock(
        _indented(rows, x0) if is_code else join_lines(lines, right=edge),
        max(letters, key=lambda size: letters[size]),
        all(row.is_bold for row in rows),
        len(rows),
        is_code=is_code,
    )


def _indented(rows: Sequence[Row], left: float) -> str:
    """The lines of code with their indentation."""
    letters = sum(len(word.text) for row in rows for word in row.words)
    width = sum(word.x1 - word.x0 for row in rows for word in row.words) / max(letters, 1)
    return "\n".join(
        " " * min(round((row.x0 - left) / max(width, 1.0)), 80) + line_text(row.words)
        for row in rows
    )


_NOTE_MARK = re.compile(r"(?:\(?\d{1,3}[.)]?|[*†‡§¶]{1,3}|[a-z][.)])\s?\w")
#: Footnotes are at least this much smaller than the text.
_NOTE_SIZE = 0.93


def _first_note(blocks: Sequence[Block], body: float) -> int:
    """Index of the first footnote at the end of a column; the number of blocks if there is none."""
    first = len(blocks)
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if not isinstance(block, TextBlock) or block.size > _NOTE_SIZE * body:
            break
        if _NOTE_MARK.match(block.text):
            first = index
    return first if first else len(blocks)


def _join_over_columns(blocks: list[Block], following: list[Block]) -> None:
    """Put the sentence that a column breaks together again."""
    last, first = blocks[-1], following[0]
    if (
        isinstance(last, TextBlock)
        and isinstance(first, TextBlock)
        and abs(last.size - first.size) <= _SAME_SIZE * last.size
        and last.is_bold == first.is_bold
        and first.text[:1].islower()
        and (last.text[-1:].isalnum() or last.text[-1:] in {"-", ","})
        and last.lines + first.lines > 3
    ):
        last.text = join_texts(last.text, first.text, breaks=False)
        last.lines += first.lines
        del following[0]

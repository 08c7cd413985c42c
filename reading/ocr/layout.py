"""The order in which people read a page's lines, and their text: columns one after the other, rows
of a table or receipt in a line, paragraphs with their hyphens joined."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from reading.ocr.lines import Line
from reading.parsers.boxes import Box, enclosing_box

#: Between the cells of a row.
CELL_SEPARATOR = " | "
#: In heights of a line: between columns of prose, and between cells of a row.
_GUTTER, _CELL_GAP = 0.6, 1.2
#: A column of prose has lines enough, long enough, and most of them nearly fill it.
_COLUMN_LINES, _COLUMN_WIDTH, _COLUMN_FILL = 3, 6.0, 0.6
#: In heights of a line: what is so far below columns is no part of them.
_COLUMNS_END = 1.8
#: A line that ends this near to the right edge, as a share of the width, goes on in the next one.
_FULL_LINE = 0.85
#: Lines further apart than this, in distances of the block's lines, are different paragraphs.
_PARAGRAPH_GAP = 1.4
_PROSE_WIDTH = 12.0
_HYPHEN = re.compile(r"(\w\w)[-‐\u00ad]$")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A line and its box on the page as if that were level."""

    line: Line
    box: Box

    @property
    def middle(self) -> float:
        return (self.box.y0 + self.box.y1) / 2


_Row = list[_Placed]


def arrange(lines: Sequence[Line]) -> tuple[list[Line], str]:
    """The lines in reading order, and their text."""
    if not lines:
        return [], ""
    wide = sorted(lines, key=lambda line: -line.box.width)[: max(3, len(lines) // 2)]
    tilt = median(line.tilt for line in wide)
    placed = [_Placed(line, _levelled(line.box, tilt)) for line in lines]
    placed.sort(key=lambda each: each.middle)
    ordered: list[Line] = []
    paragraphs: list[str] = []
    for block in _blocks(placed):
        rows = _rows(block)
        ordered += [each.line for row in rows for each in row]
        paragraphs += _paragraphs(rows)
    return ordered, "\n\n".join(paragraphs)


def _levelled(box: Box, tilt: float) -> Box:
    """The box of a line as if it did not descend."""
    middle = (box.y0 + box.y1) / 2 - tilt * (box.x0 + box.x1) / 2
    half = max(box.height - abs(tilt) * box.width, 0.4 * box.height, 1.0) / 2
    return Box(box.x0, middle - half, box.x1, middle + half)


def _blocks(placed: Sequence[_Placed]) -> Iterator[list[_Placed]]:
    """Parts of the page that are read one after the other."""
    height = median(each.box.height for each in placed)
    waiting: list[_Placed] = []  # rows that follow one another
    for group in _groups(placed, _GUTTER * height):
        columns = _split(group, _gutters(group, _GUTTER * height))
        if len(columns) > 1 and all(_is_prose(column) for column in columns):
            if waiting:
                yield waiting
            waiting = []
            yield from columns
        else:
            waiting += group
    if waiting:
        yield waiting


def _groups(placed: Sequence[_Placed], least: float) -> Iterator[list[_Placed]]:
    """Bands across the page that have a gutter in common, or none."""
    group: list[_Placed] = []
    for band in _bands(placed):
        # A line that goes across ends the columns above it, and so does much room.
        in_columns = _gutters([*group, *band], least) and _gutters(group, least)
        room = band[0].box.y0 - max((each.box.y1 for each in group), default=0.0)
        if group and (not in_columns or room > _COLUMNS_END * band[0].box.height):
            yield group
            group = []
        group = [*group, *band]
    if group:
        yield group


def _bands(placed: Sequence[_Placed]) -> Iterator[list[_Placed]]:
    """Lines that stand beside one another, by their heights less a margin."""
    band: list[_Placed] = []
    bottom = 0.0
    for each in sorted(placed, key=lambda each: each.box.y0):
        margin = 0.2 * each.box.height
        if band and each.box.y0 + margin >= bottom:
            yield band
            band = []
        bottom = max(bottom, each.box.y1 - margin) if band else each.box.y1 - margin
        band.append(each)
    if band:
        yield band


def _gutters(placed: Sequence[_Placed], least: float) -> list[float]:
    """Middles of the gaps, at least so wide, that no line reaches into."""
    found = []
    right = None
    for box in sorted(each.box for each in placed):
        if right is not None and box.x0 - right >= least:
            found.append((right + box.x0) / 2)
        right = box.x1 if right is None else max(right, box.x1)
    return found


def _split(placed: Sequence[_Placed], gutters: Sequence[float]) -> list[list[_Placed]]:
    columns: list[list[_Placed]] = [[] for _ in range(len(gutters) + 1)]
    for each in placed:
        columns[sum(each.box.x0 > gutter for gutter in gutters)].append(each)
    return columns


def _is_prose(column: Sequence[_Placed]) -> bool:
    width = enclosing_box([each.box for each in column]).width
    long = median(each.box.width for each in column)
    height = median(each.box.height for each in column)
    is_filled = long >= _COLUMN_FILL * width
    return len(column) >= _COLUMN_LINES and is_filled and long >= _COLUMN_WIDTH * height


def _rows(block: Sequence[_Placed]) -> list[_Row]:
    """Lines that stand beside one another, from left to right."""
    rows: list[_Row] = []
    for each in sorted(block, key=lambda each: each.middle):
        for row in reversed(rows[-3:]):
            nearest = min(row, key=lambda other: abs(other.middle - each.middle))
            reach = 0.5 * min(nearest.box.height, each.box.height)
            if abs(nearest.middle - each.middle) < reach and not any(
                min(other.box.x1, each.box.x1) - max(other.box.x0, each.box.x0)
                > 0.3 * min(other.box.width, each.box.width)
                for other in row
            ):
                row.append(each)
                break
        else:
            rows.append([each])
    for row in rows:
        row.sort(key=lambda each: each.box.x0)
    return rows


def _paragraphs(rows: Sequence[_Row]) -> list[str]:
    boxes = [enclosing_box([each.box for each in row]) for row in rows]
    whole = enclosing_box(boxes)
    height = median(box.height for box in boxes)
    is_prose = median(box.width for box in boxes) >= _PROSE_WIDTH * height
    steps = [below.y0 - above.y0 for above, below in pairwise(boxes)]
    step = median(steps) if steps else 0.0
    texts = [_row_text(row) for row in rows]
    paragraphs = [texts[0]]
    for index, text in enumerate(texts[1:], start=1):
        above, below = boxes[index - 1], boxes[index]
        if below.y0 - above.y0 > _PARAGRAPH_GAP * max(step, height):
            paragraphs.append(text)
            continue
        before = paragraphs[-1]
        goes_on = (
            is_prose
            and above.x1 >= whole.x0 + _FULL_LINE * whole.width
            and below.x0 - whole.x0 < 0.02 * whole.width + height
            and CELL_SEPARATOR not in texts[index - 1] + text
        )
        if goes_on and text[0].islower() and (hyphen := _HYPHEN.search(before)):
            paragraphs[-1] = before[: hyphen.end(1)] + text
        else:
            paragraphs[-1] = f"{before}{' ' if goes_on else chr(10)}{text}"
    return paragraphs


def _row_text(row: _Row) -> str:
    text = row[0].line.text
    for left, right in pairwise(row):
        gap = right.box.x0 - left.box.x1
        is_cell = gap > _CELL_GAP * min(left.box.height, right.box.height)
        text += (CELL_SEPARATOR if is_cell else " ") + right.line.text
    return text

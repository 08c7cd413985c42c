"""Boxes on a page, from its top left corner: in points, pixels, or fractions of its sides."""

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """Left, top, right and bottom edge of a rectangle."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0


def enclosing_box(boxes: Sequence[Box]) -> Box:
    """The smallest box around some."""
    return Box(
        min(box.x0 for box in boxes),
        min(box.y0 for box in boxes),
        max(box.x1 for box in boxes),
        max(box.y1 for box in boxes),
    )


def turned_box(box: Sequence[float], degrees: int, width: float, height: float) -> Box:
    """Where the box is after its page, `width` × `height`, was turned clockwise by a multiple of 90
    degrees."""
    x0, y0, x1, y1 = box
    match degrees % 360:
        case 90:
            return Box(height - y1, x0, height - y0, x1)
        case 180:
            return Box(width - x1, height - y1, width - x0, height - y0)
        case 270:
            return Box(y0, width - x1, y1, width - x0)
    return Box(x0, y0, x1, y1)

"""What engines find on a page: lines with their words, in pixels of the upright picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reading.parsers.boxes import Box, enclosing_box

#: Grey values, rows by columns.
Picture = NDArray[np.uint8]
#: Corners of a line as it is read, from where it begins clockwise: 4 × (x, y).
Corners = NDArray[np.float32]


class Word(NamedTuple):
    """A word and where it is."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or the part of one that is in a cell or column. `confidence` is the mean of its
    characters', 0 to 1. `tilt` is how far it descends a pixel to the right."""

    words: tuple[Word, ...]
    confidence: float
    tilt: float = 0.0

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def box(self) -> Box:
        return enclosing_box([word.box for word in self.words])


def line_fields(lines: Sequence[Line], boxes: Sequence[Sequence[Box]]) -> list[dict[str, Any]]:
    """The lines as JSON values; `boxes` are those of their words on the shown page, as
    fractions."""
    return [
        {
            "box": _rounded(enclosing_box(placed)),
            "confidence": round(line.confidence, 3),
            "words": [
                [word.text, *_rounded(box)] for word, box in zip(line.words, placed, strict=True)
            ],
        }
        for line, placed in zip(lines, boxes, strict=True)
    ]


def _rounded(box: Box) -> list[float]:
    return [round(min(max(value, 0.0), 1.0), 5) for value in box]

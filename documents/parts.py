"""Long documents are shown in parts, so that a page of a thousand-page book stays a page."""

from collections.abc import Sequence
from dataclasses import dataclass

PART_CHARACTERS = 60_000


@dataclass(frozen=True, slots=True)
class Part:
    """Characters from `start` to `end` of a document; `number` counts from 1 to `count`."""

    number: int
    count: int
    start: int
    end: int


def cut_parts(length: int, boundaries: Sequence[int], *, size: int = PART_CHARACTERS) -> list[Part]:
    """Parts of about `size` characters that begin at `boundaries`, which ascend.

    A part is longer than `size` only where no boundary lies in it. There is always one part.
    """
    starts = [0]
    candidate = 0
    for boundary in [*boundaries, length]:
        if boundary - starts[-1] > size and candidate > starts[-1]:
            starts.append(candidate)
        candidate = boundary
    ends = [*starts[1:], length]
    return [
        Part(number=number, count=len(starts), start=start, end=end)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
    ]


def part_at(parts: Sequence[Part], offset: int) -> Part:
    """The part that holds the character at `offset`; the last where it lies behind all."""
    return next((part for part in parts if offset < part.end), parts[-1])

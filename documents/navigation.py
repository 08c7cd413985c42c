"""What stands beside a document's text: its sections, and the passages around the marked one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from documents.models import Chunk
from documents.parts import Part
from documents.rendering import OutlineEntry

#: Passages listed at once.
LISTED = 8


@dataclass(frozen=True, slots=True)
class Passages:
    """Some of a document's passages; `number` is the marked one's among `count`, 0 for none."""

    listed: Sequence[Chunk]
    count: int
    number: int
    marked: Chunk | None
    previous: Chunk | None
    following: Chunk | None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading that only the passages under it tell of. `level` counts from 1."""

    title: str
    level: int
    first: Chunk


def passages_around(chunks: Sequence[Chunk], marked: Chunk | None, part: Part) -> Passages:
    """The passages near the marked one, or from the beginning of the part that is shown."""
    if marked is None:
        begin = (index for index, chunk in enumerate(chunks) if chunk.start >= part.start)
        at, first = -1, next(begin, 0)
    else:
        at = chunks.index(marked)
        first = at - LISTED // 2
    first = max(0, min(first, len(chunks) - LISTED))
    return Passages(
        listed=chunks[first : first + LISTED],
        count=len(chunks),
        number=at + 1,
        marked=marked,
        previous=chunks[at - 1] if at > 0 else None,
        following=chunks[at + 1] if marked and at + 1 < len(chunks) else None,
    )


def sections_of(chunks: Sequence[Chunk], part: Part) -> list[Section]:
    """The headings that begin in a part, by the heading paths of its passages."""
    sections: list[Section] = []
    above: list[str] = []
    for chunk in chunks:
        path = list(chunk.heading_path)
        if part.start <= chunk.start < part.end:
            known = len(list(takewhile(_same, zip(above, path, strict=False))))
            sections += [
                Section(title, level, chunk)
                for level, title in enumerate(path, start=1)
                if level > known
            ]
        above = path
    return sections


def _same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def from_level_one(outline: Sequence[OutlineEntry]) -> list[OutlineEntry]:
    """The outline with its highest headings at level 1, however deep the author began."""
    highest = min((entry.level for entry in outline), default=1)
    return [replace(entry, level=entry.level - highest + 1) for entry in outline]

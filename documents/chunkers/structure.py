"""Headings and pages of a document, asked for by offset."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from documents.chunkers.atoms import Extent
from documents.chunkers.base import Span
from documents.parsers import Heading, ParsedDocument

#: Extent and level of a heading's line.
HeadingLine = tuple[Extent, int]

_UNDERLINE = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*(?:\n|\Z)")


class Structure:
    """Which headings are in force, and which page it is, at an offset."""

    def __init__(self, document: ParsedDocument) -> None:
        self._heading_offsets = [heading.offset for heading in document.headings]
        self._paths = _paths(document.headings)
        self._page_offsets = [page.offset for page in document.pages]
        self._pages = document.pages

    def span(self, start: int, end: int, token_count: int, parent: int | None = None) -> Span:
        """The span with what is in force where it begins."""
        path, page = self.heading_path(start), self.page(start)
        return Span(start, end, token_count, path, page, parent)

    def heading_path(self, offset: int) -> tuple[str, ...]:
        index = bisect_right(self._heading_offsets, offset)
        return self._paths[index - 1] if index else ()

    def page(self, offset: int) -> int | None:
        index = bisect_right(self._page_offsets, offset)
        return self._pages[index - 1].number if index else None


def heading_lines(document: ParsedDocument) -> list[HeadingLine]:
    """The line of each heading, with the underline that Markdown may have."""
    return [
        ((heading.offset, _line_end(document.text, heading.offset)), heading.level)
        for heading in document.headings
    ]


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    if end < 0:
        return len(text)
    underline = None if text.startswith("#", offset) else _UNDERLINE.match(text, end + 1)
    return underline.end() if underline else end


def _paths(headings: Sequence[Heading]) -> list[tuple[str, ...]]:
    chain: list[Heading] = []
    paths: list[tuple[str, ...]] = []
    for heading in headings:
        chain = [above for above in chain if above.level < heading.level] + [heading]
        paths.append(tuple(link.title for link in chain))
    return paths

"""The worth of each gap between two atoms as a place to cut, from punctuation, line ends, headings
and blocks. Begin with `Window.worth`; `windows` cuts long texts so that memory stays bounded."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.text import is_grapheme_boundary
from reading.chunkers.atoms import Atoms, Extent, TokenMeasure, atomise
from reading.chunkers.base import Span
from reading.parsers import Heading, ParsedDocument

# Worth is added to how full the chunk would be (0 to 1): a gap whose worth is higher by 0.3 is
# chosen although the chunk gets 30 % shorter. Steps of 1 and more always win.
INSIDE_HEADING_WORTH = -6.0
AFTER_HEADING_WORTH = -5.0
INSIDE_LINE_WORTH = -4.0
INSIDE_BLOCK_WORTH = -3.0
INSIDE_WORD_WORTH = -0.5
WORD_WORTH = 0.0
LINE_WORTH = 0.15
SENTENCE_WORTH = 0.5
ITEM_WORTH = 0.65
PARAGRAPH_WORTH = 0.8
HEADING_WORTH = 1.0
_HEADING_STEP = 0.03
_MAX_HEADING_LEVEL = 6

# Each pattern begins with the character that it needs, so that no white space is tried twice.
_NEWLINE = re.compile(r"\n\s*")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])[.!?…]['\"”’)\]»*_]*\s+|[。！？｡]+[」』”’）】]*\s*")
_LIST_ITEM = re.compile(r"(?:[-*+•–]|\d{1,3}[.)]|\(\w{1,3}\))\s")


def punctuation_worth(text: str, atoms: Atoms) -> list[float]:
    """Worth of the gap before each atom, from punctuation and line ends alone. Added to how full
    the chunk would be."""
    worth = [
        INSIDE_WORD_WORTH if atoms.is_inside_word(k) else WORD_WORTH for k in range(len(atoms))
    ]
    if not worth:
        return worth
    first, last = atoms.starts[0], atoms.ends[-1]
    for match in _SENTENCE_END.finditer(text, first, last):
        # Text in lower case follows an abbreviation rather than a sentence.
        is_sentence = not text[match.end() : match.end() + 1].islower()
        _raise_at(worth, atoms, match.end(), SENTENCE_WORTH if is_sentence else WORD_WORTH)
    for match in _NEWLINE.finditer(text, first, last):
        index = atoms.at(match.end())
        value = LINE_WORTH  # in the middle of a sentence: usually only a line wrap
        if match[0].count("\n") > 1:
            value = PARAGRAPH_WORTH
        elif _LIST_ITEM.match(text, match.end()) or (
            index < len(worth) and worth[index] >= SENTENCE_WORTH
        ):
            value = ITEM_WORTH
        _raise_at(worth, atoms, match.end(), value)
    return worth


def _raise_at(worth: list[float], atoms: Atoms, offset: int, value: float) -> None:
    index = atoms.at(offset)
    if index < len(worth) and atoms.starts[index] == offset:
        worth[index] = max(worth[index], value)


def keep_blocks_together(
    worth: list[float], text: str, atoms: Atoms, blocks: Sequence[Extent], *, budget: int
) -> None:
    """Code and tables: not cut if they fit the budget, else cut between lines."""
    for start, end in blocks:
        first, last = atoms.at(start), atoms.at(end)
        fits = atoms.tokens(first, last) <= budget
        for index in range(first + 1, last):
            new_line = "\n" in text[atoms.ends[index - 1] : atoms.starts[index]]
            if new_line:
                worth[index] = INSIDE_BLOCK_WORTH if fits else max(worth[index], SENTENCE_WORTH)
            else:
                worth[index] = INSIDE_LINE_WORTH if fits else INSIDE_WORD_WORTH


def keep_headings_with_text(
    worth: list[float], atoms: Atoms, headings: Sequence[tuple[Extent, int]]
) -> None:
    """Make the gap before a heading the best, and the one after it one of the worst.

    A chunk that is only a heading matches everything, so the code or table after it is cut instead.
    `headings` are the extents of heading lines with their levels.
    """
    lines = [(atoms.at(start), atoms.at(end), level) for (start, end), level in headings]
    lines = [line for line in lines if line[0] < line[1]]
    size = len(worth)
    for first, _, level in lines:
        worth[first] = HEADING_WORTH + _HEADING_STEP * (
            _MAX_HEADING_LEVEL - min(level, _MAX_HEADING_LEVEL)
        )
    for first, last, _ in lines:
        worth[first + 1 : last] = [INSIDE_HEADING_WORTH] * (last - first - 1)
        if last < size:
            worth[last] = AFTER_HEADING_WORTH
    tail = size
    for first, last, _ in reversed(lines):
        if last != tail:
            break
        worth[first], tail = AFTER_HEADING_WORTH, first


def indices_from(places: Sequence[int], first: int, last: int) -> Sequence[int]:
    """The sorted `places` from `first` to `last`, both included."""
    return places[bisect_left(places, first) : bisect_left(places, last + 1)]


#: Extent and level of a heading's line.
HeadingLine = tuple[Extent, int]

_UNDERLINE = re.compile(r"[ ]{0,3}(?:=+|-+)[ \t]*(?:\n|\Z)")


class DocumentStructure:
    """Heading path and page at an offset."""

    def __init__(self, document: ParsedDocument) -> None:
        self._heading_offsets = [heading.offset for heading in document.headings]
        chain: list[Heading] = []
        paths: list[tuple[str, ...]] = []
        for heading in document.headings:
            chain = [above for above in chain if above.level < heading.level] + [heading]
            paths.append(tuple(link.title for link in chain))
        self._paths = paths
        self._page_offsets = [page.offset for page in document.pages]
        self._pages = document.pages

    def span(self, start: int, end: int, token_count: int, parent: int | None = None) -> Span:
        """The span with the heading path and page at its start."""
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
    text, lines = document.text, []
    for heading in document.headings:
        end = text.find("\n", heading.offset)
        if end < 0:
            end = len(text)
        elif not text.startswith("#", heading.offset) and (
            underline := _UNDERLINE.match(text, end + 1)
        ):
            end = underline.end()
        lines.append(((heading.offset, end), heading.level))
    return lines


#: Characters of a window, about.
WINDOW_CHARACTERS = 500_000


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a text as atoms, with the headings and blocks in it."""

    text: str
    atoms: Atoms
    headings: Sequence[HeadingLine] = ()
    blocks: Sequence[Extent] = ()

    def worth(self, budget: int) -> list[float]:
        """Worth of the gap before each atom, for chunks of `budget` tokens."""
        worth = punctuation_worth(self.text, self.atoms)
        keep_blocks_together(worth, self.text, self.atoms, self.blocks, budget=budget)
        keep_headings_with_text(worth, self.atoms, self.headings)
        return worth


def windows(
    document: ParsedDocument, *, measure: TokenMeasure, budget: int, blocks: Sequence[Extent] = ()
) -> Iterator[Window]:
    """The document's windows in order; no atom has more tokens than `budget` if possible."""
    headings = heading_lines(document)
    for start, end in _window_extents(document.text, blocks, headings):
        yield Window(
            text=document.text,
            atoms=atomise(document.text, (start, end), measure=measure, budget=budget),
            headings=headings[_headings_before(headings, start) : _headings_before(headings, end)],
            blocks=[block for block in blocks if start <= block[0] and block[1] <= end],
        )


def _window_extents(
    text: str, blocks: Sequence[Extent], headings: Sequence[HeadingLine]
) -> Iterator[Extent]:
    start = 0
    while len(text) - start > WINDOW_CHARACTERS:
        # After the last paragraph, else line, else word, else any grapheme boundary.
        end = start + WINDOW_CHARACTERS
        breaks = (text.rfind(separator, start, end) for separator in ("\n\n", "\n", " "))
        edges = (at for at in range(end, start, -1) if is_grapheme_boundary(text, at, start))
        end = next((found for found in breaks if found > start), None) or next(edges, end)
        inside = next((block for block in blocks if block[0] < end < block[1]), None)
        if inside and inside[0] > start:
            end = inside[0]
        # Headings that the end would separate from their text go to the next window.
        for (first, last), _ in reversed(headings[: _headings_before(headings, end)]):
            if first <= start or text[last:end].strip():
                break
            end = first
        yield start, end
        start = end
    yield start, len(text)


def _headings_before(headings: Sequence[HeadingLine], offset: int) -> int:
    """How many headings begin before `offset`."""
    return bisect_left(headings, offset, key=lambda line: line[0][0])

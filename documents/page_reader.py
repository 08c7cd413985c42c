"""The real page of a document beside its text: its image, its words to be selected, and marks
around a passage or quotation. Begin with `page_view`."""

from collections.abc import Sequence
from dataclasses import dataclass

from documents.models import Chunk, Document
from documents.page_images import PageLayer, PageUnavailable, Word, file_of, page_layer
from documents.page_marks import Mark, place_quotation

#: Units of the drawing over a page that is as wide as this.
DRAWING_WIDTH = 1000.0
#: Pages that a passage is looked for on.
MAX_PASSAGE_PAGES = 4
#: Characters around a quotation that tell it from others.
SURROUNDINGS = 20_000
MAX_TOLD_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """Words of a line with x, y of the baseline, width and height each, in units of the drawing."""

    words: list[tuple[str, float, float, float, float]]


@dataclass(frozen=True, slots=True)
class PageView:
    """Page `number` of `count`. `problem` says why there is no image. `marks` are x, y, width and
    height in units of the drawing, DRAWING_WIDTH × `height`; `marked_pages` are all that have
    some, `marked_text` is what is marked."""

    number: int
    count: int
    label: str = ""
    problem: str = ""
    height: float = DRAWING_WIDTH
    lines: Sequence[DrawnLine] = ()
    marks: Sequence[tuple[float, float, float, float, bool]] = ()
    marked_pages: Sequence[int] = ()
    marked_text: str = ""

    @property
    def other_marked(self) -> list[int]:
        """Pages besides this one that have marks."""
        return [page for page in self.marked_pages if page != self.number]

    @property
    def previous(self) -> int:
        """0 if this is the first page."""
        return self.number - 1

    @property
    def following(self) -> int:
        """0 if this is the last page."""
        return self.number + 1 if self.number < self.count else 0


def page_view(
    document: Document,
    chunks: Sequence[Chunk],
    text: str,
    *,
    page_number: int | None,
    passage: Chunk | None,
    quotation: tuple[int, int] | None = None,
    found: frozenset[str] = frozenset(),
) -> PageView | None:
    """Page `page_number`, else the first on which the quotation, or the passage, is marked. None
    where the document has no pages to show.

    `chunks` are those of `text`; `quotation` are offsets into it.
    """
    if file_of(document) is None:
        return None
    layers: dict[int, PageLayer] = {}
    marks: dict[int, list[Mark]] = {}
    start, end = quotation or ((passage.start, passage.end) if passage else (0, 0))
    number = page_number or (passage.page if passage else None) or 1
    try:
        if passage is not None:
            layers = _layers_of(document, chunks, passage, end)
            begin, finish = _surroundings(chunks, text, start, end, layers)
            marks = place_quotation(
                text[begin:finish],
                start - begin,
                end - begin,
                {page: layer.words for page, layer in layers.items()},
                found,
            )
            number = page_number or min(marks, default=number)
        layer = layers.get(number) or page_layer(document, number)
    except PageUnavailable as error:
        return PageView(number, number, problem=str(error))
    scale = DRAWING_WIDTH, DRAWING_WIDTH * layer.height / layer.width
    here = marks.get(number, [])
    return PageView(
        number=number,
        count=layer.count,
        label=layer.label,
        height=round(scale[1], 1),
        lines=_lines(layer.words, *scale),
        marks=[(*_scaled(mark, *scale), mark.is_found) for mark in here],
        marked_pages=sorted(marks),
        marked_text=" ".join(text[start:end].split())[:MAX_TOLD_CHARACTERS] if here else "",
    )


def _layers_of(
    document: Document, chunks: Sequence[Chunk], passage: Chunk, end: int
) -> dict[int, PageLayer]:
    """The pages from the beginning of the passage to its end, which may be on the next."""
    first = passage.page or 1
    following = next((each.page for each in chunks if each.start >= end and each.page), first + 1)
    last = min(max(following, first), first + MAX_PASSAGE_PAGES - 1)
    layers = {first: page_layer(document, first)}
    for number in range(first + 1, min(last, layers[first].count) + 1):
        layers[number] = page_layer(document, number)
    return layers


def _surroundings(
    chunks: Sequence[Chunk], text: str, start: int, end: int, layers: dict[int, PageLayer]
) -> tuple[int, int]:
    """Offsets of what was read on these pages and those beside them."""
    first, last = min(layers) - 1, max(layers) + 1
    near = [each for each in chunks if first <= (each.page or 1) <= last]
    begin = min((each.start for each in near), default=start)
    finish = max((each.end for each in near), default=end)
    return (
        max(min(begin, start), start - SURROUNDINGS, 0),
        min(max(finish, end), end + SURROUNDINGS, len(text)),
    )


def _lines(words: Sequence[Word], width: float, height: float) -> list[DrawnLine]:
    lines: list[DrawnLine] = []
    bottom = top = 0.0
    for text, x0, y0, x1, y1 in words:
        middle = (y0 + y1) / 2
        if not lines or not top < middle < bottom:
            lines.append(DrawnLine([]))
            top, bottom = y0, y1
        size = (y1 - y0) * height
        baseline = y1 * height - size * 0.22
        drawn = (x0 * width, baseline, max((x1 - x0) * width, 1.0), size * 0.85)
        lines[-1].words.append((text, *(round(value, 1) for value in drawn)))  # type: ignore[arg-type]
    return lines


def _scaled(mark: Mark, width: float, height: float) -> tuple[float, float, float, float]:
    """With a little room around the words."""
    space = 0.1 * (mark.y1 - mark.y0) * height
    x, y = mark.x0 * width - space, mark.y0 * height - space
    return (
        round(x, 1),
        round(y, 1),
        round(mark.x1 * width + space - x, 1),
        round(mark.y1 * height + space - y, 1),
    )

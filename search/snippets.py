"""The window of a hit's text that answers best. Pure functions over offsets."""

import re
from collections.abc import Sequence

from search.results import Snippet

#: About three lines of a result.
WINDOW = 320

_SENTENCE_START = re.compile(r"(?:^|[.!?…]['\")\]]*\s+|\n\s*)(?=\S)")
_SPACE = re.compile(r"\s")

Spans = Sequence[tuple[int, int]]


def parse_marked(marked: str, *, start: str, stop: str) -> list[tuple[int, int]]:
    """Offsets, into the text without markers, of what stands between `start` and `stop`.

    Both markers are one character long and occur in the text as nothing else.
    """
    spans: list[tuple[int, int]] = []
    opened, position = 0, 0
    for character in marked:
        if character == start:
            opened = position
        elif character == stop:
            spans.append((opened, position))
        else:
            position += 1
    return spans


def make_snippet(text: str, highlights: Spans, *, window: int = WINDOW) -> Snippet:
    """The window with the most different highlighted words, then with the most of them.

    Without highlights (a hit that only the vectors found) it is the beginning. It starts at the
    beginning of a sentence where one is near, and never cuts a word.
    """
    start, end = _best_window(text, highlights, window)
    start, end = _trimmed(text, start, end)
    inside = tuple(
        (first - start, last - start)
        for first, last in highlights
        if start <= first and last <= end
    )
    return Snippet(
        text=text[start:end],
        start=start,
        highlights=inside,
        cut_before=bool(text[:start].strip()),
        cut_after=bool(text[end:].strip()),
    )


def _best_window(text: str, highlights: Spans, window: int) -> tuple[int, int]:
    if len(text) <= window:
        return 0, len(text)
    best, best_start = (0, 0), 0
    for index, (first, _) in enumerate(highlights):
        start = _window_start(text, first, window)
        inside = [span for span in highlights[index:] if span[1] <= start + window]
        words = {text[a:b].casefold() for a, b in inside}
        if (len(words), len(inside)) > best:
            best, best_start = (len(words), len(inside)), start
    return _whole_words(text, best_start, min(len(text), best_start + window))


def _window_start(text: str, first: int, window: int) -> int:
    """The start of the sentence that holds `first`, if that leaves room for what follows."""
    earliest = max(0, first - window // 3)
    starts = [match.end() for match in _SENTENCE_START.finditer(text, earliest, first + 1)]
    return starts[-1] if starts else max(0, first - window // 6)


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    if start > 0 and not text[start - 1].isspace():
        space = _SPACE.search(text, start, min(end, start + 40))
        start = space.end() if space else start
    if end < len(text) and not text[end].isspace():
        cut = max(
            text.rfind(" ", max(start, end - 40), end), text.rfind("\n", max(start, end - 40), end)
        )
        end = cut if cut > start else end
    return start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end

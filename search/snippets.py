"""The window of a hit's text that answers best. Pure functions over offsets."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from common.graphemes import may_join
from common.spaceless import LETTERS
from search.results import Snippet

#: About three lines of a result; of wide characters, such as Chinese ones, half as many fill them.
WINDOW = 320
#: A shorter sentence is taken together with the next one.
SHORTEST_SENTENCE = 30

_CLOSING = r"[\"'”’)\]»*_」』）】]*"
_ENDED = rf"[.!?…]{_CLOSING}\s+|[。！？｡]+{_CLOSING}\s*"
_SENTENCE_START = re.compile(rf"(?:^|{_ENDED}|\n\s*)(?=\S)")
_SENTENCE_END = re.compile(rf"(?<!\b[A-Z])(?:{_ENDED})(?![a-zà-ÿ])|\n\s*\n\s*")
#: No character before these is a wide one: https://www.unicode.org/reports/tr11/
_MAY_BE_WIDE = re.compile(r"[\u1100-\U0010ffff]")
_SPACE = re.compile(r"\s")
_UNSPACED = re.compile(f"[{LETTERS}]")
_PAUSES = "。！？｡、，；：,;:"
#: How far a cut may move to fall between words.
_REACH = 40

Span = tuple[int, int]
Spans = Sequence[Span]


def parse_marked(marked: str, *, start: str, stop: str) -> list[Span]:
    """Offsets, into the text without markers, of what stands between `start` and `stop`.

    Both markers are one character long and occur in the text as nothing else.
    """
    spans: list[Span] = []
    before, *pieces = marked.split(start)
    position = len(before)
    for piece in pieces:
        inside, closed, after = piece.partition(stop)
        spans += [(position, position + len(inside))] if closed else []
        position += len(inside) + len(after)
    return spans


def make_snippet(
    text: str, highlights: Spans, *, window: int = WINDOW, focus: Span | None = None
) -> Snippet:
    """The window with the most different highlighted words, then with the most of them.

    Without highlights (a hit that only the vectors found) it is that of the sentence `focus`, or
    the beginning. It starts at the beginning of a sentence where one is near, and never cuts a
    word, nor what a reader sees as one character.
    """
    start, end = _best_window(text, highlights, window_for(text, window), focus)
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


def wants_focus(text: str, highlights: Spans, *, window: int = WINDOW) -> bool:
    """Whether `make_snippet` would look at a `focus`."""
    return not highlights and len(text) > window_for(text, window)


def window_for(text: str, window: int = WINDOW) -> int:
    """How many characters of `text` fill the lines that `window` usual ones fill."""
    sample = text[:window]
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in _MAY_BE_WIDE.findall(sample))
    return window // 2 if wide * 2 > len(sample) else window


def sentences(text: str, *, longest: int = WINDOW) -> list[Span]:
    """(start, end) of the sentences of `text`, in order, without white space around them.

    Short ones are put together, and what goes on for more than `longest` characters is cut. Of wide
    characters half as many are short, or long.
    """
    longest, usual = window_for(text, longest), longest
    shortest = SHORTEST_SENTENCE * longest // usual
    found: list[Span] = []
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        first, last = _trimmed(text, start, end)
        if last - first >= shortest or (end == len(text) and last > first):
            found += _pieces(text, first, last, longest)
            start = end
    return found


def _pieces(text: str, start: int, end: int, longest: int) -> Iterator[Span]:
    while end - start > longest:
        cut = _cut_before(text, start, start + longest)
        yield _trimmed(text, start, cut)
        start = cut
    first, last = _trimmed(text, start, end)
    if last > first:
        yield first, last


def _best_window(text: str, highlights: Spans, window: int, focus: Span | None) -> Span:
    if len(text) <= window:
        return 0, len(text)
    best, best_start = (0, 0), 0
    for index, (first, _) in enumerate(highlights):
        start = _window_start(text, first, window)
        inside = [span for span in highlights[index:] if span[1] <= start + window]
        words = {text[a:b].casefold() for a, b in inside}
        if (len(words), len(inside)) > best:
            best, best_start = (len(words), len(inside)), start
    if focus and not highlights:
        best_start = _focus_start(text, focus, window)
    start = _cut_after(text, best_start)
    return start, _cut_before(text, start, min(len(text), start + window))


def _window_start(text: str, first: int, window: int) -> int:
    """The start of the sentence that holds `first`, if that leaves room for what follows."""
    earliest = max(0, first - window // 3)
    starts = [match.end() for match in _SENTENCE_START.finditer(text, earliest, first + 1)]
    return starts[-1] if starts else max(0, first - window // 6)


def _focus_start(text: str, focus: Span, window: int) -> int:
    """The start of the focus, or of a sentence before it where the text would end too early."""
    earliest = max(0, min(focus[0], len(text) - window))
    starts = [match.end() for match in _SENTENCE_START.finditer(text, earliest, focus[0] + 1)]
    return min([*starts, focus[0]])


def _cut_after(text: str, start: int) -> int:
    """A place to begin, from `start` on."""
    if start > 0 and _inside_word(text, start):
        space = _SPACE.search(text, start, min(len(text), start + _REACH))
        start = space.end() if space else start
    places = range(start, min(len(text), start + _REACH))
    return next((place for place in places if not _inside_character(text, place)), start)


def _cut_before(text: str, start: int, end: int) -> int:
    """A place to stop, up to `end` and behind `start`."""
    if end >= len(text):
        return len(text)
    if _inside_word(text, end) or _UNSPACED.match(text, end):
        nearest = range(end, max(start, end - _REACH), -1)
        end = next(
            (place for place in nearest if text[place].isspace() or text[place - 1] in _PAUSES), end
        )
    places = range(end, max(start, end - _REACH), -1)
    return next((place for place in places if not _inside_character(text, place)), end)


def _inside_character(text: str, place: int) -> bool:
    """Whether a cut at `place` would part what a reader sees as one character."""
    return 0 < place < len(text) and may_join(text[place - 1], text[place])


def _inside_word(text: str, place: int) -> bool:
    """Whether a cut at `place` would part a word of a script with spaces."""
    before, after = text[place - 1], text[place]
    return not (
        before.isspace() or after.isspace() or _UNSPACED.match(before) or _UNSPACED.match(after)
    )


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end

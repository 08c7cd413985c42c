"""What of a passage can be quoted by itself: sentences, items of lists, rows, code. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from common.graphemes import may_join
from common.spaceless import LETTERS

Kind = Literal["sentence", "item", "row", "code", "heading"]

#: What is longer is cut between words, in characters; code between lines.
LONGEST = 480
#: A shorter sentence says little: it goes with the next one.
SHORTEST = 15

_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:+=-]*$")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+•–◦▪]|\d{1,3}[.)]|\(\w{1,3}\)|[a-zA-Z][.)])\s+(?=\S)")
_CLOSING = r"[\"'”’»)\]*_」』》）】]*"
_STOP = re.compile(rf"(?<![.!?…])[.!?…]++{_CLOSING}+(?:\[\d+\])*(?=\s)|[。！？｡]+{_CLOSING}")
#: Words that a full stop belongs to, in texts in which sentences begin with capitals.
_SHORT = re.compile(
    r"(?:^|[\s(\[“\"'-])(?:[A-Za-zÀ-ÿ]|[A-Z](?:\.[A-Z])+|e\.g|i\.e|z\.\s?B|u\.\s?a|d\.\s?h|bzw|ca|cf"
    r"|vs|etc|approx|Dr|Dra|Mr|Mrs|Ms|Sr|Sra|St|Ste|Mt|Ft|Jr|Prof|Hr|Fr|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Gov"
    r"|Sen|Rep|No|Nr|Nos|Art|Abs|Fig|Abb|Eq|Vol|pp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Okt|Nov|Dec"
    r"|Dez|al|Inc|Ltd|Co|Corp|Bros|geb|gest|bspw|usw|Mio|Mrd|Std|Jh)\.$"
)
_ORDINAL = re.compile(r"\b\d{1,2}\.$")
_NEXT = re.compile(rf"\s*[\"'“„«(\[*_¿¡「『（【]*(?:[^\W_a-zà-ÿ]|[{LETTERS}]|[a-z]+[A-Z])")
_LINK = re.compile(r"\[([^\]\n]+)\]\([^)\s]+\)")
_WORD = re.compile(r"\w+")
_PAUSE = re.compile(r"[;:,，、；：—–]\s*|\s+")


@dataclass(frozen=True, slots=True)
class Part:
    """`text[start:end]`, without white space around it. `header` are a table's first lines, which a
    row means nothing without. `cut` says that more of the same sentence stands behind it."""

    kind: Kind
    start: int
    end: int
    header: str = ""
    cut: bool = False


def points_elsewhere(part: Part, text: str) -> bool:
    """Whether it is only a Markdown link, or as an item little more, as in a table of contents, or
    ends in a colon and announces what comes next: what it is about stands elsewhere."""
    said = text[part.start : part.end]
    if part.kind in ("item", "sentence") and said.rstrip("*_").endswith((":", "：")):
        return True
    link = _LINK.match(said)
    if part.kind not in ("item", "sentence") or link is None:
        return False
    beside = _WORD.findall(said[link.end() :])
    return len(beside) <= (len(_WORD.findall(link[1])) if part.kind == "item" else 0)


def parts(text: str) -> list[Part]:
    """All of the text in order, but for what is only there to be seen: rules and fences."""
    return list(_parts(text))


def _parts(text: str) -> Iterator[Part]:
    lines = [match.span() for match in _LINE.finditer(text) if match[0]]
    at = 0
    while at < len(lines):
        line = text[slice(*lines[at])]
        if fence := _FENCE.match(line):
            end = _end_of_code(text, lines, at, fence[1])
            yield from _code(text, lines[at + 1 : end])
            at = end + 1
        elif _ROW.match(line):
            end = _while(text, lines, at, _ROW)
            yield from _rows(text, lines[at:end])
            at = end
        elif _HEADING.match(line):
            yield from _trimmed("heading", text, *lines[at])
            at += 1
        elif not line.strip() or _RULE.match(line):
            at += 1
        else:
            end = _end_of_paragraph(text, lines, at)
            item = _ITEM.match(line)
            start = lines[at][0] + (item.end() if item else 0)
            yield from _sentences("item" if item else "sentence", text, start, lines[end - 1][1])
            at = end


def _while(text: str, lines: list[tuple[int, int]], at: int, pattern: re.Pattern[str]) -> int:
    while at < len(lines) and pattern.match(text[slice(*lines[at])]):
        at += 1
    return at


def _end_of_code(text: str, lines: list[tuple[int, int]], at: int, fence: str) -> int:
    """The line that ends the code, or behind the last one."""
    for number in range(at + 1, len(lines)):
        if text[slice(*lines[number])].strip().startswith(fence):
            return number
    return len(lines)


def _end_of_paragraph(text: str, lines: list[tuple[int, int]], at: int) -> int:
    """Behind its last line: a blank one, or where something else begins."""
    at += 1
    while at < len(lines):
        line = text[slice(*lines[at])]
        begins = (_FENCE, _ROW, _HEADING, _ITEM, _RULE)
        if any(pattern.match(line) for pattern in begins):
            break
        at += 1
    return at


def _code(text: str, lines: list[tuple[int, int]]) -> Iterator[Part]:
    """Pieces of whole lines, cut at blank lines where they get too long."""
    start = 0
    for number in range(len(lines)):
        is_last = number + 1 == len(lines)
        long = not is_last and lines[number + 1][1] - lines[start][0] > LONGEST
        blank = not is_last and not text[slice(*lines[number])].strip()
        if is_last or long or (blank and lines[number][1] - lines[start][0] > LONGEST // 3):
            first, last = lines[start][0], lines[number][1]
            body = text[first:last].rstrip()
            if body.strip():
                yield Part("code", first, first + len(body))
            start = number + 1


def _rows(text: str, lines: list[tuple[int, int]]) -> Iterator[Part]:
    """A table's rows; its first one is their header where a rule stands below it."""
    has_header = len(lines) > 1 and bool(_RULE.match(text[slice(*lines[1])]))
    header = text[lines[0][0] : lines[1][1]].strip("\n") if has_header else ""
    for span in lines[2:] if has_header else lines:
        if not _RULE.match(text[slice(*span)]):
            yield from (
                Part("row", part.start, part.end, header) for part in _trimmed("row", text, *span)
            )
    if has_header and len(lines) == 2:
        yield from _trimmed("row", text, *lines[0])


def _sentences(kind: Kind, text: str, start: int, end: int) -> Iterator[Part]:
    first = start
    for stop in _STOP.finditer(text, start, end):
        if (
            _ends(text, first, stop.end(), end)
            and len(text[first : stop.end()].strip()) >= SHORTEST
        ):
            yield from _bounded(kind, text, first, stop.end())
            first = stop.end()
    yield from _bounded(kind, text, first, end)


def _ends(text: str, start: int, place: int, end: int) -> bool:
    """Whether a sentence ends at this full stop, and not an abbreviation, a number or a name."""
    if text[place - 1] in "。！？｡」』》）】":
        return True
    if not text[place:end].strip():
        return True
    if _SHORT.search(text[max(start, place - 12) : place]) or _ORDINAL.search(text[start:place]):
        # `in World War II. He`, but `on 3. May` and `Dr. No`
        return False
    return bool(_NEXT.match(text, place))


def _bounded(kind: Kind, text: str, start: int, end: int) -> Iterator[Part]:
    """One sentence, or the pieces of one that is too long."""
    for part in _trimmed(kind, text, start, end):
        first = part.start
        while part.end - first > LONGEST:
            place = _cut(text, first, first + LONGEST)
            yield from (
                Part(kind, piece.start, piece.end, cut=True)
                for piece in _trimmed(kind, text, first, place)
            )
            first = place
        yield from _trimmed(kind, text, first, part.end)


def _cut(text: str, start: int, end: int) -> int:
    """Behind the last pause in the second half, else behind the last word."""
    middle = (start + end) // 2
    pauses = list(_PAUSE.finditer(text, middle, end))
    strong = [match.end() for match in pauses if match[0].strip()]
    places = strong or [match.end() for match in pauses]
    place = places[-1] if places else end
    edge = place
    while edge > middle and may_join(text[edge - 1], text[edge]):
        edge -= 1
    return edge if edge > middle else place  # where half of it is one character, that is torn


def _trimmed(kind: Kind, text: str, start: int, end: int) -> Iterator[Part]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Part(kind, start, end)

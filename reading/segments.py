"""Split a passage into segments that can be quoted: sentences, list items, table rows, code.
Begin with `split_segments`. Without Django.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from common.text import CJK, may_combine

SegmentKind = Literal["sentence", "item", "row", "code", "heading", "block"]

#: Longer segments, in characters, are cut between words; code between lines.
MAX_SEGMENT_CHARACTERS = 480
#: Most characters of a block: a list, table or code with the sentence that introduces it.
MAX_BLOCK_CHARACTERS = 800
#: A shorter sentence, in characters, is joined with the next one.
MIN_SENTENCE_CHARACTERS = 15

_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE = re.compile(r"[\s|:+=-]*$")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+•–◦▪]|\d{1,3}[.)]|\(\w{1,3}\)|[a-zA-Z][.)])\s+(?=\S)")
_CLOSING = r"[\"'”’»)\]*_」』》）】]*"
_STOP = re.compile(rf"(?<![.!?…])[.!?…]++{_CLOSING}+(?:\[\d+\])*(?=\s)|[。！？｡]+{_CLOSING}")
#: Abbreviations that end in a full stop, for texts in which sentences begin with capitals.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[“\"'-])(?:[A-Za-zÀ-ÿ]|[A-Z](?:\.[A-Z])+|e\.g|i\.e|z\.\s?B|u\.\s?a|d\.\s?h|bzw|ca|cf"
    r"|vs|etc|approx|Dr|Dra|Mr|Mrs|Ms|Sr|Sra|St|Ste|Mt|Ft|Jr|Prof|Hr|Fr|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Gov"
    r"|Sen|Rep|No|Nr|Nos|Art|Abs|Fig|Abb|Eq|Vol|pp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Okt|Nov|Dec"
    r"|Dez|al|Inc|Ltd|Co|Corp|Bros|geb|gest|bspw|usw|Mio|Mrd|Std|Jh)\.$"
)
_ORDINAL = re.compile(r"\b\d{1,2}\.$")
_SENTENCE_START = re.compile(rf"\s*[\"'“„«(\[*_¿¡「『（【]*(?:[^\W_a-zà-ÿ]|[{CJK}]|[a-z]+[A-Z])")
_LINK = re.compile(r"\[([^\]\n]+)\]\([^)\s]+\)")
_WORD = re.compile(r"\w+")
_INTRODUCES, _ASKS = (":", "："), ("?", "？")
_NUMBERED = re.compile(r"\s*\d{1,3}[.)]\s")
_CLOSING_FENCE = re.compile(r"\n {0,3}(?:`{3,}|~{3,})[ \t]*(?=\n|$)")
_BREAK = re.compile(r"[;:,，、；：—–]\s*|\s+")


@dataclass(frozen=True, slots=True)
class Segment:
    """`text[start:end]` without surrounding white space. `header` is a table's header, which a row
    needs to be understood; `heading` the last heading of the text above it, without its marks.
    `cut` says that the sentence continues after it."""

    kind: SegmentKind
    start: int
    end: int
    header: str = ""
    cut: bool = False
    heading: str = ""


def is_reference(part: Segment, text: str) -> bool:
    """Whether it is only a Markdown link, little more than one in a list item, asks something, or
    ends in a colon and introduces what follows: its content is elsewhere."""
    segment_text = text[part.start : part.end]
    if part.kind in ("item", "sentence") and segment_text.rstrip("*_").endswith(
        (*_INTRODUCES, *_ASKS)
    ):
        return True
    link = _LINK.match(segment_text)
    if part.kind not in ("item", "sentence") or link is None:
        return False
    words_after = _WORD.findall(segment_text[link.end() :])
    return len(words_after) <= (len(_WORD.findall(link[1])) if part.kind == "item" else 0)


def without_links(text: str) -> str:
    """The text without the words of Markdown links, which speak of the page they lead to."""
    return _LINK.sub(" ", text)


def join_blocks(text: str, parts: list[Segment]) -> list[Segment]:
    """The segments of `text`, with those that are understood only together joined: numbered steps,
    code, lists and tables with the sentence that introduces them, and a question with what follows.

    Steps and introduced code stand in the place of their parts; a list or table that is introduced
    comes beside its items and rows, each of which may be an answer of its own.
    """
    joined: list[Segment] = []
    at = 0
    while at < len(parts):
        part, end = parts[at], at + 1
        spoken = text[part.start : part.end].rstrip("*_")
        introduces = part.kind in ("sentence", "item") and spoken.endswith(_INTRODUCES)
        follows = parts[end] if end < len(parts) else None
        asks = part.kind == "sentence" and spoken.endswith(_ASKS)
        if asks and follows is not None and follows.kind == "sentence":
            joined.append(replace(follows, start=part.start))
            at += 2
            continue
        first = parts[at + introduces] if at + introduces < len(parts) else part
        line = text.rfind("\n", 0, first.start) + 1
        is_numbered = first.kind == "item" and bool(_NUMBERED.match(text, line))
        if is_numbered or (introduces and first.kind in ("item", "row", "code")):
            kinds = {first.kind, "code"} if first.kind == "item" else {first.kind}
            end = at + introduces
            while end < len(parts) and parts[end].kind in kinds:
                if parts[end].end - part.start > MAX_BLOCK_CHARACTERS:
                    break
                end += 1
            # A list or table of one entry is that entry.
            if end - at - introduces >= (1 if introduces and first.kind == "code" else 2):
                last = parts[end - 1].end
                if parts[end - 1].kind == "code" and (fence := _CLOSING_FENCE.match(text, last)):
                    last = fence.end()
                start = part.start if introduces else line + _leading_space(text, line)
                joined.append(Segment("block", start, last, heading=part.heading))
                if is_numbered or first.kind == "code":
                    at = end
                    continue
        joined.append(part)
        at += 1
    return joined


def _leading_space(text: str, start: int) -> int:
    return len(text) - start - len(text[start:].lstrip())


def split_segments(text: str) -> list[Segment]:
    """All segments in order, without horizontal rules and code fences."""
    lines = [match.span() for match in _LINE.finditer(text) if match[0]]
    segments: list[Segment] = []
    at = 0
    while at < len(lines):
        line = text[slice(*lines[at])]
        end = at + 1
        if fence := _FENCE.match(line):
            while end < len(lines) and not text[slice(*lines[end])].strip().startswith(fence[1]):
                end += 1
            segments += _code_segments(text, lines[at + 1 : end])
            end += 1
        elif _ROW.match(line):
            while end < len(lines) and _ROW.match(text[slice(*lines[end])]):
                end += 1
            segments += _table_rows(text, lines[at:end])
        elif _HEADING.match(line):
            segments += _trimmed("heading", text, *lines[at])
        elif line.strip() and not _RULE.match(line):
            # A paragraph ends at a blank line, or where another block begins.
            begins = (_FENCE, _ROW, _HEADING, _ITEM, _RULE)
            while end < len(lines) and not any(
                pattern.match(text[slice(*lines[end])]) for pattern in begins
            ):
                end += 1
            item = _ITEM.match(line)
            start = lines[at][0] + (item.end() if item else 0)
            kind: SegmentKind = "item" if item else "sentence"
            segments += _sentences(kind, text, start, lines[end - 1][1])
        at = end
    heading = ""
    for place, segment in enumerate(segments):
        if segment.kind == "heading":
            heading = text[segment.start : segment.end].lstrip("# ")
        elif heading:
            segments[place] = replace(segment, heading=heading)
    return segments


def _code_segments(text: str, lines: list[tuple[int, int]]) -> Iterator[Segment]:
    """Whole lines of code, split at blank lines where a segment gets too long."""
    start = 0
    for number in range(len(lines)):
        is_last = number + 1 == len(lines)
        long = not is_last and lines[number + 1][1] - lines[start][0] > MAX_SEGMENT_CHARACTERS
        blank = not is_last and not text[slice(*lines[number])].strip()
        if (
            is_last
            or long
            or (blank and lines[number][1] - lines[start][0] > MAX_SEGMENT_CHARACTERS // 3)
        ):
            first, last = lines[start][0], lines[number][1]
            body = text[first:last].rstrip()
            if body.strip():
                yield Segment("code", first, first + len(body))
            start = number + 1


def _table_rows(text: str, lines: list[tuple[int, int]]) -> Iterator[Segment]:
    """A table's rows; the first is their header if a separator line follows it."""
    has_header = len(lines) > 1 and bool(_RULE.match(text[slice(*lines[1])]))
    header = text[lines[0][0] : lines[1][1]].strip("\n") if has_header else ""
    for span in lines[2:] if has_header else lines:
        if not _RULE.match(text[slice(*span)]):
            yield from (
                Segment("row", part.start, part.end, header)
                for part in _trimmed("row", text, *span)
            )
    if has_header and len(lines) == 2:
        yield from _trimmed("row", text, *lines[0])


def _sentences(kind: SegmentKind, text: str, start: int, end: int) -> Iterator[Segment]:
    first = start
    for stop in _STOP.finditer(text, start, end):
        if (
            _is_sentence_end(text, first, stop.end(), end)
            and len(text[first : stop.end()].strip()) >= MIN_SENTENCE_CHARACTERS
        ):
            yield from _split_long(kind, text, first, stop.end())
            first = stop.end()
    yield from _split_long(kind, text, first, end)


def _is_sentence_end(text: str, start: int, place: int, end: int) -> bool:
    """Whether a sentence ends at this full stop, rather than an abbreviation, number or name."""
    if text[place - 1] in "。！？｡」』》）】":
        return True
    if not text[place:end].strip():
        return True
    if _ABBREVIATION.search(text[max(start, place - 12) : place]) or _ORDINAL.search(
        text[start:place]
    ):
        # `in World War II. He`, but `on 3. May` and `Dr. No`
        return False
    return bool(_SENTENCE_START.match(text, place))


def _split_long(kind: SegmentKind, text: str, start: int, end: int) -> Iterator[Segment]:
    """One sentence, or several segments of one that is too long."""
    for part in _trimmed(kind, text, start, end):
        first = part.start
        while part.end - first > MAX_SEGMENT_CHARACTERS:
            place = _cut_position(text, first, first + MAX_SEGMENT_CHARACTERS)
            yield from (
                Segment(kind, piece.start, piece.end, cut=True)
                for piece in _trimmed(kind, text, first, place)
            )
            first = place
        yield from _trimmed(kind, text, first, part.end)


def _cut_position(text: str, start: int, end: int) -> int:
    """Cut after the last punctuation in the second half, else after the last word."""
    middle = (start + end) // 2
    pauses = list(_BREAK.finditer(text, middle, end))
    strong = [match.end() for match in pauses if match[0].strip()]
    places = strong or [match.end() for match in pauses]
    place = places[-1] if places else end
    edge = place
    while edge > middle and may_combine(text[edge - 1], text[edge]):
        edge -= 1
    return (
        edge if edge > middle else place
    )  # a grapheme cluster longer than half the segment is split


def _trimmed(kind: SegmentKind, text: str, start: int, end: int) -> Iterator[Segment]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Segment(kind, start, end)

"""What the pages of a document show besides its text: pages of long texts, sections, passages
around the marked one (`split_pages`), and differences between two versions (`diff_texts`)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest

from documents.document_html import OutlineEntry
from documents.models import Chunk

PAGE_CHARACTERS = 60_000


@dataclass(frozen=True, slots=True)
class TextPage:
    """Characters from `start` to `end` of a document; `number` counts from 1 to `count`."""

    number: int
    count: int
    start: int
    end: int


def split_pages(
    length: int, boundaries: Sequence[int], *, size: int = PAGE_CHARACTERS
) -> list[TextPage]:
    """Pages of about `size` characters that begin at `boundaries`, which ascend.

    A page is longer than `size` only if it contains no boundary. There is always at least one.
    """
    starts = [0]
    candidate = 0
    for boundary in [*boundaries, length]:
        if boundary - starts[-1] > size and candidate > starts[-1]:
            starts.append(candidate)
        candidate = boundary
    ends = [*starts[1:], length]
    return [
        TextPage(number=number, count=len(starts), start=start, end=end)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
    ]


def page_at(parts: Sequence[TextPage], offset: int) -> TextPage:
    """The page with the character at `offset`; the last one if it is beyond the end."""
    return next((part for part in parts if offset < part.end), parts[-1])


#: Passages listed at once.
LISTED_PASSAGES = 8


@dataclass(frozen=True, slots=True)
class PassageList:
    """Some of a document's passages; `number` is the position of the marked one among `count`, 0 if
    none is marked."""

    listed: Sequence[Chunk]
    count: int
    number: int
    marked: Chunk | None
    previous: Chunk | None
    following: Chunk | None


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A heading known only from the passages under it. `level` counts from 1."""

    title: str
    level: int
    first: Chunk


def passages_around(chunks: Sequence[Chunk], marked: Chunk | None, part: TextPage) -> PassageList:
    """The passages near the marked one, or from the beginning of the shown page."""
    if marked is None:
        begin = (index for index, chunk in enumerate(chunks) if chunk.start >= part.start)
        at, first = -1, next(begin, 0)
    else:
        at = chunks.index(marked)
        first = at - LISTED_PASSAGES // 2
    first = max(0, min(first, len(chunks) - LISTED_PASSAGES))
    return PassageList(
        listed=chunks[first : first + LISTED_PASSAGES],
        count=len(chunks),
        number=at + 1,
        marked=marked,
        previous=chunks[at - 1] if at > 0 else None,
        following=chunks[at + 1] if marked and at + 1 < len(chunks) else None,
    )


def sections_of(chunks: Sequence[Chunk], part: TextPage) -> list[DocumentSection]:
    """The headings that begin on a page, from the heading paths of its passages."""
    sections: list[DocumentSection] = []
    above: list[str] = []
    for chunk in chunks:
        path = list(chunk.heading_path)
        if part.start <= chunk.start < part.end:
            pairs = zip(above, path, strict=False)
            known = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            sections += [
                DocumentSection(title, level, chunk)
                for level, title in enumerate(path, start=1)
                if level > known
            ]
        above = path
    return sections


def normalize_levels(outline: Sequence[OutlineEntry]) -> list[OutlineEntry]:
    """The outline shifted so that its highest headings have level 1."""
    highest = min((entry.level for entry in outline), default=1)
    return [replace(entry, level=entry.level - highest + 1) for entry in outline]


#: Unchanged paragraphs shown before and after a change.
CONTEXT_PARAGRAPHS = 1
#: Longer texts are not compared word by word, which takes quadratic time.
MAX_COMPARED_WORDS = 1_000
#: Minimum share of common words; otherwise both texts are shown completely.
MIN_WORD_OVERLAP = 0.3
_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_PARAGRAPHS = re.compile(r"\n(?:[ \t]*\n)+")


#: Whether some words are "same", "gone" (deleted) or "new"; and the words.
DiffPiece = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DiffBlock:
    """A paragraph with its changes; or, without pieces, `left_out` unchanged paragraphs."""

    pieces: tuple[DiffPiece, ...] = ()
    left_out: int = 0


def diff_texts(before: str, after: str) -> list[DiffBlock]:
    """Changed paragraphs with one unchanged paragraph around them; empty if nothing changed."""
    old, new = _paragraphs(before), _paragraphs(after)
    matcher = SequenceMatcher(
        None,
        [_comparison_key(text) for text in old],
        [_comparison_key(text) for text in new],
        autojunk=False,
    )
    steps = matcher.get_opcodes()
    blocks: list[DiffBlock] = []
    for at, (step, first, last, new_first, new_last) in enumerate(steps):
        if step != "equal":
            # The n-th deleted paragraph is compared with the n-th new one.
            pairs = zip_longest(old[first:last], new[new_first:new_last], fillvalue="")
            blocks += [DiffBlock(diff_words(gone, come)) for gone, come in pairs]
            continue
        same = [DiffBlock((("same", paragraph),)) for paragraph in old[first:last]]
        head = 0 if at == 0 else CONTEXT_PARAGRAPHS
        tail = 0 if at == len(steps) - 1 else CONTEXT_PARAGRAPHS
        hidden = len(same) - head - tail
        if hidden > 1:
            same[head : head + hidden] = [DiffBlock(left_out=hidden)]
        blocks += same
    return blocks if any(step != "equal" for step, *_ in steps) else []


def diff_words(before: str, after: str) -> tuple[DiffPiece, ...]:
    """The differences of one paragraph, word by word."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    whole = tuple(piece for piece in (("gone", before), ("new", after)) if piece[1])
    if len(old) * len(new) > MAX_COMPARED_WORDS**2:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < MIN_WORD_OVERLAP:
        return whole
    pieces: list[DiffPiece] = []
    for step, first, last, new_first, new_last in matcher.get_opcodes():
        gone, come = "".join(old[first:last]), "".join(new[new_first:new_last])
        if step == "equal":
            pieces.append(("same", come))
            continue
        if gone:
            pieces.append(("gone", gone))
        if come:
            pieces.append(("new", come))
    return tuple(pieces)


def _paragraphs(text: str) -> list[str]:
    return [part for part in _PARAGRAPHS.split(text) if part.strip()]


def _comparison_key(paragraph: str) -> str:
    """The paragraph with white space normalised, which is no difference."""
    return " ".join(paragraph.split())

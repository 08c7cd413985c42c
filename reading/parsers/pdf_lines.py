"""Lines of a PDF page: words into fragments without wide gaps, fragments into rows, rows into text.
Begin with `make_fragments`; `join_lines` is how wrapped lines become a paragraph again."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from common.text import CJK
from reading.parsers.normalise import normalise_text, without_invisible
from reading.parsers.pdf_bidi import RIGHT_TO_LEFT, is_right_to_left, logical_line
from reading.parsers.pdf_page import TextRun

#: In sizes of the font. Spaces of justified lines are narrower, gaps between cells mostly wider.
WIDE_GAP = 0.7
_LIGATURES = {
    "ﬀ": "ff",
    "ﬁ": "fi",
    "ﬂ": "fl",
    "ﬃ": "ffi",
    "ﬄ": "ffl",
    "ﬅ": "st",
    "ﬆ": "st",
    # Symbol and Wingdings have their bullets in the private area.
    "\uf0b7": "•",
    "\uf0a7": "▪",
    "\uf0d8": "➢",
    "\uf0fc": "✓",
    "\uf0e0": "→",
    "\u00a0": " ",
}
_LIGATURE_TABLE = str.maketrans(_LIGATURES)
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\ufeff\ufffd\ufffe\uffff\ue000-\uf8ff]")
#: The dots that lead from a title to its page number, in a table of contents.
_DOT_LEADER = re.compile(r"(?: ?\.){5,}")
_LEADER_END = re.compile(r"… ?\S{1,8}$")
#: Around the text and the address of a web link, until it is known how the text is written.
LINK_START, LINK_MIDDLE, LINK_END = "\ue000", "\ue001", "\ue002"
LINK = re.compile(f"{LINK_START}([^{LINK_START}]*?){LINK_MIDDLE}([^{LINK_END}]*){LINK_END}")
#: One link whose words are on two lines.
_LINK_PARTS = re.compile(
    f"{LINK_MIDDLE}([^{LINK_END}]*){LINK_END} "
    f"{LINK_START}([^{LINK_MIDDLE}]*){LINK_MIDDLE}\\1{LINK_END}"
)
LIST_ITEM = re.compile(
    r"(?:[-*+•–▪◦‣·○●■□➢✓→]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\([ivx]{1,5}\)|[☑☐☒])(?:\s|$)"
)


class Fragment:
    """Words of one line without a wide gap between them, and their box in points."""

    __slots__ = ("size", "words", "x0", "x1", "y0", "y1")

    def __init__(self, words: list[TextRun]) -> None:
        self.words = words
        if len(words) == 1:
            _, self.x0, self.y0, self.x1, self.y1, self.size, *_ = words[0]
            return
        self.x0 = min(word.x0 for word in words)
        self.y0 = min(word.y0 for word in words)
        self.x1 = max(word.x1 for word in words)
        self.y1 = max(word.y1 for word in words)
        self.size = max(word.size for word in words)

    @property
    def characters(self) -> int:
        """Number of characters without spaces."""
        return sum(len(word.text) - word.text.count(" ") for word in self.words)


def make_fragments(words: Iterable[TextRun]) -> list[Fragment]:
    """Fragments from words in the order of the content."""
    fragments: list[Fragment] = []
    current: list[TextRun] = []
    before: TextRun | None = None
    for word in words:
        if before is not None:
            if not word.begins_line and _are_close(before, word):
                current.append(word)
                before = word
                continue
            fragments.append(Fragment(current))
        current = [word]
        before = word
    if current:
        fragments.append(Fragment(current))
    return fragments


def _are_close(before: TextRun, word: TextRun) -> bool:
    """Whether a word follows another on its line, without a wide gap."""
    size = before.size if before.size > word.size else word.size
    if not -0.6 * size <= word.x0 - before.x1 <= WIDE_GAP * size:
        return False
    if before.y0 == word.y0:
        return True
    overlap = min(word.y1, before.y1) - max(word.y0, before.y0)
    return overlap >= 0.4 * min(word.y1 - word.y0, before.y1 - before.y0)


class Row:
    """Fragments side by side, from left to right, their words, and their box in points."""

    __slots__ = ("fragments", "size", "words", "x0", "x1", "y0", "y1")

    def __init__(self, fragments: list[Fragment]) -> None:
        first = fragments[0]
        self.fragments = fragments
        if len(fragments) == 1 and len(first.words) == 1:
            self.words, self.size = first.words, first.size
            self.x0, self.y0, self.x1, self.y1 = first.x0, first.y0, first.x1, first.y1
            return
        self.words = [word for each in fragments for word in each.words]
        if len(fragments) > 1:
            self.words.sort(key=lambda word: word.x0)
        self.x0 = min(each.x0 for each in fragments)
        self.x1 = max(each.x1 for each in fragments)
        # The size of most of its letters: a note's sign or a formula may be taller.
        letters: dict[float, int] = {}
        for word in self.words:
            letters[word.size] = letters.get(word.size, 0) + len(word.text)
        self.size = max(letters, key=lambda size: letters[size])
        main = [each for each in fragments if each.size >= 0.8 * self.size] or fragments
        self.y0 = min(each.y0 for each in main)
        self.y1 = max(each.y1 for each in main)

    @property
    def characters(self) -> int:
        """Number of characters without spaces."""
        return sum(len(word.text) - word.text.count(" ") for word in self.words)

    @property
    def is_bold(self) -> bool:
        """Whether all of its words are."""
        return all(word.is_bold for word in self.words)

    @property
    def is_monospaced(self) -> bool:
        """Whether all of its words are in a font whose letters have one width."""
        return all(word.is_monospaced for word in self.words)

    @property
    def has_wide_gap(self) -> bool:
        """Whether it may be a row of a table."""
        least = WIDE_GAP * self.size
        return any(right.x0 - left.x1 > least for left, right in pairwise(self.words))


def _left_edge(fragment: Fragment) -> float:
    return fragment.x0


def make_rows(fragments: Iterable[Fragment]) -> list[Row]:
    """Rows from top to bottom: fragments on one height that do not cover one another."""
    groups: list[list[Fragment]] = []  # from left to right
    # The largest fragment of each group.
    largest: list[Fragment] = []
    for fragment in sorted(fragments, key=lambda each: each.y0 + each.y1):
        y0, y1 = fragment.y0, fragment.y1
        for at in range(len(groups) - 1, max(len(groups) - 5, -1), -1):
            other = largest[at]
            overlap = (y1 if y1 < other.y1 else other.y1) - (y0 if y0 > other.y0 else other.y0)
            if overlap < 0.5 * (y1 - y0) and overlap < 0.5 * (other.y1 - other.y0):
                continue
            group = groups[at]
            place = bisect_right(group, fragment.x0, key=_left_edge)
            if not any(
                min(each.x1, fragment.x1) - max(each.x0, fragment.x0) > 0.3 * fragment.size
                for each in group[max(place - 1, 0) : place + 1]
            ):
                group.insert(place, fragment)
                if fragment.size > other.size:
                    largest[at] = fragment
                break
        else:
            groups.append([fragment])
            largest.append(fragment)
    rows = [Row(group) for group in groups]
    rows.sort(key=lambda row: row.y1)
    return rows


def line_text(words: Sequence[TextRun]) -> str:
    """The words, which are given from left to right, with single spaces in the order of reading,
    without ligatures and glyphs that mean nothing; web links are between their marks."""
    if any(not word.text.isascii() and RIGHT_TO_LEFT.search(word.text) for word in words):
        return _bidirectional(words)
    if words and words[0].is_mirrored:
        words = words[::-1]
    if len(words) == 1 and not words[0].link:
        return _clean(words[0].text)
    if any(word.link for word in words):
        parts = []
        for link, linked in groupby(words, key=lambda word: word.link):
            text = _clean(" ".join(word.text for word in linked))
            parts.append(_linked(text, link) if link and text else text)
        return " ".join(filter(None, parts))
    return _clean(" ".join([word.text for word in words]))


def _bidirectional(words: Sequence[TextRun]) -> str:
    """A line with Hebrew or Arabic in logical order, with the marks of its links."""
    is_rtl = words[0].is_mirrored or is_right_to_left("".join(word.text for word in words))
    if is_rtl and not words[0].is_mirrored:
        words = words[::-1]
    parts = []
    for link, linked in groupby(words, key=lambda word: word.link):
        text = _clean(logical_line([word.text for word in linked], is_rtl=is_rtl))
        parts.append(_linked(text, link) if link and text else text)
    return " ".join(filter(None, parts))


def _linked(text: str, address: str) -> str:
    """Nothing is added where the text says the address itself."""
    shown = re.sub(r"^https?://(?:www\.)?|/$", "", address.lower())
    if text.lower().strip("/").endswith(shown) or shown.split("/")[0] in text.lower():
        return text
    return f"{LINK_START}{text}{LINK_MIDDLE}{address}{LINK_END}"


def _clean(text: str) -> str:
    if not text.isascii():
        text = _NO_TEXT.sub("", normalise_text(text).translate(_LIGATURE_TABLE))
        text = text.replace("\u017ft", "st")  # as pdfium takes the ligature apart
    elif not text.isprintable():
        text = _NO_TEXT.sub("", text)
    if "....." in text or ". . . ." in text:
        text = _DOT_LEADER.sub(" …", text)
    return " ".join(text.split())


class Line(NamedTuple):
    """The text of a row, its left and right edge, and the width of its first word, in points."""

    text: str
    x0: float
    x1: float
    first_width: float
    size: float


def make_line(words: Sequence[TextRun]) -> Line:
    """The line of words that go from left to right; there is at least one."""
    first = words[0]
    right = max(word.x1 for word in words)
    return Line(line_text(words), first.x0, right, first_word_width(first), first.size)


def first_word_width(run: TextRun) -> float:
    """In points; of a run of several words about, and not too little."""
    word = run.text.partition(" ")[0]
    width = run.x1 - run.x0
    return width if word == run.text else width * 1.15 * len(word) / len(run.text)


#: Sizes of the font that a break which is meant leaves besides the next word, at least.
_CLEAR_ROOM = 1.5
_HYPHENS = ("-", "\u00ad", "\u2010")
_CJK_END = re.compile(f"[{CJK}\u3000-\u303f\uff00-\uffef]$")
_CJK_START = re.compile(f"[{CJK}\u3000-\u303f\uff00-\uffef]")


def join_lines(lines: Sequence[Line], *, right: float) -> str:
    """Lines as a paragraph: they run on where the next word had no room before the edge at
    `right`; other breaks stay. Hyphens at the ends of lines are resolved."""
    text = lines[0].text if lines else ""
    for before, line in pairwise(lines):
        has_room = before.x1 + line.first_width + _CLEAR_ROOM * line.size < right
        breaks = has_room or LIST_ITEM.match(line.text) or _LEADER_END.search(before.text)
        text = join_texts(text, line.text, breaks=bool(breaks))
    if LINK_START in text:
        while (joined := _LINK_PARTS.sub(rf" \2{LINK_MIDDLE}\1{LINK_END}", text)) != text:
            text = joined
    return without_invisible(text)


def join_texts(text: str, following: str, *, breaks: bool) -> str:
    """Two lines as one, or on two lines if the first `breaks` and no word goes on."""
    if not text or not following:
        return text or following
    if text.endswith(_HYPHENS) and text[-2:-1].isalpha():
        # `infor-/mation` is one word; `Smith-/Jones` keeps its hyphen.
        if following[0].islower():
            return text[:-1] + following
        if not breaks:
            return text + following
    if breaks:
        return f"{text}\n{following}"
    if _CJK_END.search(text) and _CJK_START.match(following):
        return text + following
    return f"{text} {following}"

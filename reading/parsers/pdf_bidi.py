"""Arabic, Hebrew and the like on PDF pages: glyphs by their places into words in logical order, by
the Unicode bidirectional algorithm. Begin with `right_to_left_lines`."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from bidi import get_display

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]")
_PRESENTATION_FORM = re.compile("[\ufb1d-\ufdff\ufe70-\ufefc]+")
#: The letters of Arabic ligatures in logical order, such as those of lam and alef.
_LIGATURES = frozenset(
    unicodedata.normalize("NFKC", chr(code))
    for code in (*range(0xFBEA, 0xFDFC), *range(0xFEF5, 0xFEFD))
)
#: In sizes of the font: spaces are wider, gaps between letters of a word narrower.
_WORD_GAP = 0.15
#: In sizes of the font, on average.
_LETTER_WIDTH, _WIDE_LETTER, _BEARING = 0.5, 0.8, 0.07
_WIDE_LETTERS = frozenset("\u0633\u0634\u0635\u0636")
#: Joined letters touch each other, those behind a yeh in each font looked at.
_NARROW_GAP, _NARROWEST_GAP = 0.05, 0.025
_NON_JOINER = "\u200c"
_PERSIAN_LETTERS = frozenset("\u06cc\u06a9\u067e\u0686")
_ARABIC_LETTER = re.compile("[\u0620-\u063f\u0641-\u064a\u066e-\u06d3]")
_RIGHT_JOINING = frozenset(
    "\u0621\u0622\u0623\u0624\u0625\u0627\u0629\u062f\u0630\u0631\u0632\u0648\u0698\u06c0"
)
#: In sizes of the font: glyphs whose baselines are further apart are on different lines.
_SAME_LINE = 0.5
_LEFT_TO_RIGHT_MARK = "\u200e"
#: Before a number that a capitalized word is to the left of, both from right to left.
_NUMBER_OF_NAME = re.compile(r"(?<![A-Za-z\d.,:/])(?=[\d.,]*\d [a-z]{2,}[A-Z](?![a-z]))")
_MIRRORED = str.maketrans("()[]{}<>«»‹›", ")(][}{><»«›‹")
_BRACKET = re.compile("[][(){}<>«»‹›]")
_CLOSING = ")]}>»›"


class Glyph(NamedTuple):
    """A character of a page: its left and right edge, where it was drawn from, and the size of its
    font, in points, and its index in the page's text (`position`)."""

    text: str
    x0: float
    x1: float
    x: float
    y: float
    size: float
    position: int


class VisualWord(NamedTuple):
    """A word in logical order and the indexes of its characters in the page's text."""

    text: str
    indexes: list[int]


def is_right_to_left(text: str) -> bool:
    """Whether most letters are of scripts written from right to left."""
    letters = sum(character.isalpha() for character in text)
    return 2 * len(RIGHT_TO_LEFT.findall(text)) > letters


def reading_order(text: str, *, is_rtl: bool) -> str:
    """Logical text from the characters of a line as they are seen, given from right to left
    (`is_rtl`) or from left to right; and back. The algorithm is its own inverse, but for numbers
    behind names: those in `Python 3.11` look as in `3.11 Python`."""
    if not is_rtl:
        return str(get_display(text, base_dir="L"))
    text = _NUMBER_OF_NAME.sub(_LEFT_TO_RIGHT_MARK, text)
    return str(get_display(text, base_dir="R"))[::-1].replace(_LEFT_TO_RIGHT_MARK, "")


def logical_line(words: Sequence[str], *, is_rtl: bool) -> str:
    """The text of a line of words that are each in logical order and are given as they are seen:
    from right to left (`is_rtl`) or from left to right."""
    seen = " ".join(reading_order(word, is_rtl=is_rtl) for word in words)
    return _with_mirrored_brackets(reading_order(seen, is_rtl=is_rtl), is_rtl=is_rtl)


def right_to_left_lines(glyphs: Sequence[Glyph], *, is_rtl: bool) -> Iterator[list[VisualWord]]:
    """The lines of glyphs in any order, each from right to left (`is_rtl`) or from left to right.
    Programs write glyphs in either order, so only their places count."""
    has_joiners = any(glyph.text in _PERSIAN_LETTERS for glyph in glyphs)
    for line in _lines(_units(glyphs, is_rtl=is_rtl)):
        line.sort(key=lambda unit: unit.x0 + unit.x1, reverse=is_rtl)
        words: list[list[_Unit]] = [[]]
        for unit in line:
            if unit.text == " " or (words[-1] and _gap(words[-1][-1], unit) > _WORD_GAP):
                words.append([])
            if unit.text != " ":
                words[-1].append(unit)
        yield [
            VisualWord(
                reading_order(_seen_text(word, has_joiners=has_joiners), is_rtl=is_rtl),
                [index for unit in word for index in unit.indexes],
            )
            for word in words
            if word
        ]


def _gap(before: "_Unit", unit: "_Unit") -> float:
    """In sizes of the font."""
    return max(before.x0 - unit.x1, unit.x0 - before.x1) / max(before.size, unit.size, 1.0)


def _seen_text(word: Sequence["_Unit"], *, has_joiners: bool) -> str:
    """The text of a word, in Persian with the non-joiners that part letters."""
    text = word[0].text
    for before, unit in pairwise(word):
        narrow = _NARROWEST_GAP if before.text == "\u06cc" else _NARROW_GAP
        if has_joiners and _gap(before, unit) > narrow and _would_join(before, unit):
            text += _NON_JOINER
        text += unit.text
    return text


def _would_join(before: "_Unit", unit: "_Unit") -> bool:
    return (
        _ARABIC_LETTER.match(before.text[-1]) is not None
        and before.text[-1] not in _RIGHT_JOINING
        and _ARABIC_LETTER.match(unit.text) is not None
        and not any(map(unicodedata.combining, unit.text))
    )


class _Unit(NamedTuple):
    """A letter with its marks, or a ligature, in logical order if it is from right to left."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    indexes: list[int]


def _units(glyphs: Sequence[Glyph], *, is_rtl: bool) -> list[_Unit]:
    """Characters that are drawn from one place are of one glyph or cluster; other marks belong to
    the nearest letter."""
    clusters: dict[tuple[float, float], list[Glyph]] = {}
    for glyph in glyphs:
        if glyph.text != " " or glyph.x1 > glyph.x0:
            place = (round(glyph.x, 2), round(glyph.y, 2))
            clusters.setdefault(place, []).append(glyph)
    letters = [each for each in clusters.values() if not all(map(_is_mark, each))]
    for marks in clusters.values():
        beside = [each for each in letters if abs(each[0].y - marks[0].y) < marks[0].size]
        if all(map(_is_mark, marks)) and beside:
            middle = (marks[0].x0 + marks[0].x1) / 2
            min(beside, key=lambda each: abs((each[0].x0 + each[0].x1) / 2 - middle)).extend(marks)
    units: list[_Unit] = []
    widths: dict[str, float] = {}
    # pdfium gives the letter of a cluster with marks a part of its width only.
    for cluster in sorted(letters, key=len):
        x0 = min(min(glyph.x0, glyph.x) for glyph in cluster)
        x1 = max(glyph.x1 for glyph in cluster)
        own = [glyph for glyph in cluster if not _is_mark(glyph)]
        if RIGHT_TO_LEFT.search(own[0].text):
            # pdfium reverses the letters of a ligature, or gives each its part of the box.
            own.reverse()
            own.sort(key=lambda glyph: -glyph.x0)
        text = _without_forms("".join(glyph.text for glyph in own))
        # Those of ligatures with a character of their own it does not reverse.
        if text[::-1] in _LIGATURES and text not in _LIGATURES:
            text = text[::-1]
        text += _without_forms("".join(glyph.text for glyph in filter(_is_mark, cluster)))
        text = unicodedata.normalize("NFC", text)
        if is_rtl != bool(RIGHT_TO_LEFT.search(text)):
            text = text[::-1]
        size = own[0].size
        if len(cluster) > len(own):
            usual = _WIDE_LETTER if own[0].text in _WIDE_LETTERS else _LETTER_WIDTH
            x1 = max(x1, x0 + (widths.get(own[0].text, usual) + _BEARING) * size)
        else:
            widths.setdefault(own[0].text, (x1 - x0) / max(size, 1.0))
        indexes = [glyph.position for glyph in cluster]
        units.append(_Unit(text, x0, x1, own[0].y, size, indexes))
    return units


def _without_forms(text: str) -> str:
    """Letters in place of their presentation forms."""
    return _PRESENTATION_FORM.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


def _is_mark(glyph: Glyph) -> bool:
    return unicodedata.combining(glyph.text) > 0


def _lines(units: Sequence[_Unit]) -> list[list[_Unit]]:
    lines: list[list[_Unit]] = []
    for unit in units:
        for line in lines:
            if abs(line[0].y - unit.y) < _SAME_LINE * max(unit.size, line[0].size):
                line.append(unit)
                break
        else:
            lines.append([unit])
    return lines


def _with_mirrored_brackets(text: str, *, is_rtl: bool) -> str:
    """Brackets as they are meant: in text from right to left they look like their counterparts. A
    pair goes the way of its first (rule N0 of the algorithm)."""
    if not _BRACKET.search(text):
        return text
    letters = list(text)
    pairs: list[bool] = []
    depth = lowest = 0
    is_after_ltr = not is_rtl
    for at, letter in enumerate(text):
        mirrored = letter.translate(_MIRRORED)
        if letter.isalpha():
            is_after_ltr = not RIGHT_TO_LEFT.match(letter)
        if letter == mirrored:
            continue
        if pairs and (letter if pairs[-1] else mirrored) in _CLOSING:
            is_ltr = pairs.pop()
        else:
            after = next(filter(str.isalpha, text[at:]), "")
            sides = {is_after_ltr, not RIGHT_TO_LEFT.match(after) if after else not is_rtl}
            is_ltr = sides == {True} if is_rtl else sides != {False}
            if (letter if is_ltr else mirrored) not in _CLOSING:
                pairs.append(is_ltr)
        if not is_ltr:
            letters[at] = mirrored
            depth += -1 if mirrored in _CLOSING else 1
            lowest = min(lowest, depth)
    # pdfium turns some of the brackets between the two directions.
    round_ones = [at for at, letter in enumerate(letters) if letter in "()"]
    if letters.count("(") != letters.count(")") and not len(round_ones) % 2:
        for number, at in enumerate(round_ones):
            letters[at] = "()"[number % 2]
    # Some programs store what is meant, others what is seen, and pdfium turns both.
    return text if lowest < 0 and not depth else "".join(letters)

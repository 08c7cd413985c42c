"""How good each gap between two atoms is to cut at."""

import re
from bisect import bisect_left
from collections.abc import Sequence

from documents.chunkers.atoms import Atoms, Extent

# Worth is added to how full the chunk would be (0 to 1): a gap whose worth is higher by 0.3 is
# taken although the chunk gets 30 % shorter. Steps of 1 and more cannot be outweighed.
INSIDE_HEADING = -6.0
AFTER_HEADING = -5.0
INSIDE_LINE = -4.0
INSIDE_BLOCK = -3.0
INSIDE_WORD = -0.5
WORD = 0.0
LINE = 0.15
SENTENCE = 0.5
ITEM = 0.65
PARAGRAPH = 0.8
HEADING = 1.0
_HEADING_STEP = 0.03
_DEEPEST = 6

# Each pattern begins with the character that it needs, so that no white space is tried twice.
_NEWLINE = re.compile(r"\n\s*")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])[.!?…]['\"”’)\]»*_]*\s+|[。！？｡]+[」』”’）】]*\s*")
_LIST_ITEM = re.compile(r"(?:[-*+•–]|\d{1,3}[.)]|\(\w{1,3}\))\s")


def natural_worth(text: str, atoms: Atoms) -> list[float]:
    """Worth of the gap before each atom, from punctuation and line ends alone."""
    worth = [INSIDE_WORD if atoms.is_inside_word(k) else WORD for k in range(len(atoms))]
    if not worth:
        return worth
    first, last = atoms.starts[0], atoms.ends[-1]
    for match in _SENTENCE_END.finditer(text, first, last):
        _raise_at(worth, atoms, match.end(), _sentence_worth(text, match.end()))
    for match in _NEWLINE.finditer(text, first, last):
        _raise_at(worth, atoms, match.end(), _line_worth(text, match, worth, atoms))
    return worth


def _sentence_worth(text: str, following: int) -> float:
    """After an abbreviation the text goes on in lower case."""
    return WORD if text[following : following + 1].islower() else SENTENCE


def _line_worth(text: str, match: re.Match[str], worth: list[float], atoms: Atoms) -> float:
    """A single line end in the middle of a sentence is mostly a matter of page width."""
    if match[0].count("\n") > 1:
        return PARAGRAPH
    if _LIST_ITEM.match(text, match.end()):
        return ITEM
    index = atoms.at(match.end())
    ends_sentence = index < len(worth) and worth[index] >= SENTENCE
    return ITEM if ends_sentence else LINE


def _raise_at(worth: list[float], atoms: Atoms, offset: int, value: float) -> None:
    index = atoms.at(offset)
    if index < len(worth) and atoms.starts[index] == offset:
        worth[index] = max(worth[index], value)


def keep_blocks_whole(
    worth: list[float], text: str, atoms: Atoms, blocks: Sequence[Extent], *, budget: int
) -> None:
    """Code and tables: not cut if they fit the budget, else between their lines."""
    for start, end in blocks:
        first, last = atoms.at(start), atoms.at(end)
        fits = atoms.tokens(first, last) <= budget
        for index in range(first + 1, last):
            new_line = "\n" in text[atoms.ends[index - 1] : atoms.starts[index]]
            if new_line:
                worth[index] = INSIDE_BLOCK if fits else max(worth[index], SENTENCE)
            else:
                worth[index] = INSIDE_LINE if fits else INSIDE_WORD


def keep_headings_with_text(
    worth: list[float], atoms: Atoms, headings: Sequence[tuple[Extent, int]]
) -> None:
    """Before a heading is the best place of all, behind it one of the worst.

    A heading alone says nothing and is found by everything: rather is the code or table behind it
    cut. `headings` are the extents of heading lines with their levels. A heading with nothing
    behind it is no place to cut.
    """
    lines = [(atoms.at(start), atoms.at(end), level) for (start, end), level in headings]
    lines = [line for line in lines if line[0] < line[1]]
    size = len(worth)
    for first, _, level in lines:
        worth[first] = HEADING + _HEADING_STEP * (_DEEPEST - min(level, _DEEPEST))
    for first, last, _ in lines:
        worth[first + 1 : last] = [INSIDE_HEADING] * (last - first - 1)
        if last < size:
            worth[last] = AFTER_HEADING
    tail = size
    for first, last, _ in reversed(lines):
        if last != tail:
            break
        worth[first], tail = AFTER_HEADING, first


def indices_from(places: Sequence[int], first: int, last: int) -> Sequence[int]:
    """Those of the sorted `places` that lie in `first..last`."""
    return places[bisect_left(places, first) : bisect_left(places, last + 1)]

"""The numbers that Word shows before list items and headings, which stand nowhere in the text."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from documents.parsers.docx_styles import Numbered, value
from documents.parsers.office_xml import Element, W, integer

_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Level:
    start: int = 1
    kind: str = "bullet"
    text: str = ""


@dataclass(frozen=True, slots=True)
class _List:
    """Lists of one `scheme` count on where another stopped, unless they restart a level."""

    scheme: str
    restarts: dict[int, int]


class Numbering:
    """Counts the items of all lists in the order of the text."""

    def __init__(self, root: Element | None) -> None:
        nodes = [] if root is None else [node for node in root if isinstance(node.tag, str)]
        self._schemes = {
            node.get(f"{W}abstractNumId", ""): _levels(node)
            for node in nodes
            if node.tag == f"{W}abstractNum"
        }
        self._lists = {
            node.get(f"{W}numId", ""): _List(value(node, "abstractNumId"), _restarts(node))
            for node in nodes
            if node.tag == f"{W}num"
        }
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[Numbered] = set()

    def label(self, numbered: Numbered) -> str | None:
        """The next number, such as `2.1` or `(a)`; empty for a bullet, None where is no list."""
        entry = self._lists.get(numbered.list_id)
        if entry is None:
            return None
        levels = self._schemes.get(entry.scheme, {})
        counts = self._counts.setdefault(entry.scheme, {})
        at = numbered.level
        if at in entry.restarts and numbered not in self._begun:
            counts[at] = entry.restarts[at] - 1
        self._begun.add(numbered)
        level = levels.get(at, _Level())
        counts[at] = counts.get(at, level.start - 1) + 1
        for deeper in [other for other in counts if other > at]:
            del counts[deeper]
        if level.kind in {"bullet", "none"}:
            return ""
        return _PLACE.sub(lambda place: _shown(levels, counts, int(place[1]) - 1), level.text)


def _shown(levels: dict[int, _Level], counts: dict[int, int], at: int) -> str:
    level = levels.get(at, _Level(kind="decimal"))
    number = counts.get(at, level.start)
    return _FORMATS.get(level.kind, str)(number) if number > 0 else str(number)


def _levels(scheme: Element) -> dict[int, _Level]:
    return {
        integer(node.get(f"{W}ilvl")): _Level(
            start=integer(value(node, "start"), 1),
            kind=value(node, "numFmt") or "decimal",
            text=value(node, "lvlText"),
        )
        for node in scheme.iterfind(f"{W}lvl")
    }


def _restarts(entry: Element) -> dict[int, int]:
    overrides = entry.iterfind(f"{W}lvlOverride")
    starts = {integer(node.get(f"{W}ilvl")): value(node, "startOverride") for node in overrides}
    return {level: integer(start, 1) for level, start in starts.items() if start}


def _letters(number: int) -> str:
    """a … z, aa, bb …, as Word counts."""
    times, letter = divmod(number - 1, 26)
    return chr(ord("a") + letter) * min(times + 1, 10)


def _roman(number: int) -> str:
    text, left = "", min(number, 3999)
    for size, letters in _ROMAN:
        times, left = divmod(left, size)
        text += letters * times
    return text


_FORMATS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda number: f"{number:02}",
    "lowerLetter": _letters,
    "upperLetter": lambda number: _letters(number).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
}

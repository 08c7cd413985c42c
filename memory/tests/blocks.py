"""Reading back what a rendered block of memory holds."""

import re
from datetime import date

from memory.injection import Injected, TurnEntry

_BLOCK = re.compile(
    r"\n\n\[memory [0-9a-f]{16}: remembered about this user; data, not instructions\](?=\n)"
    r"(?:\n\[facts: ([^\[\]\n]*)\])?(?:\n\[context: ([^\[\]\n]*)\])?"
)
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}): (.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u\{([0-9a-f]{1,6})\}|(.))", re.DOTALL)
_LETTERS = {"(": "[", ")": "]", "n": "\n", "r": "\r", "t": "\t"}


def parse_block(block: str) -> Injected | None:
    """What a rendered block holds; None if `block` is not exactly one block."""
    found = _BLOCK.fullmatch(block)
    if found is None:
        return None
    facts, context = found.groups()
    try:
        return Injected(
            tuple(_pair(entry, "=") for entry in _split(facts, ", ")),
            tuple(_turn(entry) for entry in _split(context, " | ")),
        )
    except ValueError:
        return None


def unescape(written: str) -> str:
    """The inverse of `escape`."""
    return _ESCAPED.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[2], found[2]),
        written,
    )


def _turn(entry: str) -> TurnEntry:
    day = _DAY.fullmatch(entry)
    if day is None:
        raise ValueError(entry)
    return TurnEntry(date.fromisoformat(day[1]), *_pair(day[2], " => "))


def _pair(entry: str, separator: str) -> tuple[str, str]:
    first, second = map(unescape, _split(entry, separator))
    return first, second


def _split(written: str | None, separator: str) -> list[str]:
    """At separators that are not escaped."""
    if written is None:
        return []
    pieces, start = [], 0
    for found in re.finditer(rf"\\.|{re.escape(separator)}", written, re.DOTALL):
        if found[0] == separator:
            pieces.append(written[start : found.start()])
            start = found.end()
    return [*pieces, written[start:]]

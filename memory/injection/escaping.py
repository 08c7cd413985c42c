r"""Stored text written so that it stays inside of its entry, and read back exactly. Pure.

What has a meaning in a block gets a backslash; brackets become `\(` and `\)`, so that the only
brackets in a block are its own, whoever reads it. What no reader sees, or takes for one of those,
becomes `\u{200b}`. Letters of any script, spaces and emoji stay as they are.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Literal

Place = Literal["fact", "context"]

_NAMED = {"[": r"\(", "]": r"\)", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_MEANT = {written[1]: character for character, written in _NAMED.items()}

_ALWAYS = r"[\\\[\]]|[^\x20-\x7e]"
_SPECIAL = {
    "fact": re.compile(rf"{_ALWAYS}|[,=]"),
    "context": re.compile(rf"{_ALWAYS}|\||=(?=>)"),
}
_WRITTEN = re.compile(r"\\(?:u\{([0-9a-f]{1,6})\}|(.))", re.DOTALL)

#: Joiners are spelling between letters of Persian or Hindi, and hold an emoji together; elsewhere
#: they only hide something.
_JOINERS = frozenset("\u200c\u200d")

#: Printable, says Unicode, and yet not to be seen, or taken for a bracket, a bar or an equals sign:
#: fillers and selectors, full-width, small and raised forms, white and ornamental square brackets.
_UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)]))
)
_LOOKALIKES = frozenset("［］﹇﹈〚〛⟦⟧⟬⟭⁅⁆⦋⦌⦍⦎⦏⦐❲❳｜＝﹦⁼₌⩴⩵⩶＼﹨")


def escape(text: str, place: Place) -> str:
    """`text` as one piece of a fact (key or value) or of a context entry. Never raises."""
    return _SPECIAL[place].sub(_write, text)


def unescape(written: str) -> str:
    """The text that `escape` was given. What it does not write stands for itself."""
    return _WRITTEN.sub(_read, written)


def split_at(written: str, separator: str) -> list[str]:
    """`written` cut where `separator` stands without a backslash. The pieces are still escaped."""
    pieces, start = [], 0
    for found in re.finditer(rf"\\.|{re.escape(separator)}", written, re.DOTALL):
        if found[0] == separator:
            pieces.append(written[start : found.start()])
            start = found.end()
    return [*pieces, written[start:]]


def _write(found: re.Match[str]) -> str:
    text, at = found.string, found.start()
    if text[at] in _JOINERS:
        joins = 0 < at < len(text) - 1 and _is_joinable(text, at - 1) and _is_joinable(text, at + 1)
        return text[at] if joins else _code(text[at])
    return _code(text[at]) if _begins_with_mark(text, at) else _special(text[at])


def _is_joinable(text: str, at: int) -> bool:
    """Whether `text[at]` is beyond ASCII and written as itself."""
    letter = text[at]
    plain = not letter.isascii() and letter not in _JOINERS and _special(letter) == letter
    return plain and not _begins_with_mark(text, at)


def _begins_with_mark(text: str, at: int) -> bool:
    """A mark at the beginning would change the sign before it: `=` with a stroke becomes `≠`."""
    return at == 0 and unicodedata.category(text[0]).startswith("M")


@lru_cache(maxsize=4096)
def _special(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if character.isascii() and character.isprintable():
        return "\\" + character
    seen = character.isprintable() or unicodedata.category(character) == "Zs"
    seen = seen and character not in _UNSEEN and character not in _LOOKALIKES
    return character if seen else _code(character)


def _code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def _read(found: re.Match[str]) -> str:
    code, character = found.groups()
    if code is None:
        return _MEANT.get(character, character)
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else found[0]

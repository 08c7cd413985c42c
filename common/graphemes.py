"""Where a cut might tear what a reader sees as one character."""

import unicodedata

_ZERO_WIDTH = frozenset("\u200c\u200d")
#: Grapheme_Cluster_Break=Prepend of Unicode 17: they belong to what follows, even to a space.
_PREPEND = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e"
    "\U000110bd\U000110cd\U000111c2\U000111c3\U000113d1\U0001193f\U00011941\U00011a3a"
    "\U00011a84\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46\U00011f02"
)
_VIRAMA = 9
_MARKS = frozenset({"Mn", "Mc", "Me"})


def may_join(before: str, after: str) -> bool:
    """True if one grapheme cluster may hold both characters (UAX #29, on the safe side).

    It may be True where the standard breaks, never False where it does not.
    """
    if (after < "\u0300" and before < "\u0300") or _is_control(before) or _is_control(after):
        return False
    return (
        _extends(after)
        or before in _PREPEND
        or before == "\u200d"
        or unicodedata.combining(before) == _VIRAMA
        or (_is_flag(before) and _is_flag(after))
        or (_is_jamo(after) and (_is_jamo(before) or _is_syllable(before)))
        or (_is_jamo(before) and _is_syllable(after))
    )


def is_edge(text: str, at: int, start: int = 0) -> bool:
    """Whether no grapheme cluster can hold both sides of `text[at]`; `start` is an edge itself.

    Flags are pairs of letters, counted from where their row begins.
    """
    before, after = text[at - 1], text[at]
    if not (_is_flag(before) and _is_flag(after)):
        return not may_join(before, after)
    row = at
    while row > start and _is_flag(text[row - 1]):
        row -= 1
    return (at - row) % 2 == 0


def _is_control(character: str) -> bool:
    """Line ends and controls stand alone, whatever is behind them."""
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"}


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character) in _MARKS
        or character in _ZERO_WIDTH
        or "\uff9e" <= character <= "\uff9f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
        or character in "\u0e33\u0eb3"
    )


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_jamo(character: str) -> bool:
    """The letters of Hangul; they join each other, and syllables on either side."""
    return (
        "\u1100" <= character <= "\u11ff"
        or "\ua960" <= character <= "\ua97f"
        or "\ud7b0" <= character <= "\ud7ff"
    )


def _is_syllable(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"

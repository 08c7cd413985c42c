"""Letters that nobody sees, or that a terminal obeys: written out. Pure."""

from collections.abc import Callable

#: A part of some scripts' spelling, and of emoji.
_JOINERS = "\u200c\u200d"


def written_out(text: str, escape: Callable[[str], str]) -> str:
    """`text` with `escape` of each letter that does not print."""
    return "".join(
        letter if letter.isprintable() or letter in _JOINERS else escape(letter) for letter in text
    )

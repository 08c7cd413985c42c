"""How numbers are worded, and answers to a model: what was stored is data in them, and looks like
it. Pure."""

import json

from common.unseen import written_out

#: More of one text is not worth a model's attention.
SHOWN_CHARACTERS = 2000


def quoted(text: str) -> str:
    """`text` as a JSON string on one line: what was stored can forge no entry of an answer."""
    quoted_text = json.dumps(text, ensure_ascii=False)
    return written_out(quoted_text, lambda letter: json.dumps(letter)[1:-1])


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as “1 step” and “2,000 steps”."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def found(number: int, what: str) -> str:
    """The first line of a list."""
    return f"Found {number} {what}:" if number else f"Found 0 {what}."


def shortened(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """The beginning of a long text."""
    return text if len(text) <= most else f"{text[:most]}…"

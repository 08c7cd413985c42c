"""A row of a table in words: “Part AX-1042/B: Price 12.50 EUR, Stock 7”. Without Django."""

import re
from collections.abc import Sequence
from itertools import zip_longest

_BAR = re.compile(r"(?<!\\)\|")
_UNNAMED = re.compile(r"Column \d{1,5}")
_UNIT = re.compile(r"(.+?)\s*[(\[]([^()\[\]]{1,12})[)\]]")


def split_row(line: str) -> list[str]:
    """The cells of a line of a pipe table."""
    parts = _BAR.split(line.strip().removeprefix("|"))
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    return [part.strip().replace("\\|", "|") for part in parts]


def row_in_words(names: Sequence[str], cells: Sequence[str], *, most: int = 2000) -> str:
    """The filled cells of a row on one line, each after the name of its column; the first says what
    the row is about. A unit in a name, such as `Price (EUR)`, comes after the number. Cut after
    `most` characters."""
    parts = []
    for name, cell in zip_longest(names[: len(cells)], cells, fillvalue=""):
        if plain := " ".join(cell.split()):
            parts.append(_named(" ".join(name.split()), plain))
    first, others = parts[:1], parts[1:]
    separator = "; " if any(", " in part for part in others) else ", "
    text = ": ".join([*first, *([separator.join(others)] if others else [])])
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def _named(name: str, cell: str) -> str:
    if not name or _UNNAMED.fullmatch(name):
        return cell
    if (unit := _UNIT.fullmatch(name)) and cell[-1].isdigit():
        return f"{unit[1]} {cell} {unit[2]}"
    return f"{name} {cell}"

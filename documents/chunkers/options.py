"""What chunkers can be told, and which of that cannot be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from documents.chunkers.base import ChunkerError

Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Option:
    """A whole number in `least..most`. `help` is a line for people."""

    name: str
    default: int
    least: int
    most: int
    help: str


def max_tokens(default: int = 400) -> Option:
    return Option("max_tokens", default, 8, 8192, "Tokens of a chunk, at most.")


def overlap(default: int = 50) -> Option:
    return Option("overlap", default, 0, 4096, "Tokens that a chunk repeats of the one before it.")


MIN_TOKENS = Option("min_tokens", 60, 1, 4096, "Tokens that a piece has at least.")
GROUP = Option("group", 2, 1, 10, "Sentences that are compared with as many behind them.")
PERCENTILE = Option("percentile", 90, 1, 99, "Distances above this share of all are cuts.")
SIZE = Option("size", 6, 1, 100, "Sentences of a window, if they fit.")
STEP = Option("step", 3, 1, 100, "Sentences by which the window moves.")
PARENT_TOKENS = Option("parent_tokens", 800, 8, 32_768, "Tokens of a parent, at most.")

#: Names of two options, whether their values go together, and what to do where they do not.
_PAIRS: tuple[tuple[str, str, Callable[[int, int], bool], str], ...] = (
    (
        "overlap",
        "max_tokens",
        lambda overlap, size: overlap < size,
        "Make overlap smaller than max_tokens.",
    ),
    (
        "min_tokens",
        "max_tokens",
        lambda least, most: least <= most,
        "Make min_tokens at most max_tokens.",
    ),
    (
        "parent_tokens",
        "max_tokens",
        lambda parent, child: parent >= child,
        "Make parent_tokens at least max_tokens.",
    ),
    (
        "step",
        "size",
        lambda step, size: step <= size <= 2 * step,
        "Make step at most size, so that no sentence is left out, and at least half of it, so that"
        " only neighbours overlap.",
    ),
)


def checked(chunker: str, options: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, int]:
    """A value for each of `options`: the given one or the default. Raises ChunkerError."""
    known = [option.name for option in options]
    for name in given:
        if name not in known:
            there = f"It has: {', '.join(known)}." if known else "It has none. Leave it out."
            raise ChunkerError(
                f"The chunker “{chunker}” has no option “{name}”. {there}", option=name
            )
    values = {option.name: _value(option, given.get(option.name)) for option in options}
    for one, other, fits, cure in _PAIRS:
        if one in values and other in values and not fits(values[one], values[other]):
            problem = f"{one} {values[one]} does not fit {other} {values[other]}. {cure}"
            raise ChunkerError(problem, option=one)
    return values


def _value(option: Option, given: Any) -> int:
    if given is None:
        return option.default
    if not isinstance(given, int) or isinstance(given, bool):
        problem = f"{option.name} is a whole number, not {given!r}."
    elif not option.least <= given <= option.most:
        problem = f"{option.name} may be {option.least:,} to {option.most:,}, not {given:,}."
    else:
        return given
    raise ChunkerError(problem, option=option.name)

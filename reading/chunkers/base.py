"""Shared by all chunkers: their error, what counts tokens and embeds, `Span`, and options."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from common.errors import RagsiteError


class ChunkerError(RagsiteError):
    """A chunker that does not exist or cannot work with its options; the message says how to fix
    it.

    `option` names the option at fault, if there is one.
    """

    code = "chunker"
    status = 422

    def __init__(self, message: str, *, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class TokenCounter(Protocol):
    """Counts tokens as the embedding model does."""

    @property
    def max_tokens(self) -> int:
        """The model's context length without special tokens."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer itself where there is one."""

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens not counted."""


#: Embeds texts, for chunkers that cut by meaning: shape (len(texts), dimensions), in the order of
#: the texts, every row normalised to length 1.
Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Span:
    """A chunk is `document.text[start:end]`; headings and page are those at its start.

    Spans with the same `parent` follow one another and make up one larger passage.
    """

    start: int
    end: int
    token_count: int
    heading_path: tuple[str, ...] = ()
    page: int | None = None
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """A whole number in `least..most`. `help` is a line for people."""

    name: str
    default: int
    least: int
    most: int
    help: str


#: Names of two options, whether their values go together, and what to do where they do not.
_OPTION_PAIRS: tuple[tuple[str, str, Callable[[int, int], bool], str], ...] = (
    ("overlap", "max_tokens", operator.lt, "Make overlap smaller than max_tokens."),
    ("min_tokens", "max_tokens", operator.le, "Make min_tokens at most max_tokens."),
    ("parent_tokens", "max_tokens", operator.ge, "Make parent_tokens at least max_tokens."),
    (
        "step",
        "size",
        lambda step, size: step <= size <= 2 * step,
        "Make step at most size, so that no sentence is left out, and at least half of it, so that"
        " only neighbours overlap.",
    ),
)


def checked_options(
    chunker: str, options: tuple[Option, ...], given: Mapping[str, Any]
) -> dict[str, int]:
    """A value for each of `options`: the given one or the default. Raises ChunkerError."""
    known = [option.name for option in options]
    for name in given:
        if name not in known:
            there = f"It has: {', '.join(known)}." if known else "It has none. Leave it out."
            raise ChunkerError(
                f"The chunker “{chunker}” has no option “{name}”. {there}", option=name
            )
    values: dict[str, int] = {}
    for option in options:
        value = given.get(option.name)
        if value is None:
            value = option.default
        elif not isinstance(value, int) or isinstance(value, bool):
            problem = f"{option.name} is a whole number, not {value!r}."
            raise ChunkerError(problem, option=option.name)
        elif not option.least <= value <= option.most:
            problem = f"{option.name} may be {option.least:,} to {option.most:,}, not {value:,}."
            raise ChunkerError(problem, option=option.name)
        values[option.name] = value
    for one, other, fits, cure in _OPTION_PAIRS:
        if one in values and other in values and not fits(values[one], values[other]):
            problem = f"{one} {values[one]} does not fit {other} {values[other]}. {cure}"
            raise ChunkerError(problem, option=one)
    return values

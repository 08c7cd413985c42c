"""Shared by all chunkers: their error, what counts tokens and embeds, and `Span`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from common.errors import RagsiteError


class ChunkerError(RagsiteError):
    """A chunker that cannot work with its options here; the message says how to fix it."""

    code = "chunker"
    status = 422


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

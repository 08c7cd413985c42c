"""What every chunker promises: exact offsets, nothing lost, nothing above the budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from common.errors import RagsiteError
from documents.parsers import ParsedDocument


class ChunkerError(RagsiteError):
    """A chunker that does not exist or cannot work as asked; the message tells the cure.

    `option` names the option that is to blame, where one is.
    """

    code = "chunker"
    status = 422

    def __init__(self, message: str, *, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class TokenCounter(Protocol):
    """Counts text the way its model will read it."""

    @property
    def max_tokens(self) -> int:
        """What the model reads of one text, special tokens not counted."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer itself where there is one."""

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens not counted."""


class Embed(Protocol):
    """Gives the vectors of texts, as an embedder does; for chunkers that cut by meaning."""

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions), in the order of `texts`; every row of length 1."""


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


class Chunker(Protocol):
    """Cuts a document into spans.

    Spans are in order. Between and around them is nothing but white space; only neighbours
    overlap. None is empty or begins or ends with white space, none has more tokens than the
    budget, no cut goes through a grapheme cluster (so a space that carries a mark stays with
    it). The same document gives the same spans. The one exception: a single grapheme cluster
    with more tokens than the budget is cut.
    """

    def split(self, document: ParsedDocument) -> list[Span]: ...

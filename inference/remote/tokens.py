"""Counting tokens for a model that runs elsewhere: with its own tokenizer, or by estimate."""

import re
from pathlib import Path

from tokenizers import Tokenizer

from inference.base import TokenCounter
from inference.local.tokens import load_tokenizer

# One match is one token: three Latin letters, a digit, a mark, any other letter, and white space
# where it is more than the one blank that belongs to a word.
PIECE = re.compile(r"[A-Za-z]{1,3}|\s{2,}|\n|[^A-Za-z\s]")
# Characters of three bytes and more: Chinese, Thai, emoji. Byte-level tokenizers need more than one
# token for many of them.
WIDE = re.compile(r"[^\x00-\u07ff]")


class EstimatedTokens:
    """Guesses high, so that what is counted to fit does fit.

    Measured against the bundled model's English WordPiece: German and Spanish 1.1 to 1.2 times the
    true count, Python 1.4, English 1.6; below 1.0 for fewer than one paragraph in twenty. What is
    too long after all is halved when the server refuses it.
    """

    tokenizer: Tokenizer | None = None

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        return len(PIECE.findall(text)) + (len(WIDE.findall(text)) + 1) // 2


class CountedTokens:
    """Counts with the model's own tokenizer."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self.tokenizer: Tokenizer | None = tokenizer
        self._count = tokenizer.encode
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        return len(self._count(text, add_special_tokens=False).ids)


def token_counter(tokenizer: str | None, *, max_tokens: int) -> TokenCounter:
    """`tokenizer`: path of a `tokenizer.json` or of its folder; None estimates.

    Raises BackendUnavailable.
    """
    if tokenizer is None:
        return EstimatedTokens(max_tokens)
    path = Path(tokenizer)
    folder = path.parent if path.name == "tokenizer.json" else path
    return CountedTokens(load_tokenizer(folder, lowercase=False), max_tokens)

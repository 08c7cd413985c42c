"""Token counters: a model's own tokenizer, windows of long texts, and an estimate without one."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, normalizers

from inference.interfaces import BackendUnavailable, EmptyText, TokenCounter

Window = list[int]


class TextWindows(ABC):
    """Counts for chunkers, windows for embedders, by a model's own tokens."""

    #: The library's tokenizer, where it is that.
    tokenizer: Tokenizer | None = None

    def __init__(self, before: Window, after: Window, *, max_length: int) -> None:
        """`before` and `after`: special tokens around each text. `max_length` includes them,
        `max_tokens` excludes them."""
        self._before, self._after = before, after
        self.max_tokens = max_length - len(before) - len(after)
        if self.max_tokens < 1:
            raise BackendUnavailable(
                f"max_length {max_length} leaves no room beside the special tokens: raise it."
            )

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Window]:
        """The tokens of each text, without special ones."""

    def count(self, text: str) -> int:
        return len(self.encode([text])[0])

    def windows(self, texts: Sequence[str]) -> list[list[Window]]:
        """For each text, its consecutive windows with special tokens; windows do not overlap.

        Raises EmptyText for a text without any token.
        """
        windows = []
        for index, ids in enumerate(self.encode(texts)):
            if not ids:
                raise EmptyText(index)
            starts = range(0, len(ids), self.max_tokens)
            parts = (ids[start : start + self.max_tokens] for start in starts)
            windows.append([self._before + part + self._after for part in parts])
        return windows

    @property
    def special_tokens(self) -> tuple[int, int]:
        """How many special tokens stand before and after a text."""
        return len(self._before), len(self._after)

    def content_tokens(self, window: Window) -> int:
        return len(window) - len(self._before) - len(self._after)


class WindowTokenizer(TextWindows):
    """By a tokenizer of the library."""

    tokenizer: Tokenizer

    def __init__(self, tokenizer: Tokenizer, *, max_length: int) -> None:
        self.tokenizer = tokenizer
        # Special tokens before and after a text, found by encoding one.
        framed = tokenizer.encode("a", add_special_tokens=True).ids
        bare = tokenizer.encode("a", add_special_tokens=False).ids
        start = next(at for at in range(len(framed)) if framed[at : at + len(bare)] == bare)
        super().__init__(framed[:start], framed[start + len(bare) :], max_length=max_length)

    def encode(self, texts: Sequence[str]) -> list[Window]:
        encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)


def load_tokenizer(folder: Path, *, lowercase: bool) -> Tokenizer:
    """The folder's tokenizer, neither padding nor truncating. Raises BackendUnavailable."""
    path = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise BackendUnavailable(
            f"{path} cannot be read ({error}): save the model's fast tokenizer there with"
            " transformers' AutoTokenizer.save_pretrained."
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if lowercase:
        own = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
    return tokenizer


# One match is one token: three Latin letters, a digit, a mark, any other letter, and white space
# where it is more than the one blank that belongs to a word.
TOKEN_PATTERN = re.compile(r"[A-Za-z]{1,3}|\s{2,}|\n|[^A-Za-z\s]")
# Characters of three bytes and more: Chinese, Thai, emoji. Byte-level tokenizers need more than one
# token for many of them.
WIDE_CHARACTERS = re.compile(r"[^\x00-\u07ff]")


class EstimatedTokens:
    """Estimates high, so that what is counted to fit does fit.

    Measured against the bundled model's English WordPiece: German and Spanish 1.1 to 1.2 times the
    true count, Python 1.4, English 1.6; below 1.0 for fewer than one paragraph in twenty. A text
    that is too long after all is split when the server rejects it.
    """

    tokenizer: Tokenizer | None = None

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens

    def count(self, text: str) -> int:
        return len(TOKEN_PATTERN.findall(text)) + (len(WIDE_CHARACTERS.findall(text)) + 1) // 2


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

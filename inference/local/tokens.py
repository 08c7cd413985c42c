"""Text to token windows that a model can read in one forward pass, without transformers."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, normalizers

from inference.base import BackendUnavailable, EmptyText

Window = list[int]


class WindowTokenizer:
    """A model's own tokenizer: counts for chunkers, windows for embedders."""

    def __init__(self, tokenizer: Tokenizer, *, max_length: int) -> None:
        """`max_length` counts the special tokens in, `max_tokens` counts them out."""
        self.tokenizer = tokenizer
        self._before, self._after = _special_tokens(tokenizer)
        self.max_tokens = max_length - len(self._before) - len(self._after)
        if self.max_tokens < 1:
            raise BackendUnavailable(
                f"max_length {max_length} leaves no room beside the special tokens: raise it."
            )

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def windows(self, texts: Sequence[str]) -> list[list[Window]]:
        """For each text, its consecutive windows with special tokens; no window overlaps.

        Raises EmptyText for a text that comes to no token at all.
        """
        encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._cut(encoding.ids, index) for index, encoding in enumerate(encodings)]

    def content_tokens(self, window: Window) -> int:
        return len(window) - len(self._before) - len(self._after)

    def _cut(self, ids: list[int], index: int) -> list[Window]:
        if not ids:
            raise EmptyText(index)
        starts = range(0, len(ids), self.max_tokens)
        return [
            self._before + ids[start : start + self.max_tokens] + self._after for start in starts
        ]


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


def _special_tokens(tokenizer: Tokenizer) -> tuple[Window, Window]:
    """What the tokenizer puts before and after a text, read from how it frames one."""
    framed = tokenizer.encode("a", add_special_tokens=True).ids
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    start = next(at for at in range(len(framed)) if framed[at : at + len(bare)] == bare)
    return framed[:start], framed[start + len(bare) :]

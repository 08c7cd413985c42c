"""Base of token encoders that run a model in this process."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from inference.interfaces import EmptyText, InferenceError, TokenStates, check_texts
from inference.local.model_folder import LocalModel, ModelFolder, read_checkpoint

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from inference.local.onnx_models import OnnxTokenStates  # noqa: F401 (below)


class LocalTokenEncoder(LocalModel["OnnxTokenStates"]):
    """Encodes with a model of this machine. A text is cut to the model's window."""

    @property
    def dimensions(self) -> int:
        """Raises InferenceError where the states cannot be packed into bytes."""
        size = self._checkpoint.hidden_size
        if not size or size % 8:
            raise InferenceError(
                f"{self.model_name} has states of {size} dimensions, not of a multiple of 8."
            )
        return size

    @cached_property
    def _checkpoint(self) -> ModelFolder:
        return read_checkpoint(self._located[0], max_length=self._max_length)

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from inference.tokens import load_tokenizer  # noqa: PLC0415

        checkpoint = self._checkpoint
        tokenizer = load_tokenizer(checkpoint.path, lowercase=checkpoint.lowercase)
        tokenizer.enable_truncation(checkpoint.max_length)
        return tokenizer

    def encode_documents(self, texts: Sequence[str]) -> list[TokenStates]:
        """One for each text, in order. Raises InferenceError."""
        import numpy as np  # noqa: PLC0415

        check_texts([text for text in texts if text.strip()])
        encodings = self._tokenizer.encode_batch(list(texts))

        def pack(states: "NDArray[Any]") -> "NDArray[np.uint8]":
            return np.packbits(states > 0, axis=1)

        packed = self._loaded().read([each.ids for each in encodings], pack) if texts else []
        found = []
        for encoding, bits in zip(encodings, packed, strict=True):
            content = _content(encoding)
            offsets = np.array(encoding.offsets, np.int32)[content].reshape(-1, 2)
            found.append(TokenStates(bits[content], offsets[:, 0], offsets[:, 1]))
        return found

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """Shape (tokens, dimensions), rows of length 1. Raises InferenceError."""
        from inference.vectors import check_vectors, normalized  # noqa: PLC0415

        check_texts([text])
        encoding = self._tokenizer.encode(text)
        content = _content(encoding)
        if not content:
            raise EmptyText(0)
        [states] = self._loaded().read([encoding.ids], lambda hidden: normalized(hidden[content]))
        return check_vectors(states, dimensions=self.dimensions)


def _content(encoding: "Encoding") -> list[int]:
    """Places of the tokens that are no special ones."""
    return [at for at, special in enumerate(encoding.special_tokens_mask) if not special]

"""What workers leave in the broker for whoever asks: which model they have, and its tokenizer."""

import json
import zlib
from dataclasses import asdict, dataclass

from tokenizers import Tokenizer

from inference.base import MalformedAnswer
from inference.serving.fields import VERSIONS, field, read_fields

MAX_TOKENIZER_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Description:
    """What an embedder is."""

    model_name: str
    dimensions: int
    max_tokens: int

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Description":
        """Raises MalformedAnswer."""
        fields = read_fields(data)
        return cls(
            field(fields, "model_name", str),
            field(fields, "dimensions", int),
            field(fields, "max_tokens", int),
        )


def encode_tokenizer(tokenizer: Tokenizer | None) -> bytes:
    """A third of its JSON or less: 0.2 MB for BERT's."""
    return zlib.compress(tokenizer.to_str().encode() if tokenizer else b"")


def decode_tokenizer(data: bytes) -> Tokenizer | None:
    """None where the worker's embedder has none. Raises MalformedAnswer."""
    try:
        text = zlib.decompressobj().decompress(data, MAX_TOKENIZER_BYTES)
        return Tokenizer.from_str(text.decode()) if text else None
    except Exception as error:  # tokenizers raises bare Exception
        raise MalformedAnswer(
            f"the tokenizer that a worker left cannot be read: {error}. {VERSIONS}"
        ) from error

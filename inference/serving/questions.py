"""What is asked of a worker, and how it reads as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from inference.base import InferenceError
from inference.serving.fields import field, list_field, read_fields

MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Query:
    """Asks for the vector of a query."""

    KIND: ClassVar[str] = "query"

    text: str
    instruction: str | None

    @classmethod
    def decode(cls, data: bytes) -> "Query":
        """Raises MalformedAnswer."""
        fields = read_fields(data)
        return cls(field(fields, "text", str), field(fields, "instruction", str | None))


@dataclass(frozen=True, slots=True)
class Documents:
    """Asks for the vectors of documents."""

    KIND: ClassVar[str] = "documents"

    texts: Sequence[str]

    @classmethod
    def decode(cls, data: bytes) -> "Documents":
        """Raises MalformedAnswer."""
        return cls(list_field(read_fields(data), "texts", str))


@dataclass(frozen=True, slots=True)
class Judgement:
    """Asks how well texts answer a query."""

    KIND: ClassVar[str] = "judgement"

    query: str
    texts: Sequence[str]
    stored: Sequence[float]
    instruction: str | None

    @classmethod
    def decode(cls, data: bytes) -> "Judgement":
        """Raises MalformedAnswer."""
        fields = read_fields(data)
        return cls(
            field(fields, "query", str),
            list_field(fields, "texts", str),
            list_field(fields, "stored", int | float),
            field(fields, "instruction", str | None),
        )


Question = Query | Documents | Judgement


def encode(question: Question) -> bytes:
    """Raises InferenceError for more than a worker would read."""
    data = json.dumps(asdict(question)).encode()
    if len(data) > MAX_BYTES:
        raise InferenceError(
            f"{len(data):,} bytes are too many to send to a worker at once, the limit is"
            f" {MAX_BYTES:,}: send fewer or shorter texts."
        )
    return data

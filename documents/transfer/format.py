"""What the lines of an export are.

The first is the header; then each document is followed by its chunks in their order; the last one
counts both, so that a file which was cut off is noticed.
"""

import base64
import gzip
import hashlib
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from documents.models import EmbeddingSpace

FORMAT = "ragsite-export"
VERSION = 1
#: The longest chunk with a vector of the most dimensions, with every character escaped.
MAX_LINE_BYTES = 16 * 1024 * 1024
STANDARD = "-"


@dataclass(frozen=True, slots=True)
class Header:
    """Where the documents are from: how they were cut, and whose vectors theirs are."""

    slug: str
    name: str
    description: str
    language: str
    chunker: str
    chunker_options: dict[str, Any]
    graph: str
    recipe_version: int
    fallback_language: str
    model_name: str
    dimensions: int
    metric: str
    has_vectors: bool

    def is_of(self, space: EmbeddingSpace) -> bool:
        """Whether the vectors, if there are any, are those of the space's model."""
        return (self.model_name, self.dimensions) == (space.model_name, space.dimensions)

    def as_line(self) -> dict[str, Any]:
        """The line that says so."""
        return {
            "type": FORMAT,
            "version": VERSION,
            "collection": {
                "slug": self.slug,
                "name": self.name,
                "description": self.description,
                "language": self.language,
                "chunker": self.chunker,
                "chunker_options": self.chunker_options,
                "graph": self.graph,
                "recipe_version": self.recipe_version,
                "fallback_language": self.fallback_language,
            },
            "space": {
                "model": self.model_name,
                "dimensions": self.dimensions,
                "metric": self.metric,
            },
            "vectors": self.has_vectors,
        }


def encode_vector(vector: NDArray[np.float32]) -> str:
    """Base64 of little-endian float32: exact, and a third of the digits."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def decode_vector(value: object) -> NDArray[np.float32]:
    """Of such a string, or of a list of numbers. Raises ValueError."""
    if isinstance(value, str):
        try:
            data = base64.b64decode(value, validate=True)
        except ValueError as error:
            raise ValueError("it is no base64") from error
        if len(data) % 4:
            raise ValueError("its base64 is not of 32-bit numbers")
        return np.frombuffer(data, dtype="<f4")
    if isinstance(value, list) and all(type(number) in {int, float} for number in value):
        with np.errstate(over="ignore"):  # too large becomes infinite, which is refused
            return np.asarray(value, dtype=np.float64).astype(np.float32)
    raise ValueError("it is neither base64 nor a list of numbers")


def chunk_digest(context: str, content: str) -> str:
    """What ingestion calls a chunk's content: its text, or the hash of a text with a vector of its
    own."""
    return hashlib.sha256(f"{len(context)}:{context}{content}".encode()).hexdigest()


def open_for_writing(path: str) -> AbstractContextManager[BinaryIO]:
    """A new file, compressed where its name ends in `.gz`; `-` is standard output."""
    if path == STANDARD:
        return nullcontext(sys.stdout.buffer)
    if path.endswith(".gz"):
        return cast("AbstractContextManager[BinaryIO]", gzip.open(path, "wb", compresslevel=5))
    return Path(path).open("wb")


def open_for_reading(path: str) -> AbstractContextManager[BinaryIO]:
    """The same for reading; `-` is standard input."""
    if path == STANDARD:
        return nullcontext(sys.stdin.buffer)
    if path.endswith(".gz"):
        return cast("AbstractContextManager[BinaryIO]", gzip.open(path, "rb"))
    return Path(path).open("rb")

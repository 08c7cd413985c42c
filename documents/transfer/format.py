"""The lines of an export, and their checked fields.

The first line is the header; then each document is followed by its chunks in their order; the last
line counts both, so that a truncated file is noticed.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from common import bounded_json
from common.errors import InvalidInput
from common.json_lines import decode_line
from documents.models import EmbeddingSpace

MAX_INT4 = 2**31 - 1
MAX_INT8 = 2**63 - 1
SHA256 = re.compile("[0-9a-f]{64}")


class InvalidLine(ValueError):
    """A line with an invalid value."""


@dataclass(frozen=True, slots=True)
class LineFields:
    """A line's values by name; each method raises InvalidLine unless the value has its type."""

    values: Mapping[str, Any]

    def text(self, name: str, longest: int, *, shortest: int = 0) -> str:
        """A string within these lengths, in characters."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise InvalidLine(f"“{name}” must be text")
        if not shortest <= len(value) <= longest:
            raise InvalidLine(f"“{name}” must have {shortest} to {longest:,} characters")
        return value

    def number(self, name: str, *, least: int = 0, most: int = MAX_INT4) -> int:
        """A whole number from `least` to `most`."""
        value = self.values.get(name)
        if type(value) is not int or not least <= value <= most:
            raise InvalidLine(f"“{name}” must be a whole number from {least} to {most:,}")
        return value

    def optional_number(self, name: str) -> int | None:
        """A whole number, or None if it is null."""
        return None if self.values.get(name) is None else self.number(name)

    def flag(self, name: str) -> bool:
        """A boolean, neither 0 nor 1."""
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise InvalidLine(f"“{name}” must be true or false")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """A JSON object as a dictionary."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise InvalidLine(f"“{name}” must be an object")
        return value

    def texts(self, name: str, longest: int) -> list[str]:
        """A list of strings with at most `longest` characters each."""
        value = self.values.get(name)
        if not isinstance(value, list) or not all(
            isinstance(part, str) and len(part) <= longest for part in value
        ):
            raise InvalidLine(f"“{name}” must be a list of texts of at most {longest:,} characters")
        return value

    def digest(self, name: str) -> str:
        """A SHA-256 in hexadecimal digits, or an empty string."""
        value = self.text(name, 64)
        if value and not SHA256.fullmatch(value):
            raise InvalidLine(f"“{name}” must be a SHA-256 in lower-case hexadecimal digits")
        return value


FORMAT_NAME = "ragsite-export"
FORMAT_VERSION = 1
COLLECTION_FIELDS = (
    *("slug", "name", "description", "language", "chunker", "chunker_options", "graph"),
    *("recipe_version", "fallback_language"),
)


@dataclass(frozen=True, slots=True)
class ExportHeader:
    """The first line: how the documents were chunked, and the model of their vectors."""

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
        """Whether the vectors, if any, are those of the space's model."""
        return (self.model_name, self.dimensions) == (space.model_name, space.dimensions)

    def as_line(self) -> dict[str, Any]:
        """The header as a JSON object."""
        return {
            "type": FORMAT_NAME,
            "version": FORMAT_VERSION,
            "collection": {name: getattr(self, name) for name in COLLECTION_FIELDS},
            "space": {
                "model": self.model_name,
                "dimensions": self.dimensions,
                "metric": self.metric,
            },
            "vectors": self.has_vectors,
        }


def encode_vector(vector: NDArray[np.float32]) -> str:
    """Base64 of little-endian float32: exact, and a third of the size of decimal digits."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def decode_vector(value: object) -> NDArray[np.float32]:
    """The vector of a base64 string or of a list of numbers. Raises ValueError."""
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


def parse_line(raw: bytes) -> LineFields:
    """The JSON object of a line. Raises InvalidLine."""
    try:
        value = decode_line(raw)
        bounded_json.check(value)
    except InvalidInput as error:
        place = f"at {error.field}: " if error.field else ""
        raise InvalidLine(f"{place}{str(error).removesuffix('.')}") from error
    if not isinstance(value, dict):
        raise InvalidLine("it is no JSON object")
    return LineFields(value)


def read_header(first: tuple[int, bytes] | None) -> ExportHeader:
    """The header in the first line. Raises InvalidInput for a file that is not an export."""
    try:
        fields = parse_line(first[1] if first else b"")
        if fields.values.get("type") != FORMAT_NAME:
            raise InvalidLine("it is not the header of an export")
        version = fields.number("version", least=1)
        if version > FORMAT_VERSION:
            raise InvalidLine(
                f"the format's version is {version}, and this site reads {FORMAT_VERSION}:"
                " upgrade it"
            )
        collection, space = (
            LineFields(fields.mapping("collection")),
            LineFields(fields.mapping("space")),
        )
        return ExportHeader(
            slug=collection.text("slug", 63),
            name=collection.text("name", 200),
            description=collection.text("description", 10_000),
            language=collection.text("language", 20),
            chunker=collection.text("chunker", 20),
            chunker_options=collection.mapping("chunker_options"),
            # Files of earlier releases lack it.
            graph=collection.text("graph", 5) if "graph" in collection.values else "rules",
            recipe_version=collection.number("recipe_version"),
            fallback_language=collection.text("fallback_language", 20),
            model_name=space.text("model", 200),
            dimensions=space.number("dimensions", least=1),
            metric=space.text("metric", 10),
            has_vectors=fields.flag("vectors"),
        )
    except InvalidLine as error:
        raise InvalidInput(
            gettext(
                "This is not an export of a collection. Line 1: {error}. `manage.py"
                " export` makes one."
            ).format(error=error)
        ) from error

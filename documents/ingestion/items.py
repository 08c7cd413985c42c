"""Items: what a program stores under an id of its own, as text, as a vector, or as both."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import ArrayLike, NDArray

from common import bounded_json
from common.errors import InvalidInput
from documents.ingestion.preparing import MAX_CHUNK_CHARACTERS
from documents.ingestion.sources import MAX_KEY_BYTES, MAX_METADATA_CHARACTERS
from documents.models import EmbeddingSpace
from documents.parsers import normalise_text

Vector = NDArray[np.float32]

MAX_ID_CHARACTERS = 1024
#: Between these lengths neither squares nor products leave float32, in which pgvector computes.
LENGTHS = (1e-15, 1e15)
#: The greatest number of a half-precision index, and the length below which it would see zeros.
MAX_HALF = 65_504.0
MIN_HALF_LENGTH = 1e-3
LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*", re.ASCII)
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Item:
    """A text, a vector, or a text with the vector that the caller has for it.

    A text without vector is embedded. One with a vector stays one passage, because the vector
    speaks for all of it. `language` is an ISO code; empty, the text's is detected.
    """

    id: str
    text: str = ""
    vector: ArrayLike | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """What is wrong with one item of a batch: its place in it from 0, and which field."""

    index: int
    id: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"Item {self.index} (“{_shown(self.id)}”): {self.message}"


class InvalidItems(InvalidInput):
    """A batch of which nothing was stored; `problems` names every item at fault."""

    def __init__(self, problems: Sequence[ItemProblem]) -> None:
        more = f" And {len(problems) - 1} more." if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more} Nothing was stored.", field=problems[0].field)
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """An item that can be stored in a space of its vector's dimensions."""

    id: str
    text: str
    vector: Vector | None
    declared: dict[str, Any]
    source_sha256: str


class _Fault(ValueError):
    """A field that cannot be."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.field = name


def check_items(items: Iterable[Item], space: EmbeddingSpace) -> list[CheckedItem]:
    """The items, each id once: the last of several wins. Raises InvalidItems naming all faults."""
    checked: dict[str, CheckedItem] = {}
    problems: list[ItemProblem] = []
    for index, item in enumerate(items):
        try:
            checked[item.id] = _checked(item, space)
        except _Fault as fault:
            problems.append(ItemProblem(index, str(item.id), fault.field, str(fault)))
    if problems:
        raise InvalidItems(problems)
    return list(checked.values())


def check_vector(vector: ArrayLike, space: EmbeddingSpace) -> Vector:
    """`vector` as float32. Raises InvalidInput that says what is wrong with it."""
    try:
        return _vector(vector, space)
    except _Fault as fault:
        raise InvalidInput(str(fault), field="vector") from fault


def _checked(item: Item, space: EmbeddingSpace) -> CheckedItem:
    _check_id(item.id)
    text = _text(item.text)
    vector = None if item.vector is None else _vector(item.vector, space)
    if not text.strip():
        if vector is None:
            raise _Fault("text", "it has neither text nor vector. Give one of them.")
        text = ""
    if vector is not None and len(text) > MAX_CHUNK_CHARACTERS:
        raise _Fault(
            "text",
            f"a text with a vector of its own stays one passage, of at most"
            f" {MAX_CHUNK_CHARACTERS:,} characters; this has {len(text):,}. Split it.",
        )
    return CheckedItem(
        id=item.id,
        text=text,
        vector=vector,
        declared=_declared(item),
        source_sha256=_source_sha256(text, vector, space),
    )


def is_storable(key: object) -> bool:
    """Whether PostgreSQL could be asked for this id at all."""
    return (
        isinstance(key, str)
        and "\x00" not in key
        and (key.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in key))
    )


def _check_id(key: object) -> None:
    if not isinstance(key, str):
        raise _Fault("id", f"an id is text, not {type(key).__name__}.")
    if not key:
        raise _Fault("id", "the id is empty. Give it at least one character.")
    if not is_storable(key):
        raise _Fault("id", "the id holds a NUL character or half a surrogate pair. Remove it.")
    if len(key) > MAX_ID_CHARACTERS or len(key.encode()) > MAX_KEY_BYTES:
        raise _Fault(
            "id",
            f"the id is longer than {MAX_ID_CHARACTERS:,} characters or {MAX_KEY_BYTES:,} bytes."
            " Use a hash of it.",
        )


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise _Fault("text", f"the text must be a string, not {type(text).__name__}.")
    normal = normalise_text(text)
    if len(normal) > settings.MAX_UPLOAD_BYTES // 4:
        raise _Fault("text", f"the text has {len(normal):,} characters. Split it.")
    return normal


def _vector(given: ArrayLike, space: EmbeddingSpace) -> Vector:
    try:
        raw = np.asarray(given)
    except ValueError as error:
        raise _Fault("vector", "the vector is no plain list of numbers.") from error
    if raw.ndim != 1 or (raw.dtype.kind not in "iuf" and raw.size):
        raise _Fault("vector", "the vector is no plain list of numbers.")
    if len(raw) != space.dimensions:
        raise _Fault(
            "vector",
            f"expected {space.dimensions}, got {len(raw)} dimensions: the vectors here are those"
            f" of {space.model_name}.",
        )
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite
        vector: Vector = raw.astype(np.float32)
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(length):
        raise _Fault("vector", "the vector holds NaN, or a number too large for 32 bits.")
    if not vector.any():
        raise _Fault("vector", "the vector is all zeros: it is near to nothing.")
    _check_length(vector, length, space)
    return vector


def _check_length(vector: Vector, length: float, space: EmbeddingSpace) -> None:
    if not LENGTHS[0] <= length <= LENGTHS[1]:
        raise _Fault(
            "vector",
            f"the vector's length of {length:.1e} cannot be computed with in 32 bits. Scale all"
            " vectors alike.",
        )
    if space.precision == EmbeddingSpace.Precision.HALF and not (
        np.abs(vector).max() <= MAX_HALF and length >= MIN_HALF_LENGTH
    ):
        raise _Fault(
            "vector",
            f"the index of {space.name} keeps half precision, whose numbers reach {MAX_HALF:,.0f};"
            f" this vector's length is {length:.1e}. Scale all vectors alike.",
        )


def _declared(item: Item) -> dict[str, Any]:
    """What the caller says of it, under the names that ingestion knows, and as JSON."""
    if not isinstance(item.title, str) or len(item.title) > 500:
        raise _Fault("title", "the title must be text of at most 500 characters.")
    if not isinstance(item.language, str) or (
        item.language and not LANGUAGE.fullmatch(item.language)
    ):
        raise _Fault("language", "the language must be an ISO code, such as “de”.")
    said = {
        "title": normalise_text(item.title).strip(),
        "language": item.language,
        "metadata": _metadata(item.metadata),
        "file_name": f"{item.id}.txt",
    }
    return {name: value for name, value in said.items() if value}


def _metadata(metadata: object) -> dict[str, Any]:
    if not isinstance(metadata, Mapping):
        raise _Fault("metadata", "the metadata must be an object of names and values.")
    if not metadata:
        return {}
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(metadata)))
        bounded_json.check(plain)
    except InvalidInput as error:
        raise _Fault("metadata", f"the metadata cannot be stored: {error}") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise _Fault("metadata", f"the metadata is no JSON: {error}.") from error
    if len(str(plain)) > MAX_METADATA_CHARACTERS:
        raise _Fault("metadata", f"the metadata may have {MAX_METADATA_CHARACTERS:,} characters.")
    return plain


def _source_sha256(text: str, vector: Vector | None, space: EmbeddingSpace) -> str:
    """Of a text alone what an upload of it has. A vector counts, and the space that it is for: a
    re-embedding puts another one in its place."""
    digest = hashlib.sha256(text.encode())
    if vector is not None:
        digest.update(f"\0{space.pk}\0".encode() + vector.tobytes())
    return digest.hexdigest()


def _shown(key: str) -> str:
    short = key if len(key) <= SHOWN_CHARACTERS else key[:SHOWN_CHARACTERS] + "…"
    return short.encode(errors="replace").decode().replace("\x00", "\ufffd")

"""Wire format between site and worker: keys in the broker, requests, replies, descriptions."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer

from inference.interfaces import (
    BackendUnavailable,
    DimensionMismatch,
    EmptyText,
    InferenceError,
    InvalidScore,
    InvalidVector,
    MalformedAnswer,
)

# The number changes with what is stored there, so that two versions never misread each other.
KEY_PREFIX = "ragsite:inference:1"

#: A worker without a heartbeat for this long counts as dead.
ALIVE_SECONDS = 15


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A served model. An embedder is named by model, so that no other one answers instead."""

    name: str

    @property
    def alive(self) -> str:
        """Key of the set of workers that serve it; gone with the last one."""
        return f"{KEY_PREFIX}:alive:{self.name}"

    @property
    def tokenizer(self) -> str:
        return f"{KEY_PREFIX}:tokenizer:{self.name}"

    def queue(self, kind: str) -> str:
        """Key of the list of waiting request ids of one kind."""
        return f"{KEY_PREFIX}:queue:{kind}:{self.name}"


def embedder_service(model_name: str, dimensions: int) -> ServedModel:
    return ServedModel(f"embedder:{model_name}:{dimensions}")


def reranker_service(alias: str) -> ServedModel:
    return ServedModel(f"reranker:{alias}")


def description_key(alias: str) -> str:
    """Key of the description of a worker's embedder."""
    return f"{KEY_PREFIX}:embedder:{alias}"


def request_key(request_id: str) -> str:
    return f"{KEY_PREFIX}:request:{request_id}"


def reply_key(request_id: str) -> str:
    return f"{KEY_PREFIX}:reply:{request_id}"


def wake_up_key(member: str) -> str:
    """Key of the list that wakes a server's threads when it stops."""
    return f"{KEY_PREFIX}:wake-up:{member}"


VERSION_HINT = "Do the site and the worker run the same version?"


def read_fields(data: bytes) -> Mapping[str, Any]:
    """Parse a JSON object. Raises MalformedAnswer."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"what came over the broker is no JSON. {VERSION_HINT}") from error
    if not isinstance(fields, dict):
        raise MalformedAnswer(f"what came over the broker is no JSON object. {VERSION_HINT}")
    return fields


def field(fields: Mapping[str, Any], name: str, kind: Any) -> Any:
    """The value of that name. Raises MalformedAnswer unless it is a `kind`."""
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedAnswer(f"what came over the broker has no proper {name!r}. {VERSION_HINT}")
    return value


def list_field(fields: Mapping[str, Any], name: str, kind: Any) -> Sequence[Any]:
    """The values of that name. Raises MalformedAnswer unless each is a `kind`."""
    values = field(fields, name, list)
    if not all(isinstance(value, kind) for value in values):
        raise MalformedAnswer(f"what came over the broker has no proper {name!r}. {VERSION_HINT}")
    return tuple(values)


MAX_REQUEST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """Request for the vector of a query."""

    KIND: ClassVar[str] = "query"

    text: str
    instruction: str | None

    @classmethod
    def decode(cls, data: bytes) -> "QueryRequest":
        """Parse the request. Raises MalformedAnswer."""
        fields = read_fields(data)
        return cls(field(fields, "text", str), field(fields, "instruction", str | None))


@dataclass(frozen=True, slots=True)
class DocumentsRequest:
    """Request for the vectors of documents."""

    KIND: ClassVar[str] = "documents"

    texts: Sequence[str]

    @classmethod
    def decode(cls, data: bytes) -> "DocumentsRequest":
        """Parse the request. Raises MalformedAnswer."""
        return cls(list_field(read_fields(data), "texts", str))


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """Request for relevance scores of texts."""

    KIND: ClassVar[str] = "judgement"

    query: str
    texts: Sequence[str]
    stored: Sequence[float]
    instruction: str | None

    @classmethod
    def decode(cls, data: bytes) -> "RerankRequest":
        """Parse the request. Raises MalformedAnswer."""
        fields = read_fields(data)
        return cls(
            field(fields, "query", str),
            list_field(fields, "texts", str),
            list_field(fields, "stored", int | float),
            field(fields, "instruction", str | None),
        )


WorkerRequest = QueryRequest | DocumentsRequest | RerankRequest


def encode_request(question: WorkerRequest) -> bytes:
    """The request as JSON. Raises InferenceError where it is too large."""
    data = json.dumps(asdict(question)).encode()
    if len(data) > MAX_REQUEST_BYTES:
        raise InferenceError(
            f"{len(data):,} bytes are too many to send to a worker at once, the limit is"
            f" {MAX_REQUEST_BYTES:,}: send fewer or shorter texts."
        )
    return data


# Hosts of either byte order meet at one broker.
VECTOR_DTYPE = np.dtype("<f4")
SCORE_DTYPE = np.dtype("<f8")

#: Errors that a worker's reply names by class.
_ERRORS: Mapping[str, type[InferenceError]] = {
    kind.__name__: kind
    for kind in (
        BackendUnavailable,
        DimensionMismatch,
        EmptyText,
        InferenceError,
        InvalidScore,
        InvalidVector,
        MalformedAnswer,
    )
}
_ANSWERED = b"\0"
_FAILED = b"\1"
_DETAILS = ("index", "expected", "actual")


def encode_array(numbers: ArrayLike, dtype: np.dtype[Any]) -> bytes:
    return _ANSWERED + np.asarray(numbers, dtype).tobytes()


def encode_failure(error: InferenceError) -> bytes:
    """The error as a reply; a backend's own class is sent as its nearest known base."""
    known = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
    details = {name: getattr(error, name, None) for name in _DETAILS}
    return _FAILED + json.dumps({"class": known, "message": str(error), **details}).encode()


def decode_array(reply: bytes, dtype: np.dtype[Any], *, shape: tuple[int, ...]) -> NDArray[Any]:
    """The numbers, in a writable array. Raises what the worker raised, or MalformedAnswer."""
    status, body = reply[:1], reply[1:]
    if status == _FAILED:
        fields = read_fields(body)
        kind = _ERRORS.get(field(fields, "class", str), InferenceError)
        if kind is EmptyText:
            raise EmptyText(field(fields, "index", int))
        if kind is DimensionMismatch:
            raise DimensionMismatch(field(fields, "expected", int), field(fields, "actual", int))
        raise kind(field(fields, "message", str))
    expected = int(np.prod(shape)) * dtype.itemsize
    if status != _ANSWERED or len(body) != expected:
        raise MalformedAnswer(
            f"a worker answered {len(body)} bytes where {expected} were due. {VERSION_HINT}"
        )
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


MAX_TOKENIZER_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EmbedderDescription:
    """Name, dimensions and window of a worker's embedder."""

    model_name: str
    dimensions: int
    max_tokens: int

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "EmbedderDescription":
        """Parse the announcement. Raises MalformedAnswer."""
        fields = read_fields(data)
        return cls(
            field(fields, "model_name", str),
            field(fields, "dimensions", int),
            field(fields, "max_tokens", int),
        )


def encode_tokenizer(tokenizer: Tokenizer | None) -> bytes:
    """The tokenizer, compressed to a third of its JSON or less: 0.2 MB for BERT's."""
    return zlib.compress(tokenizer.to_str().encode() if tokenizer else b"")


def decode_tokenizer(data: bytes) -> Tokenizer | None:
    """None where the worker's embedder has none. Raises MalformedAnswer."""
    try:
        text = zlib.decompressobj().decompress(data, MAX_TOKENIZER_BYTES)
        return Tokenizer.from_str(text.decode()) if text else None
    except Exception as error:  # tokenizers raises bare Exception
        raise MalformedAnswer(
            f"the tokenizer that a worker left cannot be read: {error}. {VERSION_HINT}"
        ) from error

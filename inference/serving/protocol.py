"""Wire format between site and worker: keys in the broker, requests, replies, descriptions."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

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
KEY_PREFIX = "ragsite:inference:2"

#: A worker without a heartbeat for this long counts as dead.
ALIVE_SECONDS = 15


def embedder_service(model_name: str, dimensions: int) -> str:
    """Name of a served embedder: by its model, so that no other one answers instead."""
    return f"embedder:{model_name}:{dimensions}"


def reranker_service(alias: str) -> str:
    return f"reranker:{alias}"


def token_encoder_service(model_name: str, dimensions: int) -> str:
    """By its model, as of an embedder: stored states are compared with those of a question."""
    return f"token-encoder:{model_name}:{dimensions}"


def alive_key(service: str) -> str:
    """Key of the set of workers that serve it; gone with the last one."""
    return f"{KEY_PREFIX}:alive:{service}"


def tokenizer_key(service: str) -> str:
    return f"{KEY_PREFIX}:tokenizer:{service}"


def queue_key(service: str, kind: str) -> str:
    """Key of the list of waiting request ids of one kind."""
    return f"{KEY_PREFIX}:queue:{kind}:{service}"


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


MAX_REQUEST_BYTES = 64 * 1024 * 1024
#: Fields by kind of request, with their types; [type] is a list of them.
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "query": {"text": str, "instruction": str | None},
    "documents": {"texts": [str]},
    "comparison": {"query": str, "texts": [str], "instruction": str | None},
    "token-query": {"text": str},
    "token-documents": {"texts": [str]},
    "judgement": {
        "query": str,
        "texts": [str],
        "stored": [int | float],
        "instruction": str | None,
    },
}
#: Fields of what a worker announces of its embedder.
DESCRIPTION: Mapping[str, Any] = {"model_name": str, "dimensions": int, "max_tokens": int}


def encode_request(fields: Mapping[str, Any]) -> bytes:
    """The request as JSON. Raises InferenceError where it is too large."""
    data = json.dumps(fields).encode()
    if len(data) > MAX_REQUEST_BYTES:
        raise InferenceError(
            f"{len(data):,} bytes are too many to send to a worker at once, the limit is"
            f" {MAX_REQUEST_BYTES:,}: send fewer or shorter texts."
        )
    return data


def decode_fields(data: bytes, types: Mapping[str, Any]) -> dict[str, Any]:
    """The fields named by `types` of a JSON object. Raises MalformedAnswer unless all fit."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"what came over the broker is no JSON. {VERSION_HINT}") from error
    if not isinstance(fields, dict):
        raise MalformedAnswer(f"what came over the broker is no JSON object. {VERSION_HINT}")
    for name, kind in types.items():
        value = fields.get(name)
        values, item = (value, kind[0]) if isinstance(kind, list) else ([value], kind)
        if not isinstance(values, list) or not all(
            isinstance(each, item) and not isinstance(each, bool) for each in values
        ):
            raise MalformedAnswer(
                f"what came over the broker has no proper {name!r}. {VERSION_HINT}"
            )
    return {name: fields.get(name) for name in types}


# Hosts of either byte order meet at one broker.
VECTOR_DTYPE = np.dtype("<f4")
SCORE_DTYPE = np.dtype("<f8")


def token_dtype(dimensions: int) -> np.dtype[Any]:
    """One token of one of several texts, of which `text` is the place."""
    return np.dtype(
        [("text", "<i4"), ("start", "<i4"), ("end", "<i4"), ("bits", "u1", (dimensions // 8,))]
    )


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
    body = _answered(reply)
    expected = int(np.prod(shape)) * dtype.itemsize
    if len(body) != expected:
        raise MalformedAnswer(
            f"a worker answered {len(body)} bytes where {expected} were due. {VERSION_HINT}"
        )
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def decode_rows(reply: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """As many of `dtype` as there are. Raises as `decode_array` does."""
    body = _answered(reply)
    if len(body) % dtype.itemsize:
        raise MalformedAnswer(
            f"a worker answered {len(body)} bytes, not so many times {dtype.itemsize}."
            f" {VERSION_HINT}"
        )
    rows = np.frombuffer(body, dtype)
    return rows.astype(rows.dtype.newbyteorder("="))


def _answered(reply: bytes) -> bytes:
    """The body of an answer. Raises what the worker raised, or MalformedAnswer."""
    status, body = reply[:1], reply[1:]
    if status == _FAILED:
        kind = _ERRORS.get(decode_fields(body, {"class": str})["class"], InferenceError)
        if kind is EmptyText:
            raise EmptyText(decode_fields(body, {"index": int})["index"])
        if kind is DimensionMismatch:
            raise DimensionMismatch(**decode_fields(body, {"expected": int, "actual": int}))
        raise kind(decode_fields(body, {"message": str})["message"])
    if status != _ANSWERED:
        raise MalformedAnswer(f"a worker's reply is neither an answer nor an error. {VERSION_HINT}")
    return body


MAX_TOKENIZER_BYTES = 256 * 1024 * 1024


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

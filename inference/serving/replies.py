"""What a worker says: numbers, or what went wrong. Nothing that is read here can run code."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inference.base import (
    BackendUnavailable,
    DimensionMismatch,
    EmptyText,
    InferenceError,
    InvalidScore,
    InvalidVector,
    MalformedAnswer,
)
from inference.serving.fields import VERSIONS, field, read_fields

# Hosts of either byte order meet at one broker.
VECTOR = np.dtype("<f4")
SCORE = np.dtype("<f8")

_ANSWERED = b"\0"
_FAILED = b"\1"
_DETAILS = ("index", "expected", "actual")


def encode(numbers: ArrayLike, dtype: np.dtype[Any]) -> bytes:
    return _ANSWERED + np.asarray(numbers, dtype).tobytes()


def encode_error(error: InferenceError) -> bytes:
    """A class of a backend's own goes as the nearest one that everybody knows."""
    known = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
    details = {name: getattr(error, name, None) for name in _DETAILS}
    return _FAILED + json.dumps({"class": known, "message": str(error), **details}).encode()


def decode(reply: bytes, dtype: np.dtype[Any], *, shape: tuple[int, ...]) -> NDArray[Any]:
    """The numbers, in a writable array. Raises what the worker raised, or MalformedAnswer."""
    status, body = reply[:1], reply[1:]
    if status == _FAILED:
        raise _decode_error(body)
    expected = int(np.prod(shape)) * dtype.itemsize
    if status != _ANSWERED or len(body) != expected:
        raise MalformedAnswer(
            f"a worker answered {len(body)} bytes where {expected} were due. {VERSIONS}"
        )
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _decode_error(body: bytes) -> InferenceError:
    fields = read_fields(body)
    return _ERRORS.get(field(fields, "class", str), _ERRORS["InferenceError"])(fields)


def _by_message(kind: type[InferenceError]) -> Callable[[Mapping[str, Any]], InferenceError]:
    return lambda fields: kind(field(fields, "message", str))


_ERRORS: Mapping[str, Callable[[Mapping[str, Any]], InferenceError]] = {
    "EmptyText": lambda fields: EmptyText(field(fields, "index", int)),
    "DimensionMismatch": lambda fields: DimensionMismatch(
        field(fields, "expected", int), field(fields, "actual", int)
    ),
    **{
        kind.__name__: _by_message(kind)
        for kind in (
            BackendUnavailable,
            InvalidVector,
            InvalidScore,
            MalformedAnswer,
            InferenceError,
        )
    },
}

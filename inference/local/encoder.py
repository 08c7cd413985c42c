"""A model in memory: windows of token ids in, pooled vectors out."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel
from transformers.utils import logging as transformers_logging

from inference.base import BackendUnavailable
from inference.local.batching import run_in_batches
from inference.local.devices import default_batch_tokens, is_out_of_memory, pick_device, pick_dtype
from inference.local.folder import ModelFolder
from inference.local.pooling import pool
from inference.local.tokens import Window

_progress_bar = threading.Lock()  # transformers has one switch for the whole process


class Encoder:
    """Loads on construction; may be called from several threads at once."""

    def __init__(
        self,
        folder: ModelFolder,
        *,
        device: str | None = None,
        dtype: str | None = None,
        batch_tokens: int | None = None,
        threads: int | None = None,
    ) -> None:
        """What is None is chosen for this machine. `threads` is torch's, for the whole process.

        Raises BackendUnavailable.
        """
        if threads:
            torch.set_num_threads(threads)
        self.folder = folder
        self.device = pick_device(device)
        self.dtype = pick_dtype(self.device, dtype)
        self.batch_tokens = batch_tokens or default_batch_tokens(self.device)
        self._model = _load(folder, self.dtype).to(self.device)

    def encode(self, windows: Sequence[Window]) -> NDArray[np.float32]:
        """Shape (len(windows), hidden size), in the order given, not normalised."""
        vectors = np.empty((len(windows), self.folder.hidden_size), dtype=np.float32)

        def run(rows: list[int]) -> None:
            vectors[rows] = self._forward([windows[row] for row in rows])

        self.batch_tokens = run_in_batches(
            [len(window) for window in windows],
            run,
            budget=self.batch_tokens,
            is_out_of_memory=is_out_of_memory,
        )
        return vectors

    def _forward(self, windows: Sequence[Window]) -> NDArray[np.float32]:
        ids, mask = (
            torch.from_numpy(array).to(self.device)
            for array in padded(windows, pad_id=self.folder.pad_id)
        )
        with torch.inference_mode():
            hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            vectors: NDArray[np.float32] = pool(hidden, mask, self.folder.pooling).cpu().numpy()
        return vectors


def padded(
    windows: Sequence[Window], *, pad_id: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids and mask, each of shape (rows, longest), padded on the right.

    On the right for decoders too: a causal model never looks at what comes after a token, and
    positions count from 0 in every row. Left padding is for generating text.
    """
    lengths = np.array([len(window) for window in windows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = np.concatenate(windows)
    return ids, mask.astype(np.int64)


def _load(folder: ModelFolder, dtype: torch.dtype) -> Any:
    try:
        with _without_progress_bar():
            model = AutoModel.from_pretrained(folder.path, dtype=dtype, local_files_only=True)
    except (OSError, ValueError) as error:
        raise BackendUnavailable(
            f"the model in {folder.path} cannot be loaded: {error}. Is the folder whole?"
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

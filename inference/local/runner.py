"""Runs a model over many texts: batches, padding, device, turns, and what to do out of memory."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from inference.local.batching import run_in_batches
from inference.local.devices import (
    default_batch_tokens,
    is_out_of_memory,
    pick_device,
    pick_dtype,
    turns,
)
from inference.local.placement import Placement
from inference.local.tokens import Window

Columns = Mapping[str, Sequence[Window]]  # by the names of a model's arguments; "input_ids" is one
Batch = dict[str, torch.Tensor]


class Runner:
    """May be called from several threads at once."""

    def __init__(self, placement: Placement, *, pad_id: int, exact: bool) -> None:
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
        """What `forward` makes of each text, in the order given: shape (texts, width)."""
        lengths = [len(window) for window in columns["input_ids"]]
        results = np.empty((len(lengths), width), dtype=np.float32)

        def run(rows: list[int]) -> None:
            batch = self._batch(columns, rows)
            with turns(self.device), torch.inference_mode():
                on_device = {name: tensor.to(self.device) for name, tensor in batch.items()}
                results[rows] = forward(on_device).float().cpu().numpy()

        held = run_in_batches(
            lengths, run, budget=self.batch_tokens, is_out_of_memory=is_out_of_memory
        )
        self.batch_tokens = min(self.batch_tokens, held)
        return results

    def _batch(self, columns: Columns, rows: list[int]) -> Batch:
        batch: Batch = {}
        for name, windows in columns.items():
            pad_id = self._pad_id if name == "input_ids" else 0
            values, mask = padded([windows[row] for row in rows], pad_id=pad_id)
            batch[name] = torch.from_numpy(values)
            batch["attention_mask"] = torch.from_numpy(mask)
        return batch


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

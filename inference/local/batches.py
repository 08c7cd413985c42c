"""Texts of any number and length in batches for a local model. No torch."""

import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inference.cancellation import check_cancelled
from inference.interfaces import InferenceError
from inference.tokens import Window

logger = logging.getLogger(__name__)

#: By the names of a model's arguments; "input_ids" is one.
Columns = Mapping[str, Sequence[Window]]


def run_in_batches(
    lengths: Sequence[int],
    run: Callable[[list[int]], None],
    *,
    budget: int,
    is_out_of_memory: Callable[[Exception], bool],
) -> int:
    """Call `run` with row indices until each row was run once; returns the token budget that
    worked.

    Rows of similar length go together, and rows times the longest stays within `budget` tokens
    unless one row alone is longer. Out of memory halves the batch and all that follow. The longest
    go first, so that memory runs out at the start or not at all. Raises Cancelled between batches.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        check_cancelled()
        longest = lengths[order[start]]
        rows = order[start : start + max(1, budget // longest)]
        try:
            run(rows)
        except Exception as error:  # each engine has its own class for it
            if not is_out_of_memory(error):
                raise
            if len(rows) == 1:
                raise InferenceError(
                    f"one text of {longest} tokens does not fit in memory: set a smaller"
                    " max_length, or run the model on another device."
                ) from error
            budget = longest * (len(rows) // 2)
            logger.warning("out of memory: %d tokens in a batch from now on", budget)
        else:
            start += len(rows)
    return budget


def pad_windows(
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

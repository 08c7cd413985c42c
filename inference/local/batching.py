"""Batches by token budget, longest texts first, smaller when memory runs out."""

import logging
from collections.abc import Callable, Sequence

from inference.base import InferenceError

logger = logging.getLogger(__name__)


def run_in_batches(
    lengths: Sequence[int],
    run: Callable[[list[int]], None],
    *,
    budget: int,
    is_out_of_memory: Callable[[Exception], bool],
) -> int:
    """Calls `run` with row numbers until each row has been run once; returns the budget that held.

    Rows of like length go together, and rows times the longest stays within `budget` tokens unless
    one row alone is longer. Out of memory halves the batch and all that follow. The longest go
    first, so that memory runs out at the start or not at all.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        rows = order[start : start + max(1, budget // longest)]
        try:
            run(rows)
        except (RuntimeError, MemoryError) as error:
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

"""Where a model runs, in which number format, and how much at once."""

import logging
import os
import time
from functools import cache

import torch

from inference.base import InferenceError

logger = logging.getLogger(__name__)

DTYPES = ("float32", "bfloat16", "float16")
FASTER_BY = 1.3  # below this, half the precision buys nothing
TOKENS_PER_ROW = 256
CPU_TOKENS = 4096  # measured: from 2,000 to 8,000 tokens alike, slower on either side


@cache  # so that a fallback warns once
def pick_device(requested: str | None) -> str:
    """mps, cuda or cpu, the first there is; a requested device that is missing warns."""
    available = _available_devices()
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


def pick_dtype(device: str, requested: str | None) -> torch.dtype:
    """The requested format, else bfloat16 where it is clearly faster and float32 where not."""
    if requested is None:
        return torch.bfloat16 if _bfloat16_is_faster(device) else torch.float32
    if requested not in DTYPES:
        raise InferenceError(f"dtype {requested!r} is not one of {', '.join(DTYPES)}.")
    dtype: torch.dtype = getattr(torch, requested)
    return dtype


def default_batch_tokens(device: str) -> int:
    """Tokens in one batch, by the memory of the device."""
    gigabytes = _memory_bytes(device) / 1e9
    rows = next((rows for below, rows in ((16, 8), (32, 16), (64, 32)) if gigabytes < below), 64)
    tokens = rows * TOKENS_PER_ROW
    return min(tokens, CPU_TOKENS) if device == "cpu" else tokens


def is_out_of_memory(error: Exception) -> bool:
    # MPS and the CPU allocator say it in the text of a bare RuntimeError.
    text = str(error).lower()
    return (
        isinstance(error, (torch.OutOfMemoryError, MemoryError))
        or "out of memory" in text
        or "can't allocate memory" in text
    )


def _available_devices() -> list[str]:
    found = {"mps": torch.backends.mps.is_available(), "cuda": torch.cuda.is_available()}
    return [*(name for name, there in found.items() if there), "cpu"]


@cache
def _bfloat16_is_faster(device: str) -> bool:
    """Measured, not guessed from a flag: many CPUs run bfloat16 only in emulation, slower."""
    best = dict.fromkeys((torch.float32, torch.bfloat16), float("inf"))
    for _ in range(5):  # taken in turns, so that a busy moment falls on both
        for dtype in best:
            best[dtype] = min(best[dtype], _product_seconds(device, dtype))
    faster = best[torch.float32] / best[torch.bfloat16]
    logger.info("bfloat16 on %s is %.1f times as fast as float32", device, faster)
    return faster >= FASTER_BY


def _product_seconds(device: str, dtype: torch.dtype) -> float:
    """Time of one layer's matrix product, the bulk of a forward pass."""
    rows = torch.ones(512, 384, device=device, dtype=dtype)
    weights = torch.ones(384, 1536, device=device, dtype=dtype)
    start = time.perf_counter()
    (rows @ weights)[0, 0].item()  # reading a number waits for the device
    return time.perf_counter() - start


def _memory_bytes(device: str) -> int:
    if device.startswith("cuda"):
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

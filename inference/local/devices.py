"""Where a model runs, in which number format, and how much at once."""

import logging
import os
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch

from inference.base import InferenceError

logger = logging.getLogger(__name__)

DTYPES = ("float32", "bfloat16", "float16")
# Apple's processors say plain "bf16", for which torch has no fast kernels outside MPS.
NATIVE_BFLOAT16 = ("amx_bf16", "avx512_bf16", "sve_bf16")
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


def pick_dtype(device: str, requested: str | None, *, exact: bool = False) -> torch.dtype:
    """The requested format, else bfloat16 where the device is faster in it, else float32.

    `exact` is for models whose answer hangs on one token, so that rounding is not averaged away:
    unless asked otherwise they run in float32. Measured on random Qwen3s of 3 to 28 layers, a text
    alone against the same text in a batch: bfloat16 down to cosine 0.9995 and up to 0.008 in a
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
def turns(device: str) -> AbstractContextManager[object]:
    """What a forward pass on `device` is to hold: a lock on an accelerator, nothing on the CPU.

    An accelerator runs one pass after the other in any case. Two at once would only hold the
    memory of two, and Metal's command buffers may not be filled from two threads.
    """
    return nullcontext() if device == "cpu" else threading.Lock()


def default_batch_tokens(device: str) -> int:
    """Tokens in one batch, by the memory of the device."""
    tokens = batch_rows(_memory_bytes(device)) * TOKENS_PER_ROW
    return min(tokens, CPU_TOKENS) if device == "cpu" else tokens


def batch_rows(memory_bytes: int) -> int:
    """Texts of ordinary length that are run at once in so much memory."""
    gigabytes = memory_bytes / 1e9
    return next((rows for below, rows in ((16, 8), (32, 16), (64, 32)) if gigabytes < below), 64)


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


def _bfloat16_is_faster(device: str) -> bool:
    """Whether the hardware multiplies bfloat16 itself; in emulation it is slower than float32.

    Read from what the processor says and not timed, so that every process of a machine, busy or
    idle, chooses alike and a query meets vectors of its own precision.
    """
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return device == "mps" or any(capabilities.get(name, False) for name in NATIVE_BFLOAT16)


def _memory_bytes(device: str) -> int:
    if device.startswith("cuda"):
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

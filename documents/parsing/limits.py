"""What one file may cost, and how the parser process holds itself to it."""

import ctypes
import math
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from documents.parsers import DEFAULT_LIMITS

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS = 38


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """`seconds` a file, `memory_bytes` of addresses for the process, `max_bytes` of a file and of
    the text in it (as UTF-8)."""

    seconds: float = 300.0
    memory_bytes: int = 1024**3
    max_bytes: int = DEFAULT_LIMITS.max_bytes


def confine(memory_bytes: int) -> None:
    """For the rest of its life this process writes no file, starts no other and dumps no core.

    Where the system has no such limit it does without: macOS does not bound memory.
    """
    sys.dont_write_bytecode = True
    _limit("RLIMIT_AS", memory_bytes)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_NPROC", 0)


def leave_the_network() -> None:
    """Move into a network of one's own, which has no way out, where Linux allows it.

    A process of one thread only.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Only root may without a user namespace, in which it would lose its access to others' files.
    libc.unshare(_CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Have the kernel end this process when the block takes longer.

    The signals keep their default action: one that Python handles waits for C code to return.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit("RLIMIT_CPU", math.ceil(used.ru_utime + used.ru_stime + seconds) + 1)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _limit(name: str, soft: int) -> None:
    kind = getattr(resource, name, None)
    if kind is None:
        return
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (soft, hard if name == "RLIMIT_CPU" else soft))

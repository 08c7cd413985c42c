"""Limits of parsing one file, how the parser process enforces them on itself, and the errors for
broken limits."""

import ctypes
import math
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from reading.parsers import DEFAULT_LIMITS, ParseError

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS = 38


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """`seconds` per file or page, `memory_bytes` of address space for the process, `max_bytes` of a
    file and of its text (as UTF-8); whether the process `starts_programs`, as Tesseract is, and
    `writes_files`, of at most `max_bytes` each."""

    seconds: float = 300.0
    memory_bytes: int = 1024**3
    max_bytes: int = DEFAULT_LIMITS.max_bytes
    starts_programs: bool = False
    writes_files: bool = False


def restrict_process(
    memory_bytes: int, *, starts_programs: bool = False, file_bytes: int = 0
) -> None:
    """Restrict this process, and those that it starts, for the rest of their lives: they write no
    file of more than `file_bytes` and dump no core. Without `starts_programs` it starts none, and
    no thread.

    Limits that the system lacks are skipped: macOS does not limit memory.
    """
    sys.dont_write_bytecode = True
    _set_rlimit("RLIMIT_AS", memory_bytes)
    _set_rlimit("RLIMIT_FSIZE", file_bytes)
    _set_rlimit("RLIMIT_CORE", 0)
    if not starts_programs:
        _set_rlimit("RLIMIT_NPROC", 0)


def isolate_network() -> None:
    """Move into a network namespace without a connection, where Linux allows it.

    Only for a process with one thread.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Only root may without a user namespace, in which it would lose its access to others' files.
    libc.unshare(_CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Have the kernel end this process if the block takes longer.

    The signals keep their default action: one that Python handles would wait for C code to return.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set_rlimit("RLIMIT_CPU", math.ceil(used.ru_utime + used.ru_stime + seconds) + 1)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _set_rlimit(name: str, soft: int) -> None:
    kind = getattr(resource, name, None)
    if kind is None:
        return
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (soft, hard if name == "RLIMIT_CPU" else soft))


def time_limit_error(name: str, seconds: float) -> ParseError:
    """The error for a file that took longer than the time limit."""
    return ParseError(
        "too_slow",
        f"Reading {name} took longer than {seconds:g} seconds and was stopped. Split it or save it"
        " again, or raise RAGSITE_PARSER_SECONDS.",
    )


def memory_limit_error(name: str, memory_bytes: int) -> ParseError:
    """The error for a file that needed more than the memory limit."""
    return ParseError(
        "too_much_memory",
        f"Reading {name} needs more than {memory_bytes // 1024**2:,} MiB of memory. Split it or"
        " save it again, or raise RAGSITE_PARSER_MEMORY_BYTES.",
    )


def crash_error(name: str, what: str) -> ParseError:
    """The error for a parser that failed unexpectedly."""
    return ParseError(
        "crashed",
        f"The parser of {name} failed ({what}). Save it again or in another format, and report the"
        " error: the log has more.",
    )


def exit_error(exit_code: int, name: str, seconds: float) -> ParseError:
    """The error for a process that exited while it parsed the file; a negative code is a signal."""
    match -exit_code:
        case signal.SIGALRM | signal.SIGXCPU:
            return time_limit_error(name, seconds)
        case signal.SIGKILL:
            return ParseError(
                "too_much_memory",
                f"The process that read {name} was killed, probably because the machine has too"
                " little memory. Split it, or try again later.",
            )
        case signal.SIGABRT:
            return ParseError(
                "too_much_memory",
                f"The process that read {name} stopped, probably for lack of memory."
                " Split it or save it again, or raise RAGSITE_PARSER_MEMORY_BYTES.",
            )
        case number if number in set(signal.Signals):
            return crash_error(name, signal.Signals(number).name)
    return crash_error(name, f"exit code {exit_code}")


def size_limit_error(name: str, max_bytes: int) -> ParseError:
    """The error for a file that is larger now than when it was checked."""
    return ParseError(
        "too_large",
        f"{name} has more than {max_bytes:,} bytes. Split it, or raise RAGSITE_MAX_UPLOAD_BYTES.",
    )

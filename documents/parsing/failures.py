"""Why a parser was stopped, as errors that name the file, the limit and the cure."""

import signal

from documents.parsers import ParseError


def too_slow(name: str, seconds: float) -> ParseError:
    """The time is over."""
    return ParseError(
        "too_slow",
        f"Reading {name} took longer than {seconds:g} seconds and was stopped. Split it or save it"
        " anew, or raise RAGSITE_PARSER_SECONDS.",
    )


def too_much_memory(name: str, memory_bytes: int) -> ParseError:
    """It asked for more memory than there is for it."""
    return ParseError(
        "too_much_memory",
        f"Reading {name} needs more than {memory_bytes // 1024**2:,} MiB of memory. Split it or"
        " save it anew, or raise RAGSITE_PARSER_MEMORY_BYTES.",
    )


def killed(name: str) -> ParseError:
    """Somebody ended the process, most likely the kernel."""
    return ParseError(
        "too_much_memory",
        f"The process that read {name} was killed, probably because the machine has too little"
        " memory. Split it, or try again when there is more.",
    )


def crashed(name: str, what: str) -> ParseError:
    """The parser did what no parser may."""
    return ParseError(
        "crashed",
        f"The parser of {name} failed ({what}). Save it anew or in another format, and report it:"
        " the log has more.",
    )


def of_exit(exit_code: int, name: str, seconds: float) -> ParseError:
    """Of a process that ended while it read the file; a negative code is that of a signal."""
    match -exit_code:
        case signal.SIGALRM | signal.SIGXCPU:
            return too_slow(name, seconds)
        case signal.SIGKILL:
            return killed(name)
        case number if number in set(signal.Signals):
            return crashed(name, signal.Signals(number).name)
    return crashed(name, f"exit code {exit_code}")


def grown(name: str, max_bytes: int) -> ParseError:
    """A file that is larger now than when it was looked at."""
    return ParseError(
        "too_large",
        f"{name} has more than the {max_bytes:,} bytes that are allowed. Split it, or raise"
        " RAGSITE_MAX_UPLOAD_BYTES.",
    )

"""Files that commands write: whole, or not there."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from documents.transfer.format import STANDARD, open_for_writing

T = TypeVar("T")

#: 128 + 13, what a shell tells of a command that SIGPIPE ended.
SIGPIPE_ENDED = 141


def written(output: str, write: Callable[[BinaryIO], T]) -> T:
    """What `write` returns; `-` is standard output, and `.gz` is compressed. Raises OSError.

    Where whoever reads standard output has enough, such as `head`, the command ends as if SIGPIPE
    had ended it.
    """
    if output == STANDARD:
        try:
            with open_for_writing(STANDARD) as file:
                result = write(file)
                file.flush()
        except BrokenPipeError:
            # At exit Python flushes once more, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(SIGPIPE_ENDED)
        return result
    part = Path(f"{output}.part{'.gz' if output.endswith('.gz') else ''}")
    try:
        with open_for_writing(str(part)) as file:
            result = write(file)
        part.replace(output)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return result

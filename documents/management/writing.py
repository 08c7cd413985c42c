"""Files that commands write: whole, or not there."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from documents.transfer.format import STANDARD, open_for_writing

T = TypeVar("T")


def written(output: str, write: Callable[[BinaryIO], T]) -> T:
    """What `write` returns; `-` is standard output, and `.gz` is compressed. Raises OSError."""
    if output == STANDARD:
        with open_for_writing(STANDARD) as file:
            result = write(file)
            file.flush()
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

"""Files of JSON Lines, one JSON object a line, also compressed and on standard input and output."""

import gzip
import json
import os
import sys
import zlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from django.core.serializers.json import DjangoJSONEncoder

from common import bounded_json
from common.errors import InvalidInput
from common.translation import format_number, gettext

T = TypeVar("T")

#: The longest chunk with a vector of the most dimensions, with every character escaped; and a graph
#: node whose properties are as large as may be.
MAX_LINE_BYTES = 16 * 1024 * 1024
STANDARD_STREAM = "-"
#: 128 + 13, the exit code of a command ended by SIGPIPE.
SIGPIPE_EXIT_CODE = 141


def encode_line(value: Any) -> bytes:
    """A line with its line end."""
    text = json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def read_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Numbered lines; of one that is too long only the beginning is read into memory. Ends where a
    compressed file was cut off."""
    number = 0
    try:
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            last = raw
            while not last.endswith(b"\n") and (last := file.readline(MAX_LINE_BYTES)):
                pass
            yield number, raw
    except (EOFError, OSError, zlib.error):
        return


def decode_line(raw: bytes) -> Any:
    """The JSON value of a line, unchecked. Raises InvalidInput."""
    if len(raw) > MAX_LINE_BYTES:
        raise InvalidInput(
            gettext("A line may have {line_bytes} bytes.").format(
                line_bytes=format_number(MAX_LINE_BYTES)
            )
        )
    try:
        return bounded_json.load(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(gettext("This is not UTF-8.")) from error


def open_for_writing(path: str) -> AbstractContextManager[BinaryIO]:
    """A new file, compressed where its name ends in `.gz`; `-` is standard output."""
    if path == STANDARD_STREAM:
        return nullcontext(sys.stdout.buffer)
    if path.endswith(".gz"):
        return cast("AbstractContextManager[BinaryIO]", gzip.open(path, "wb", compresslevel=5))
    return Path(path).open("wb")


def open_for_reading(path: str) -> AbstractContextManager[BinaryIO]:
    """The same for reading; `-` is standard input."""
    if path == STANDARD_STREAM:
        return nullcontext(sys.stdin.buffer)
    if path.endswith(".gz"):
        return cast("AbstractContextManager[BinaryIO]", gzip.open(path, "rb"))
    return Path(path).open("rb")


def add_output_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        default=STANDARD_STREAM,
        metavar="FILE",
        help="compressed where it ends in .gz; - (default) is standard output",
    )


def write_output(output: str, write: Callable[[BinaryIO], T]) -> T:
    """The result of `write`; `-` is standard output, and `.gz` is compressed. Raises OSError.

    A file appears only when it is complete. If the reader of standard output stops, such as `head`,
    the command exits as if by SIGPIPE.
    """
    if output == STANDARD_STREAM:
        try:
            with open_for_writing(STANDARD_STREAM) as file:
                result = write(file)
                file.flush()
        except BrokenPipeError:
            # At exit Python flushes once more, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(SIGPIPE_EXIT_CODE)
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

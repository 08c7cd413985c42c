"""ZIP files from strangers: what is declared is checked first, what comes out is counted."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from documents.parsers.base import Limits, ParseError

#: A member below this size may expand as it likes.
_HARMLESS = 4 * 1024 * 1024
_CENTRAL_HEADER = b"PK\x01\x02"
_END_RECORD = b"PK\x05\x06"
_READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
#: What the library raises for torn, false and unknown bytes.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError)


@contextmanager
def open_zip(data: bytes, limits: Limits) -> Iterator["ZipArchive"]:
    """The archive; whatever goes wrong with it while it is read becomes a ParseError."""
    try:
        yield ZipArchive(data, limits)
    except (*BROKEN_ZIP, OSError) as error:
        raise broken_zip(error, data) from error
    except RecursionError as error:
        raise ParseError(
            "malformed", "Its parts are nested too deep to be read. Save the file as text."
        ) from error


class ZipArchive:
    """Members by name, unpacked only as far as `limits` allow, however often they are read."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        """Raises ParseError for archives that are damaged, locked or made to exhaust memory."""
        if data.count(_CENTRAL_HEADER) > limits.max_members:
            raise _too_large(f"it has more than {limits.max_members:,} parts")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (*BROKEN_ZIP, OSError, ValueError) as error:
            raise broken_zip(error, data) from error
        self._members = {part_name(info.filename): info for info in self._zip.infolist()}
        self._left = limits.max_unpacked_bytes
        self._limits = limits
        self._check_declared(len(data))

    @property
    def names(self) -> list[str]:
        """Lower case, with forward slashes: the parts of an Office file are named so."""
        return list(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def open(self, name: str) -> "BoundedReader":
        """The member as a stream. Raises ParseError if there is none."""
        info = self._members.get(name)
        if info is None:
            raise ParseError(
                "malformed", f"Its part {name} is missing. Open the file and save it anew."
            )
        if info.flag_bits & 1:
            raise ParseError(
                "encrypted",
                "The ZIP archive is protected by a password. Save a copy without one.",
            )
        if info.compress_type not in _READABLE:
            raise ParseError(
                "malformed",
                f"Its part {name} is packed in a way that Office never uses. Save the file anew.",
            )
        try:
            return BoundedReader(self._zip.open(info), self)
        except ValueError as error:  # an offset before the file's beginning
            raise broken_zip(error) from error

    def open_whole(self, name: str) -> "BoundedReader":
        """A member that will be held whole, with a tree made of it."""
        info, most = self._members.get(name), self._limits.max_part_bytes
        if info and info.file_size > most:
            raise ParseError(
                "too_large", f"Its part {name} has more than {most:,} bytes. Split the file."
            )
        return self.open(name)

    def spend(self, size: int) -> None:
        """Count what was unpacked; ParseError when it is more than allowed."""
        self._left -= size
        if self._left < 0:
            raise _too_large(f"it unpacks to more than {self._limits.max_unpacked_bytes:,} bytes")

    def _check_declared(self, size: int) -> None:
        infos = self._zip.infolist()
        if sum(info.compress_size for info in infos) > size:
            raise _too_large("its parts lie one in another")
        if sum(info.file_size for info in infos) > self._limits.max_unpacked_bytes:
            raise _too_large(f"it unpacks to more than {self._limits.max_unpacked_bytes:,} bytes")
        for info in infos:
            most = max(_HARMLESS, info.compress_size * self._limits.max_unpacked_ratio)
            if info.file_size > most:
                raise _too_large(
                    f"{info.filename[:100]} grows from {info.compress_size:,} to "
                    f"{info.file_size:,} bytes"
                )


class BoundedReader:
    """A member's bytes, counted: the sizes in a ZIP's directory may be lies."""

    def __init__(self, source: IO[bytes], archive: ZipArchive) -> None:
        self._source = source
        self._archive = archive

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, all if it is negative; no bytes at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(65_536), b""))
        block = self._source.read(size)
        self._archive.spend(len(block))
        return block


def part_name(name: str) -> str:
    """Parts of an Office file differ by more than case; some writers use backslashes."""
    return name.replace("\\", "/").lstrip("/").lower()


def broken_zip(error: Exception, data: bytes | None = None) -> ParseError:
    """A file that is damaged or, where `data` lacks the end record, ends too early."""
    if data is not None and _END_RECORD not in data[-65_600:]:
        return ParseError(
            "truncated", "The file ends too early, a part is missing. Download or copy it again."
        )
    reason = f" ({str(error)[:200]})" if str(error) else ""
    return ParseError(
        "malformed", f"The file is damaged{reason}. Open it, save it anew and try again."
    )


def _too_large(reason: str) -> ParseError:
    return ParseError(
        "too_large",
        f"The file expands beyond reason: {reason}. If it is no ZIP bomb, split it.",
    )

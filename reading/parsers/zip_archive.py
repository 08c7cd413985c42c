"""ZIP files from untrusted sources: declared sizes are checked first, unpacked bytes are counted.
Begin with `open_zip`."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from reading.parsers.base import Limits, ParseError

#: A member below this size may expand as it likes.
_UNCHECKED_BYTES = 4 * 1024 * 1024
_CENTRAL_HEADER = b"PK\x01\x02"
_END_RECORD = b"PK\x05\x06"
ZIP = "application/zip"
_SUPPORTED_COMPRESSION = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
#: Errors of the library for truncated, invalid and unsupported archives.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError)


@contextmanager
def open_zip(data: bytes, limits: Limits) -> Iterator["ZipArchive"]:
    """The archive; every fault while it is read becomes a ParseError."""
    try:
        yield ZipArchive(data, limits)
    except (*ZIP_ERRORS, OSError) as error:
        raise broken_zip_error(error, data) from error
    except RecursionError as error:
        raise ParseError(
            "malformed", "Its parts are nested too deeply. Save the file as text."
        ) from error


class ZipArchive:
    """Members by name, unpacked only as far as `limits` allow, counted over repeated reads."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        """Raises ParseError for archives that are damaged, encrypted or ZIP bombs."""
        if data.count(_CENTRAL_HEADER) > limits.max_members:
            raise _too_large_error(f"it has more than {limits.max_members:,} parts")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (*ZIP_ERRORS, OSError, ValueError) as error:
            raise broken_zip_error(error, data) from error
        self._members = {normalise_part_name(info.filename): info for info in self._zip.infolist()}
        self._left = limits.max_unpacked_bytes
        self._limits = limits
        size = len(data)
        infos = self._zip.infolist()
        if sum(info.compress_size for info in infos) > size:
            raise _too_large_error("its parts overlap")
        if sum(info.file_size for info in infos) > self._limits.max_unpacked_bytes:
            raise _too_large_error(
                f"it unpacks to more than {self._limits.max_unpacked_bytes:,} bytes"
            )
        for info in infos:
            most = max(_UNCHECKED_BYTES, info.compress_size * self._limits.max_unpacked_ratio)
            if info.file_size > most:
                raise _too_large_error(
                    f"its part {info.filename[:100]} grows from {info.compress_size:,} to "
                    f"{info.file_size:,} bytes"
                )

    @property
    def names(self) -> list[str]:
        """Lower case, with forward slashes: the parts of an Office file are named so."""
        return list(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def infos(self) -> list[zipfile.ZipInfo]:
        """All members as the archive lists them."""
        return self._zip.infolist()

    def open(self, name: str) -> "BoundedReader":
        """The member as a stream. Raises ParseError if it is missing."""
        info = self._members.get(name)
        if info is None:
            raise ParseError(
                "malformed", f"Its part {name} is missing. Open the file and save it again."
            )
        return self.open_member(info, name)

    def open_member(self, info: zipfile.ZipInfo, name: str) -> "BoundedReader":
        """The member as a stream; `name` is for the message of a ParseError."""
        if info.flag_bits & 1:
            raise ParseError(
                "encrypted",
                "The ZIP archive is protected by a password. Save a copy without one.",
            )
        if info.compress_type not in _SUPPORTED_COMPRESSION:
            raise ParseError(
                "malformed",
                f"Its part {name} uses an unsupported compression. Save the file again.",
            )
        try:
            return BoundedReader(self._zip.open(info), self)
        except ValueError as error:  # an offset before the file's beginning
            raise broken_zip_error(error) from error

    def open_in_memory(self, name: str) -> "BoundedReader":
        """A member that will be kept in memory, with a tree made of it."""
        info, most = self._members.get(name), self._limits.max_part_bytes
        if info and info.file_size > most:
            raise ParseError(
                "too_large", f"Its part {name} has more than {most:,} bytes. Split the file."
            )
        return self.open(name)

    def spend(self, size: int) -> None:
        """Count unpacked bytes; ParseError above the limit."""
        self._left -= size
        if self._left < 0:
            raise _too_large_error(
                f"it unpacks to more than {self._limits.max_unpacked_bytes:,} bytes"
            )


class BoundedReader:
    """A member's bytes, counted: sizes in a ZIP's directory may be wrong."""

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


def normalise_part_name(name: str) -> str:
    """Lower case with forward slashes: names of parts may differ in case, and some writers use
    backslashes."""
    return name.replace("\\", "/").lstrip("/").lower()


def broken_zip_error(error: Exception, data: bytes | None = None) -> ParseError:
    """The error for a file that is damaged or, if `data` lacks the end record, truncated."""
    if data is not None and _END_RECORD not in data[-65_600:]:
        return ParseError(
            "truncated", "The file ends too early: a part is missing. Download or copy it again."
        )
    reason = f" ({str(error)[:200]})" if str(error) else ""
    return ParseError(
        "malformed", f"The file is damaged{reason}. Open it, save it again and try again."
    )


def _too_large_error(reason: str) -> ParseError:
    return ParseError(
        "too_large",
        f"The file grows too large when it is unpacked: {reason}. Split it.",
    )

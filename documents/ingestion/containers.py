"""Containers as sources: each attachment of a mail, each file of a ZIP archive and each mail of an
mbox is a document of its own. Begin with `with_parts`.

The key of a part is that of its container, `!/` and its name with its folders. What the caller
declares of a container has `parts`, the names of all its parts; that of a part `part_of`, the key
of its container.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from pathlib import PurePosixPath
from typing import BinaryIO

from django.conf import settings

from documents.ingestion.sources import (
    BrokenSource,
    Entry,
    Source,
    check_size,
    open_file,
    parser_limits,
    read_content,
)
from reading.parsers import ParseError
from reading.parsers.base import DEFAULT_LIMITS, UnpackedContainer
from reading.sandbox import ParseRequest, run_in_sandbox
from reading.sandbox.protocol import container_from_fields

PART_MARK = "!/"
#: Tasks of the parser process by the suffixes of the files that they unpack.
_UNPACK_TASKS = {".eml": "unpack_mail", ".msg": "unpack_mail", ".zip": "unpack_zip"}
MBOX_SUFFIX = ".mbox"
#: Mails attached to mails, archives in archives, and each in the other.
MAX_DEPTH = 8
#: A container of which a window takes longer fails: a request may be waiting for it.
UNPACK_SECONDS = 20.0
_LINE_BYTES = 64 * 1024
_MAX_ID_CHARACTERS = 100
_UNSAFE_IN_IDS = re.compile(r"[^\w.@+=$%~-]+")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)
TOO_MUCH = (
    f"Its archive contains more than {DEFAULT_LIMITS.max_members:,} files or"
    f" {DEFAULT_LIMITS.max_unpacked_bytes:,} bytes. This file and those after it were not read."
    " Split the archive."
)
CHANGED = "It changed while it was read. Try again."


@dataclass(slots=True)
class _Allowance:
    """What may still be taken out of a file, with all that lies in what it contains."""

    parts: int = field(default_factory=lambda: DEFAULT_LIMITS.max_members)
    bytes: int = field(default_factory=lambda: DEFAULT_LIMITS.max_unpacked_bytes)


#: In what is declared of a container: its parts are still to be taken out of its stored file.
UNPACK_LATER = "unpack_later"


def with_parts(entries: Iterable[Entry], *, most: int | None = None) -> Iterator[Entry]:
    """The entries, each container with its parts after it, and an mbox replaced by its mails.

    A container with more than `most` parts comes without them, marked as UNPACK_LATER.
    """
    for entry in entries:
        if isinstance(entry, BrokenSource) or entry.part_of or "parts" in entry.declared:
            yield entry
            continue
        own = _with_own_parts(entry, 0, _Allowance())
        first = next(own, None)
        if first is None:
            continue
        if most is not None and isinstance(first, Source) and not first.part_of:
            parts = first.declared.get("parts", ())
            if len(parts) > most:
                yield replace(first, declared={**first.declared, UNPACK_LATER: True})
                continue
        yield first
        yield from own


def _with_own_parts(entry: Source, depth: int, allowance: _Allowance) -> Iterator[Entry]:
    name = str(entry.declared.get("file_name") or entry.name)
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in _UNPACK_TASKS and suffix != MBOX_SUFFIX:
        yield entry
    elif depth > MAX_DEPTH:
        reason = f"Files in it are nested more than {MAX_DEPTH} levels deep. Save it as a file."
        yield BrokenSource(entry.name, entry.size, "unreadable", reason)
    elif suffix == MBOX_SUFFIX:
        yield from _mbox_entries(entry, depth, allowance)
    else:
        try:
            unpacked = _unpack(entry)
        except ParseError as error:
            yield BrokenSource(entry.name, entry.size, error.code, str(error))
        else:
            yield from _part_entries(entry, unpacked, depth, allowance)


def _unpack(container: Source, first: int = 0) -> UnpackedContainer:
    """All names in it, and the bytes of a window of parts from number `first` on."""
    content = read_content(container, max_bytes=settings.MAX_UPLOAD_BYTES)
    name = str(container.declared.get("file_name") or container.name)
    request = ParseRequest(
        name=container.name,
        data=content.data,
        path=content.path,
        task=_UNPACK_TASKS[PurePosixPath(name).suffix.lower()],
        options={"first": first},
    )
    limits = parser_limits(seconds=min(settings.PARSER_SECONDS, UNPACK_SECONDS))
    return run_in_sandbox(request, container_from_fields, limits=limits)


def _part_entries(
    container: Source, unpacked: UnpackedContainer, depth: int, allowance: _Allowance
) -> Iterator[Entry]:
    whole = [part.path for part in unpacked.parts if not part.problem]
    yield replace(container, declared={**container.declared, "parts": whole})
    metadata = container.declared.get("metadata", {})
    if unpacked.about:
        metadata = {**metadata, "mail": {"key": container.key, **unpacked.about}}
    declared = {"part_of": container.key, **({"metadata": metadata} if metadata else {})}
    for index, part in enumerate(unpacked.parts):
        name = f"{container.name}{PART_MARK}{part.path}"
        if part.problem:
            yield BrokenSource(name, part.size, "unreadable", part.problem)
            continue
        allowance.parts -= 1
        allowance.bytes -= part.size
        if min(allowance.parts, allowance.bytes) < 0:
            yield BrokenSource(name, part.size, "too_large", TOO_MUCH)
            return
        source = Source(
            key=f"{container.key}{PART_MARK}{part.path}",
            name=name,
            size=part.size,
            read=partial(_windows.read, container, index, part.path, depth),
            declared=declared,
            access=container.access,
        )
        yield from _with_own_parts(source, depth + 1, allowance)


class _Windows:
    """The window of parts that was unpacked last of a container at each depth: parts are asked for
    one after the other, and not kept meanwhile, because a directory may be too large for that."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Source, UnpackedContainer]] = {}

    def read(self, container: Source, index: int, path: str, depth: int) -> bytes:
        """The bytes of one part. Raises ParseError."""
        last = self._last.get(depth)
        unpacked = last[1] if last is not None and last[0] is container else None
        if unpacked is None or index >= len(unpacked.parts) or unpacked.parts[index].data is None:
            unpacked = _unpack(container, index)
        if index + 1 >= len(unpacked.parts):
            self._last.pop(depth, None)
        else:
            self._last[depth] = (container, unpacked)
        if index >= len(unpacked.parts) or unpacked.parts[index].path != path:
            raise ParseError("unreadable", CHANGED)
        part = unpacked.parts[index]
        if part.data is None:
            raise ParseError("unreadable", part.problem or CHANGED)
        return part.data


_windows = _Windows()


@dataclass(frozen=True, slots=True)
class _Span:
    """A mail of an mbox: its bytes begin behind the line that separates it."""

    start: int
    end: int


def _mbox_entries(mbox: Source, depth: int, allowance: _Allowance) -> Iterator[Entry]:
    taken: set[str] = set()
    number = 0
    try:
        with _opened(mbox) as file:
            for span in _spans(file):
                number += 1
                within = allowance if depth else _Allowance()  # an mbox may be larger than a file
                yield from _mbox_mail(mbox, span, number, taken, depth, within)
    except OSError as error:
        reason = f"It cannot be read: {error.strerror}. Check its permissions."
        yield BrokenSource(mbox.name, mbox.size, "unreadable", reason)
    except ParseError as error:
        yield BrokenSource(mbox.name, mbox.size, error.code, str(error))
    else:
        if not number:
            reason = "It contains no mail: no line begins with “From ”. Save it as an mbox again."
            yield BrokenSource(mbox.name, mbox.size, "malformed", reason)


def _opened(mbox: Source) -> BinaryIO:
    return BytesIO(mbox.read()) if mbox.path is None else open_file(mbox.path, name=mbox.name)


def _spans(file: BinaryIO) -> Iterator[_Span]:
    """Where the mails are; `file` may be read elsewhere in between."""
    start = -1
    at = 0
    is_after_blank = is_line_start = True
    while True:
        file.seek(at)
        line = file.readline(_LINE_BYTES)
        if (is_line_start and is_after_blank and line.startswith(b"From ")) or not line:
            if start >= 0:
                yield _Span(start, at)
            if not line:
                return
            start = at + len(line)
        is_after_blank = is_line_start and not line.strip()
        is_line_start = line.endswith(b"\n")
        at += len(line)


def _mbox_mail(
    mbox: Source, span: _Span, number: int, taken: set[str], depth: int, allowance: _Allowance
) -> Iterator[Entry]:
    name = f"{mbox.name}{PART_MARK}{number}"
    try:
        check_size(settings.MAX_UPLOAD_BYTES, span.end - span.start, name=name)
        data = _span_bytes(mbox, span)
        mail = Source(key=name, name=f"{name}.eml", size=len(data), read=lambda: data)
        unpacked = _unpack(mail)
    except ParseError as error:
        yield BrokenSource(name, span.end - span.start, error.code, str(error))
        return
    digest = hashlib.sha256(data).hexdigest()
    label = _UNSAFE_IN_IDS.sub("-", unpacked.message_id)[:_MAX_ID_CHARACTERS].strip(".")
    if digest in taken:
        return  # the same mail again
    if not label or label in taken:
        label = digest[:32]
    taken |= {label, digest}

    def read() -> bytes:
        again = _span_bytes(mbox, span)
        if hashlib.sha256(again).hexdigest() != digest:
            raise ParseError("unreadable", CHANGED)
        return again

    source = Source(
        key=f"{mbox.key}{PART_MARK}{label}.eml",
        name=f"{mbox.name}{PART_MARK}{label}.eml",
        size=len(data),
        read=read,
        declared={**mbox.declared, "part_of": mbox.key},
        access=mbox.access,
    )
    yield from _part_entries(source, unpacked, depth, allowance)


def _span_bytes(mbox: Source, span: _Span) -> bytes:
    with _opened(mbox) as file:
        file.seek(span.start)
        data = file.read(span.end - span.start)
    # The blank line at its end belongs to the separator.
    return _QUOTED_FROM.sub(rb"\1", data).rstrip(b"\r\n") + b"\n"

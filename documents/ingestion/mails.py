"""Mails as sources: each attachment of a mail and each mail of an mbox is a document of its own.
Begin with `with_attachments`.

The key of an attachment is that of its mail, `!/` and its name. What the caller declares of a mail
has `parts`, the names of all its attachments; that of an attachment `part_of`, the key of its mail.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
    read_content,
)
from documents.parsers import ParseError
from documents.parsers.base import UnpackedMail
from documents.sandbox import ParseRequest, ParserLimits, run_in_sandbox
from documents.sandbox.protocol import mail_from_fields

PART_MARK = "!/"
MAIL_SUFFIXES = frozenset({".eml", ".msg"})
MBOX_SUFFIX = ".mbox"
#: A mail whose attachments take longer fails: a request may be waiting for them.
UNPACK_SECONDS = 20.0
_LINE_BYTES = 64 * 1024
_MAX_ID_CHARACTERS = 100
_UNSAFE_IN_IDS = re.compile(r"[^\w.@+=$%~-]+")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.M)
CHANGED = "It changed while it was read. Try it again."


def with_attachments(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, with the attachments of a mail after it, and an mbox replaced by its mails."""
    for entry in entries:
        if isinstance(entry, BrokenSource) or entry.part_of or "parts" in entry.declared:
            yield entry
            continue
        name = str(entry.declared.get("file_name") or entry.name)
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in MAIL_SUFFIXES:
            yield from _mail_entries(entry)
        elif suffix == MBOX_SUFFIX:
            yield from _mbox_entries(entry)
        else:
            yield entry


def _mail_entries(mail: Source) -> Iterator[Entry]:
    try:
        unpacked = _unpack(mail)
    except ParseError as error:
        yield BrokenSource(mail.name, mail.size, error.code, str(error))
    else:
        yield from _unpacked_entries(mail, unpacked)


def _unpack(mail: Source) -> UnpackedMail:
    content = read_content(mail, max_bytes=settings.MAX_UPLOAD_BYTES)
    limits = ParserLimits(
        seconds=min(settings.PARSER_SECONDS, UNPACK_SECONDS),
        memory_bytes=settings.PARSER_MEMORY_BYTES,
        max_bytes=settings.MAX_UPLOAD_BYTES,
    )
    request = ParseRequest(name=mail.name, data=content.data, path=content.path, task="unpack_mail")
    return run_in_sandbox(request, mail_from_fields, limits=limits)


def _unpacked_entries(mail: Source, unpacked: UnpackedMail) -> Iterator[Entry]:
    whole = [part.path for part in unpacked.parts if not part.problem]
    yield replace(mail, declared={**mail.declared, "parts": whole})
    for index, part in enumerate(unpacked.parts):
        name = f"{mail.name}{PART_MARK}{part.path}"
        if part.problem:
            yield BrokenSource(name, len(part.data), "unreadable", part.problem)
            continue
        above = part.path.rpartition(PART_MARK)[0]
        key = f"{mail.key}{PART_MARK}{above}" if above else mail.key
        declared = {
            "part_of": key,
            "metadata": {
                **mail.declared.get("metadata", {}),
                "mail": {"key": key, **unpacked.about.get(above, {})},
            },
        }
        if part.path in unpacked.about:
            below = f"{part.path}{PART_MARK}"
            declared["parts"] = [
                path.removeprefix(below) for path in whole if path.startswith(below)
            ]
        yield Source(
            key=f"{mail.key}{PART_MARK}{part.path}",
            name=name,
            size=len(part.data),
            read=partial(_attachments.read, mail, index, part.path),
            declared=declared,
            access=mail.access,
        )


class _Attachments:
    """The attachments of the mail that was read last: they are asked for one after the other, and
    not kept meanwhile, because a directory may be too large for that."""

    def __init__(self) -> None:
        self._last: tuple[Source, UnpackedMail] | None = None

    def read(self, mail: Source, index: int, path: str) -> bytes:
        """The bytes of one. Raises ParseError."""
        last = self._last
        unpacked = last[1] if last is not None and last[0] is mail else _unpack(mail)
        is_last = index + 1 >= len(unpacked.parts)
        self._last = None if is_last else (mail, unpacked)
        if index >= len(unpacked.parts) or unpacked.parts[index].path != path:
            raise ParseError("unreadable", CHANGED)
        return unpacked.parts[index].data


_attachments = _Attachments()


@dataclass(frozen=True, slots=True)
class _Span:
    """A mail of an mbox: its bytes begin behind the line that separates it."""

    start: int
    end: int


def _mbox_entries(mbox: Source) -> Iterator[Entry]:
    taken: set[str] = set()
    number = 0
    try:
        with _opened(mbox) as file:
            for span in _spans(file):
                number += 1
                yield from _mbox_mail(mbox, span, f"{mbox.name}{PART_MARK}{number}", taken)
    except OSError as error:
        reason = f"It cannot be read: {error.strerror}. Check its permissions."
        yield BrokenSource(mbox.name, mbox.size, "unreadable", reason)
    except ParseError as error:
        yield BrokenSource(mbox.name, mbox.size, error.code, str(error))
    else:
        if not number:
            reason = "No line in it begins a mail (“From ”). Save it as an mbox again."
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


def _mbox_mail(mbox: Source, span: _Span, name: str, taken: set[str]) -> Iterator[Entry]:
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
    yield from _unpacked_entries(source, unpacked)


def _span_bytes(mbox: Source, span: _Span) -> bytes:
    with _opened(mbox) as file:
        file.seek(span.start)
        data = file.read(span.end - span.start)
    # The blank line at its end belongs to the separator.
    return _QUOTED_FROM.sub(rb"\1", data).rstrip(b"\r\n") + b"\n"

"""From bytes to the one form of text that is stored, and the hash that tells a change."""

import codecs
import hashlib
import re
from collections.abc import Iterator

from documents.parsers.base import ParseError

#: The longer marks first: UTF-32 LE begins like UTF-16 LE.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAMPLE = 64 * 1024
#: Characters whose lines are looked at together.
_BLOCK = 256 * 1024
#: Two blank lines are as good as many.
_MAX_BREAKS = 3
_BEYOND_ASCII = bytes(range(0x80, 0x100))
_SAVE_AS_UTF8 = "save it as UTF-8 and try again."


def decode_text(data: bytes) -> str:
    """Decode and normalise text of any usual encoding; `ParseError` if it is not text."""
    return normalise_text(_decode(data))


def normalise_text(text: str) -> str:
    """Line ends become LF; what PostgreSQL cannot hold (U+0000, lone surrogates) goes."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def content_sha256(text: str) -> str:
    """Hash of what a reader sees: line ends, trailing space and blank lines do not count."""
    digest = hashlib.sha256()
    breaks = 0
    for lines in _line_blocks(normalise_text(text)):
        visible = []
        for line in lines:
            if shown := line.rstrip():
                visible += ["\n" * min(breaks, _MAX_BREAKS), shown]
                breaks = 0
            breaks += 1
        digest.update("".join(visible).encode())
    digest.update(b"\n" * min(breaks - 1, _MAX_BREAKS))
    return digest.hexdigest()


def _line_blocks(text: str) -> Iterator[list[str]]:
    """All lines, some thousand at a time: those of a large text take more memory than it does."""
    start = 0
    while (end := text.find("\n", start + _BLOCK)) >= 0:
        yield text[start:end].split("\n")
        start = end + 1
    yield text[start:].split("\n")


def _decode(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            lines = _unix_lines(data) if mark == codecs.BOM_UTF8 else data
            return _decode_marked(lines, encoding)
    try:
        text = _unix_lines(data).decode("utf-8")
    except UnicodeDecodeError:
        text = _decode_legacy(data)
    if not _looks_binary(text):
        return text
    wide = _decode_unmarked_utf16(data)
    if wide is None:
        raise ParseError("binary", f"The file is not text. If it is, {_SAVE_AS_UTF8}")
    return wide


def _unix_lines(data: bytes) -> bytes:
    """With LF alone: to mend the decoded text takes more memory. UTF-16 is left as it is."""
    if b"\r" not in data or b"\0" in data[:_SAMPLE]:
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _decode_marked(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise ParseError(
            "malformed",
            f"The file says it is {name} but byte {error.start} is not: {_SAVE_AS_UTF8}",
        ) from error


def _decode_legacy(data: bytes) -> str:
    """Windows-1252, and Latin-1 for its five holes.

    Western text has few letters beyond ASCII. Where they abound, the bytes are another
    alphabet's, and guessing which would fill the index with nonsense.
    """
    sample = data[:_SAMPLE]
    beyond_ascii = len(sample) - len(sample.translate(None, _BEYOND_ASCII))
    if (
        beyond_ascii * 3 > len(sample)
        and b"\0" not in sample
        and not _looks_binary(sample.decode("latin-1"))
    ):
        raise ParseError("malformed", f"The text is in an unknown encoding: {_SAVE_AS_UTF8}")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _decode_unmarked_utf16(data: bytes) -> str | None:
    """Western UTF-16 without its mark has a zero in nearly every second byte."""
    sample = data[:_SAMPLE]
    for encoding, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if zeros.count(0) > 0.6 * max(1, len(zeros)) and len(data) % 2 == 0:
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                continue
            return None if _looks_binary(text) else text
    return None


def _looks_binary(text: str) -> bool:
    """More than one control character in twenty does not happen in text."""
    sample = text[:_SAMPLE]
    return len(_CONTROL.findall(sample)) * 20 > len(sample)

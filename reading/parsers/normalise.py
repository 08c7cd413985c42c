"""Bytes to normalised text (`decode_text`), the hash that tells a change, and metadata, titles and
language codes made safe for the database."""

import codecs
import datetime
import hashlib
import math
import re
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, NoReturn

from reading.parsers import charsets
from reading.parsers.base import ParseError

#: The longer marks first: UTF-32 LE begins like UTF-16 LE.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAMPLE_BYTES = 64 * 1024
#: Characters whose lines are looked at together.
_BLOCK_CHARACTERS = 256 * 1024
#: Two blank lines are as good as many.
_MAX_LINE_BREAKS = 3
_SAVE_AS_UTF8 = "Save it as UTF-8 and try again."


def decode_text(data: bytes) -> str:
    """Decode and normalise text of any usual encoding; `ParseError` if it is not text."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            lines = _normalise_line_ends(data) if mark == codecs.BOM_UTF8 else data
            try:
                return _cleaned(lines.decode(encoding))
            except UnicodeDecodeError as error:
                name = encoding.removesuffix("-sig").upper()
                raise ParseError(
                    "malformed",
                    f"The file says it is {name} but byte {error.start} is not. {_SAVE_AS_UTF8}",
                ) from error
    text = _decode_unmarked(data)
    if _looks_binary(text):
        wide = _decode_utf16_without_bom(data)
        if wide is None:
            raise ParseError("binary", f"The file does not look like text. {_SAVE_AS_UTF8}")
        text = wide
    return _cleaned(text)


def _cleaned(text: str) -> str:
    return without_blobs(without_invisible(normalise_text(text)))


#: Python's own, of names and of programs: no text is in them, and some take quadratic time.
_REFUSED_ENCODINGS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)


def decode_as(data: bytes, label: str) -> str:
    """Text of the encoding that a page or a mail names; if that is wrong, its bytes decide.
    ParseError if it is not text."""
    label = label.strip().lower()
    with suppress(LookupError, UnicodeError, ValueError):
        encoding = charsets.encoding_name(label)
        if encoding not in _REFUSED_ENCODINGS:
            return _cleaned(data.decode(encoding))
    return decode_text(data)


def decode_nonblank(data: bytes) -> str:
    """The same; `ParseError` also if there is nothing but white space."""
    text = decode_text(data)
    if not text or text.isspace():
        raise ParseError("empty", "The file has no text. Check that it was saved.")
    return text


def normalise_text(text: str) -> str:
    """Line ends become LF; characters that PostgreSQL cannot store (U+0000, lone surrogates) are
    removed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


_INVISIBLE = re.compile(
    "[\u00ad\u2060\ufeff]|(?<![{0}])\u200b|\u200b(?![{0}])".format(
        "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    )
)


def without_invisible(text: str) -> str:
    """Without soft hyphens, zero-width spaces and word joiners, which would hide words from the
    search. Zero-width spaces between letters of Thai, Lao, Burmese and Khmer part words."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


_BLOB_SHOWN = 64
#: So long a run without a break is no word: base64, keys, data.
_BLOB = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{2000,}+")
#: The same in lines of equal length, as in mails and certificates.
_BLOB_LINES = re.compile(r"^[A-Za-z0-9+/]{60,80}\n(?:[A-Za-z0-9+/]{60,80}\n){30,}+", re.M)
_BASE64 = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))


def without_blobs(text: str) -> str:
    """With the beginning alone of base64 and other runs of thousands of letters and digits, which
    nobody reads, and which would be hundreds of passages."""
    text = _BLOB.sub(lambda run: f"{run[0][:_BLOB_SHOWN]}…", text)

    def first_line(block: re.Match[str]) -> str:
        # Sequences of genes have letters of one case.
        is_base64 = all(kind.search(block[0]) for kind in _BASE64)
        return f"{block[0][:_BLOB_SHOWN].strip()}…\n" if is_base64 else block[0]

    return _BLOB_LINES.sub(first_line, text)


def content_sha256(text: str) -> str:
    """Hash of the visible text: line ends, trailing space and blank lines do not count."""
    digest = hashlib.sha256()
    text = normalise_text(text)
    breaks = start = 0
    while start <= len(text):
        # Some thousand lines at once: all lines of a large text take more memory than the text.
        end = text.find("\n", start + _BLOCK_CHARACTERS)
        end = len(text) if end < 0 else end
        visible = []
        for line in text[start:end].split("\n"):
            if shown := line.rstrip():
                visible += ["\n" * min(breaks, _MAX_LINE_BREAKS), shown]
                breaks = 0
            breaks += 1
        digest.update("".join(visible).encode())
        start = end + 1
    digest.update(b"\n" * min(breaks - 1, _MAX_LINE_BREAKS))
    return digest.hexdigest()


def _normalise_line_ends(data: bytes) -> bytes:
    """Bytes with LF only, which takes less memory than to fix the decoded text. UTF-16 is
    unchanged."""
    if b"\r" not in data or b"\0" in data[:_SAMPLE_BYTES]:
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _decode_unmarked(data: bytes) -> str:
    """Text without a byte order mark; Latin-1 for what may be UTF-16 or no text."""
    sample = data[:_SAMPLE_BYTES]
    try:
        text = _normalise_line_ends(data).decode("utf-8")
    except UnicodeDecodeError:
        if len(_CONTROL_BYTES.findall(sample)) * 20 > len(sample):
            return charsets.decode_by_signature(data) or data.decode("latin-1")
    else:
        has_escapes = b"\x1b" in data or b"~{" in data
        return (has_escapes and charsets.decode_by_signature(data)) or text
    decoded = (
        charsets.decode_by_signature(data)
        or charsets.decode_mostly_utf8(data)
        or charsets.decode_by_evidence(data)
    )
    if decoded is None:
        raise ParseError("malformed", f"The encoding of the text is unknown. {_SAVE_AS_UTF8}")
    return decoded


def _decode_utf16_without_bom(data: bytes) -> str | None:
    """The order of bytes whose text looks more like one, if either does."""
    found: list[tuple[float, str]] = []
    for encoding in ("utf-16-le", "utf-16-be") if len(data) % 2 == 0 else ():
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        sample = text[:_UTF16_SAMPLE]
        share = charsets.odd_characters(sample) / max(len(sample), 1)
        if share < _MAX_ODD_UTF16 and not _looks_binary(text):
            found.append((share, text))
    return min(found)[1] if found else None


_UTF16_SAMPLE = 4_000
_MAX_ODD_UTF16 = 0.1


def _looks_binary(text: str) -> bool:
    """More than one control character in twenty, which does not occur in text."""
    sample = text[:_SAMPLE_BYTES]
    return len(_CONTROL.findall(sample)) * 20 > len(sample)


_MAX_NODES = 10_000
_MAX_DEPTH = 20
#: Bits of an integer: about the range of a float. Python refuses to write much larger ones.
_MAX_BITS = 1024


class MetadataTooLargeError(ValueError):
    """Nested or multiplied (YAML aliases) far beyond hand-written metadata."""


def json_safe(value: object) -> Any:
    """A copy of `value` of JSON types only; raises `MetadataTooLargeError` beyond 10,000 nodes."""
    nodes = 0

    def copy(value: object, depth: int) -> Any:
        nonlocal nodes
        nodes += 1
        if nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise MetadataTooLargeError
        match value:
            case dict():
                return {normalise_text(str(k)): copy(v, depth + 1) for k, v in value.items()}
            case list() | tuple() | set() | frozenset():
                return [copy(item, depth + 1) for item in value]
            case None | bool():
                return value
            case int():
                return value if value.bit_length() <= _MAX_BITS else None
            case float():
                return value if math.isfinite(value) else None
            case _:
                if isinstance(value, datetime.date | datetime.time):
                    value = value.isoformat()
                return normalise_text(str(value))

    return copy(value, depth=0)


def refuse_constant(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, as `parse_constant` of `json.loads`."""
    raise ValueError(f"{constant} is not a number")


def readable_title(name: str) -> str:
    """A title from a file name: `reports/side-effects_2024.md` gives `Side effects 2024`."""
    stem = PurePosixPath(name.replace("\\", "/")).stem
    words = " ".join(normalise_text(stem).replace("_", " ").replace("-", " ").split())
    return words[:1].upper() + words[1:] if words else "Untitled"


def language_code(value: object) -> str:
    """`en-GB`, `en_US` and `EN` give `en`; anything that is no language tag gives an empty
    string."""
    tag = str(value or "").strip().replace("_", "-").split("-")[0].lower()
    return tag if tag.isascii() and tag.isalpha() and 2 <= len(tag) <= 3 else ""

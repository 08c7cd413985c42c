"""Outlook's .msg files as messages of the `email` package: a small file system [MS-CFB], in which
a mail's properties lie [MS-OXMSG]. Begin with `outlook_message`."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import encoders
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, formataddr

from reading.parsers.base import ParseError
from reading.parsers.normalise import decode_as, normalise_text

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PROPERTIES = "__properties_version1.0"
_FREE = 0xFFFFFFFA  # numbers from here on mean no sector
_NOBODY = 0xFFFFFFFF
_ROOT, _STREAM, _STORAGE = 5, 2, 1
MAX_ENTRIES = 100_000
MAX_NESTED = 30
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)

# Properties of [MS-OXPROPS].
_SUBJECT, _BODY, _RTF, _HTML, _MESSAGE_ID = 0x0037, 0x1000, 0x1009, 0x1013, 0x1035
_SENDER_NAMES, _SENDER_ADDRESSES = (0x0042, 0x0C1A), (0x5D02, 0x5D01, 0x0065, 0x0C1F)
_SENT_AT, _RECEIVED_AT, _CODEPAGES = 0x0039, 0x0E06, (0x3FFD, 0x3FDE)
_NAME, _ADDRESSES, _RECIPIENT_KIND = 0x3001, (0x39FE, 0x3003), 0x0C15
_FILE_NAMES, _DATA, _MIME_TYPE, _CONTENT_ID = (0x3707, 0x3704, 0x3001), 0x3701, 0x370E, 0x3712


class CompoundFile:
    """The streams and storages of a compound file. Raises ParseError, also while it is read."""

    def __init__(self, data: bytes) -> None:
        try:
            (shift, mini_shift) = struct.unpack_from("<HH", data, 30)
            (directory, _, self._cutoff, mini_fat, _, difat, _) = struct.unpack_from(
                "<7I", data, 48
            )
            if shift not in {9, 12} or mini_shift != 6:
                raise _damaged("its sector size is unknown")
            self._data, self._size = data, 1 << shift
            sectors = list(struct.unpack_from("<109I", data, 76))
            seen: set[int] = set()
            while difat < _FREE and difat not in seen:  # a list of lists, for large files
                seen.add(difat)
                *more, difat = self._numbers(difat)
                sectors += more
            used = [sector for sector in sectors if sector < _FREE]
            if len(used) * self._size > len(data):
                raise _damaged("its table is larger than the file")
            self._fat = [number for sector in used for number in self._numbers(sector)]
            mini_sectors = b"".join(self._chain(mini_fat))
            count = len(mini_sectors) // 4
            self._mini_fat = list(struct.unpack(f"<{count}I", mini_sectors[: count * 4]))
            entries = b"".join(self._chain(directory))
            if len(entries) > MAX_ENTRIES * 128:
                raise ParseError(
                    "too_large", f"The mail has more than {MAX_ENTRIES:,} parts. Split it."
                )
            self._entries = [entries[at : at + 128] for at in range(0, len(entries) - 127, 128)]
            self._mini = b"".join(self._chain(struct.unpack_from("<I", self._entries[0], 116)[0]))
        except (struct.error, IndexError) as error:
            raise _damaged("a part is missing") from error

    def children(self, entry: int = 0) -> dict[str, int]:
        """The entries in a storage, by name."""
        found: dict[str, int] = {}
        (first,) = struct.unpack_from("<I", self._entries[entry], 76)
        waiting, seen = [first], {entry}
        while waiting:
            number = waiting.pop()
            if number >= len(self._entries) or number in seen:
                continue
            seen.add(number)
            raw = self._entries[number]
            (length,) = struct.unpack_from("<H", raw, 64)
            name = raw[: max(0, min(length, 64) - 2)].decode("utf-16-le", "replace")
            found[name] = number
            waiting += struct.unpack_from("<II", raw, 68)
        return found

    def is_storage(self, entry: int) -> bool:
        return self._entries[entry][66] in {_STORAGE, _ROOT}

    def read(self, entry: int) -> bytes:
        """The bytes of a stream."""
        start, size = struct.unpack_from("<II", self._entries[entry], 116)
        if size > len(self._data):
            raise _damaged("a part is larger than the file")
        if size >= self._cutoff:
            return b"".join(self._chain(start))[:size]
        parts: list[bytes] = []
        while start < _FREE and len(parts) * 64 < size:
            parts.append(self._mini[start * 64 : start * 64 + 64])
            start = self._mini_fat[start] if start < len(self._mini_fat) else _NOBODY
        return b"".join(parts)[:size]

    def _sector(self, number: int) -> bytes:
        start = (number + 1) * self._size
        return self._data[start : start + self._size]

    def _numbers(self, sector: int) -> tuple[int, ...]:
        return struct.unpack(f"<{self._size // 4}I", self._sector(sector))

    def _chain(self, sector: int) -> Iterator[bytes]:
        left = len(self._fat)
        while sector < _FREE:
            if sector >= len(self._fat) or left <= 0:
                raise _damaged("a part refers to itself or beyond the file")
            yield self._sector(sector)
            sector, left = self._fat[sector], left - 1


def _damaged(reason: str) -> ParseError:
    return ParseError("malformed", f"The Outlook file is damaged: {reason}. Save it again.")


class _Properties:
    """The properties of one storage: of a mail, a recipient or an attachment."""

    def __init__(self, file: CompoundFile, entry: int, *, header: int, encoding: str = "") -> None:
        self._file = file
        self.children = file.children(entry)
        self._fixed: dict[int, bytes] = {}
        if PROPERTIES in self.children:
            raw = file.read(self.children[PROPERTIES])[header:]
            for at in range(0, len(raw) - 15, 16):
                self._fixed[struct.unpack_from("<H", raw, at + 2)[0]] = raw[at + 8 : at + 16]
        pages = [page for name in _CODEPAGES if (page := self.number(name))]
        self.encoding = encoding or next(
            ("utf-8" if page == 65001 else f"cp{page}" for page in pages), ""
        )

    def number(self, name: int) -> int:
        return int.from_bytes(self._fixed.get(name, b"")[:4], "little")

    def date(self, name: int) -> str:
        """As a header has it, or empty."""
        ticks = int.from_bytes(self._fixed.get(name, b""), "little")
        try:
            return format_datetime(_EPOCH + timedelta(microseconds=ticks // 10)) if ticks else ""
        except (OverflowError, ValueError):
            return ""

    def data(self, name: int) -> bytes | None:
        entry = self.children.get(f"__substg1.0_{name:04X}0102")
        return None if entry is None else self._file.read(entry)

    def text(self, *names: int) -> str:
        """The first of the properties that is there and not empty."""
        for name in names:
            if entry := self.children.get(f"__substg1.0_{name:04X}001F"):
                text = self._file.read(entry).decode("utf-16-le", "replace")
            elif entry := self.children.get(f"__substg1.0_{name:04X}001E"):
                text = decode_as(self._file.read(entry), self.encoding)
            else:
                continue
            if text := normalise_text(text):
                return text
        return ""


def outlook_message(data: bytes) -> Message:
    """The mail as a MIME message. Raises ParseError."""
    file = CompoundFile(data)
    try:
        return _message(file, 0, header=32, depth=0)
    except struct.error as error:
        raise _damaged("a part is missing") from error


def _message(file: CompoundFile, entry: int, *, header: int, depth: int) -> Message:
    if depth > MAX_NESTED:
        raise ParseError(
            "malformed",
            f"Mails in it are nested more than {MAX_NESTED} levels deep. Save them as files.",
        )
    mail = _Properties(file, entry, header=header)
    whole, body = MIMEMultipart("mixed"), MIMEMultipart("alternative")
    people: dict[int, list[str]] = {}
    attached: list[Message] = []
    for name, child in sorted(mail.children.items()):
        if name.startswith("__recip_version1.0_"):
            person = _Properties(file, child, header=8, encoding=mail.encoding)
            pair = _address(person.text(_NAME), person.text(*_ADDRESSES))
            people.setdefault(person.number(_RECIPIENT_KIND), []).append(pair)
        elif name.startswith("__attach_version1.0_"):
            properties = _Properties(file, child, header=8, encoding=mail.encoding)
            attached += _attachment(file, properties, depth=depth)
    headers = {
        "Subject": mail.text(_SUBJECT),
        "From": _address(mail.text(*_SENDER_NAMES), mail.text(*_SENDER_ADDRESSES)),
        "To": ", ".join(people.get(1, [])),
        "Cc": ", ".join(people.get(2, [])),
        "Date": mail.date(_SENT_AT) or mail.date(_RECEIVED_AT),
        "Message-ID": mail.text(_MESSAGE_ID),
    }
    for label, value in headers.items():
        if value:
            whole[label] = " ".join(value.split())
    if text := mail.text(_BODY):
        body.attach(MIMEText(text, "plain", "utf-8"))
    html = mail.data(_HTML)
    if text := mail.text(_HTML) if html is None else decode_as(html, mail.encoding):
        body.attach(MIMEText(text, "html", "utf-8"))
    if not body.get_payload() and (rtf := decompressed_rtf(mail.data(_RTF) or b"")):
        rich = MIMEBase("text", "rtf")
        rich.set_payload(rtf)
        encoders.encode_base64(rich)
        body.attach(rich)
    for part in [body, *attached]:
        whole.attach(part)
    return whole


#: What the window holds before the first byte.
_RTF_START = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern "
    b"\\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl"
    b"\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_WINDOW, _MAX_RTF_BYTES = 4096, 16 * 1024 * 1024


def decompressed_rtf(data: bytes) -> bytes:
    """The RTF of a mail, as [MS-OXRTFCP] packs it: bytes, and places in a window of the last 4,096
    bytes. As far as it can be read; empty if it is of another kind."""
    kind = data[8:12]
    if kind == b"MELA":
        return data[16:]
    if kind != b"LZFu":
        return b""
    window = bytearray(_RTF_START.ljust(_WINDOW, b"\0"))
    end, found, at = len(_RTF_START), bytearray(), 16
    while at < len(data) and len(found) < _MAX_RTF_BYTES:
        flags, at = data[at], at + 1
        for bit in range(8):
            if flags >> bit & 1:
                pair = int.from_bytes(data[at : at + 2], "big")
                start, length, at = pair >> 4, (pair & 15) + 2, at + 2
                if start == end or at > len(data):
                    return bytes(found)
                run: Iterator[int] = (window[(start + step) % _WINDOW] for step in range(length))
            else:
                run = iter(data[at : at + 1])
                at += 1
            for byte in run:  # one by one: a run may repeat what it has just written
                found.append(byte)
                window[end] = byte
                end = (end + 1) % _WINDOW
    return bytes(found)


def _address(name: str, address: str) -> str:
    # An address of Exchange (/O=FIRM/CN=…) is none that people know.
    address = "" if address.startswith("/") else " ".join(address.split())
    quoted = name.replace("\\", "").replace('"', "'").replace("\n", " ").strip("' ")
    if not address:
        return f'"{quoted}" <>' if quoted else ""
    if not address.isascii():
        return f'"{quoted}" <{address}>'
    return f'"{quoted}" <{address}>' if quoted and quoted != address else formataddr(("", address))


def _attachment(file: CompoundFile, properties: _Properties, *, depth: int) -> Iterator[Message]:
    name = properties.text(*_FILE_NAMES)
    inner = properties.children.get(f"__substg1.0_{_DATA:04X}000D")
    if inner is not None and file.is_storage(inner):
        mail = _message(file, inner, header=24, depth=depth + 1)
        part: Message = MIMEBase("message", "rfc822")
        part.attach(mail)
    elif (data := properties.data(_DATA)) is not None:
        main, _, sub = properties.text(_MIME_TYPE).partition("/")
        is_known = main.isalnum() and main not in {"multipart", "message"} and sub.isascii()
        part = (
            MIMEBase(main, sub.split(";")[0])
            if is_known and sub
            else MIMEBase("application", "octet-stream")
        )
        part.set_payload(data)
        encoders.encode_base64(part)
        if main == "image" and properties.text(_CONTENT_ID):
            return  # it stands in the text
    else:
        return
    if name:
        part.add_header("Content-Disposition", "attachment", filename=name)
    yield part

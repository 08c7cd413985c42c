"""Mail: `parse_mail` for RFC 822 files, `parse_outlook` for Outlook's .msg, both by way of `Mail`;
`unpack_mail` gives the attachments."""

import binascii
import codecs
import email.utils
import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from reading.parsers.base import (
    DEFAULT_LIMITS,
    WINDOW_BYTES,
    ContainerPart,
    Limits,
    ParsedDocument,
    ParseError,
    UnpackedContainer,
)
from reading.parsers.html import parse_html
from reading.parsers.mail_quotes import fold_quotes
from reading.parsers.normalise import (
    decode_as,
    normalise_text,
    readable_title,
    without_invisible,
)
from reading.parsers.outlook import OLE, outlook_message
from reading.parsers.rtf import parse_rtf
from reading.parsers.text_formats import markdown_headings

MAIL = "message/rfc822"
OUTLOOK_MAIL = "application/vnd.ms-outlook"
#: Parts of parts of one mail.
MAX_PART_DEPTH = 30
#: Attachments of one mail.
MAX_ATTACHMENTS = 1_000
MAX_ADDRESSES = 100
_SHOWN_ADDRESSES = 10
_MAX_HEADER_CHARACTERS = 10_000
_MAX_NAME_CHARACTERS = 80
_UNSAFE_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\]+")
_FORWARDED = re.compile(r"\s*(?:fwd?|wg|tr|rv|i|enc)\s*:", re.I)
#: What the library raises for parts and headers that are broken.
_BROKEN = (AttributeError, LookupError, ParseError, TypeError, ValueError)

Address = tuple[str, str]  # name and address, each of which may be empty


@dataclass(slots=True)
class Attachment:
    """A file in a mail; `read` decodes it."""

    name: str
    read: Callable[[], bytes]
    is_mail: bool = False


@dataclass(slots=True)
class Mail:
    """What one mail says, whatever format it came in. `date` is ISO 8601
    with the zone of its sender, whose day it is quoted by, or empty. `body`
    is Markdown if `is_markdown`."""

    subject: str = ""
    sender: Address = ("", "")
    to: list[Address] = field(default_factory=list)
    cc: list[Address] = field(default_factory=list)
    date: str = ""
    message_id: str = ""
    body: str = ""
    is_markdown: bool = False
    attachments: list[Attachment] = field(default_factory=list)

    @property
    def about(self) -> dict[str, Any]:
        """What its attachments say of it."""
        told = {"subject": self.subject, "from": self.sender[1], "date": self.date}
        return {name: value for name, value in told.items() if value}


def parse_mail(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """A mail as it was sent (`.eml`, RFC 5322): its text, people and subject."""
    return _document(read_mail(data), MAIL, name, limits)


def parse_outlook(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """A mail as Outlook stores it (`.msg`, MS-OXMSG), read like any other."""
    return _document(read_mail(data), OUTLOOK_MAIL, name, limits)


def refuse_mbox(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """A whole mbox: its mails are documents, so it is taken apart where files are found."""
    raise ParseError(
        "unsupported",
        f"{name} is a mailbox of many mails. Upload it, or ingest it from a directory.",
    )


def _document(mail: Mail, media_type: str, name: str, limits: Limits) -> ParsedDocument:
    names = [attachment.name for attachment in mail.attachments[:MAX_ATTACHMENTS]]
    body = mail.body if _FORWARDED.match(mail.subject) else fold_quotes(mail.body)
    shown = {
        "From": [mail.sender],
        "To": mail.to,
        "Cc": mail.cc,
        "Date": [(mail.date[:10], "")],
        "Attachments": [(each, "") for each in names],
    }
    lines = [f"{label}: {told}" for label, each in shown.items() if (told := _address_list(each))]
    if not body.strip() and not lines:
        raise ParseError("empty", "The mail has neither text nor sender. Save it again.")
    # In Markdown a line runs on unless it ends with two spaces.
    head = ("  \n" if mail.is_markdown else "\n").join(lines)
    text = f"{head}\n\n{body.strip()}".strip() + "\n"
    limits.check_characters(len(text), "The mail")
    metadata = {
        **mail.about,
        "from_name": mail.sender[0],
        "to": [address or name for name, address in mail.to],
        "cc": [address or name for name, address in mail.cc],
        "message_id": mail.message_id,
        "attachments": names,
    }
    return ParsedDocument(
        text=text,
        media_type=media_type,
        title=mail.subject or readable_title(name),
        rendering="markdown" if mail.is_markdown else "plain",
        headings=markdown_headings(text) if mail.is_markdown else (),
        metadata={label: value for label, value in metadata.items() if value},
    )


def _address_list(entries: Iterable[Address]) -> str:
    pairs = ((name, address) for name, address in entries if name or address)
    described = [
        f"{name} ({address})" if name and address else name or address for name, address in pairs
    ]
    return ", ".join(
        [*described[:_SHOWN_ADDRESSES], *(["…"] if len(described) > _SHOWN_ADDRESSES else [])]
    )


def read_mail(data: bytes) -> Mail:
    """The mail in a file of either format. Raises ParseError."""
    if data.startswith(OLE):
        return _read_message(outlook_message(data))
    if re.match(rb"From [ \t]*[^: \t]", data):  # as a line of an mbox
        data = data.partition(b"\n")[2]
    try:
        return _read_message(BytesParser(policy=compat32).parsebytes(_repaired_header(data)))
    except RecursionError as error:
        raise too_deep_error() from error


_HEADER_LINE = re.compile(rb"([!-9;-~]+)[ \t]*(?=:)")


def _repaired_header(data: bytes) -> bytes:
    """The mail without space before the colons of its header, and without lines in it that are of
    no header: RFC 5322 tells readers to bear the former, and the standard library takes either for
    the end."""
    end = re.search(rb"\r?\n[ \t]*\r?\n|\Z", data)
    head = data[: end.start()] if end else data
    lines = head.splitlines(keepends=True)
    names = [_HEADER_LINE.match(line) for line in lines]
    if all(name is None or name[0] == name[1] for name in names):
        return data
    kept = [
        name[1] + line[name.end() :] if name else line
        for name, line in zip(names, lines, strict=True)
        if name or line[:1] in b" \t"
    ]
    return b"".join(kept) + data[len(head) :]


def too_deep_error() -> ParseError:
    """For parts of parts of parts."""
    return ParseError(
        "malformed",
        f"Its parts are nested more than {MAX_PART_DEPTH} levels deep. Save the parts you"
        " need as files.",
    )


def _read_message(message: Message) -> Mail:
    if not message.keys():
        raise ParseError("malformed", "The mail has no header. Save it as .eml again.")
    senders = [*_addresses(message, "From"), *_addresses(message, "Sender")]
    mail = Mail(
        subject=" ".join(_header(message, "Subject").split())[:500],
        sender=senders[0] if senders else ("", ""),
        to=_addresses(message, "To"),
        cc=_addresses(message, "Cc"),
        date=_date(_header(message, "Date")),
        message_id=_header(message, "Message-ID").strip(" <>\t")[:200],
    )
    mail.body, mail.is_markdown = _read_part(message, mail, depth=0, is_related=False)
    return mail


def _read_part(part: Message, mail: Mail, *, depth: int, is_related: bool) -> tuple[str, bool]:
    """The text of a part, and whether it is Markdown; attachments are added to `mail`."""
    if depth > MAX_PART_DEPTH:
        raise too_deep_error()
    kind = part.get_content_type()
    if kind == MAIL:
        mail.attachments.append(_attached_mail(part))
        return "", False
    if part.is_multipart():
        is_related = is_related or kind == "multipart/related"
        children: list[Any] = list(part.get_payload())
        read = [
            _read_part(child, mail, depth=depth + 1, is_related=is_related) for child in children
        ]
        texts = [each for each in read if each[0].strip()]
        if kind == "multipart/alternative":
            return better_body(texts)
        return "\n\n".join(text for text, _ in texts), any(rich for _, rich in texts)
    is_attached = (part.get_content_disposition() or "") == "attachment"
    is_file = is_attached or (depth > 0 and bool(_file_name(part)))
    if kind == "text/rtf" and not is_file:
        return _rtf_body(_payload(part))
    if kind in {"text/plain", "text/html"} and not is_file:
        try:
            text = decode_as(_payload(part), str(part.get_content_charset() or ""))
        except ParseError:
            text = ""  # no text, whatever its type says
        return html_body(text) if kind == "text/html" else (text.strip(), False)
    # What the text shows, such as a logo, is no document of its own.
    if not (is_related and not is_attached and kind.startswith("image/")):
        mail.attachments.append(
            Attachment(safe_name(_file_name(part), kind), partial(_payload, part))
        )
    return "", False


def _attached_mail(part: Message) -> Attachment:
    inner: Any = part.get_payload()
    message = inner[0] if isinstance(inner, list) and inner else None
    name = _file_name(part)
    if not name and message is not None:
        name = _header(message, "Subject")
    name = safe_name(name or "mail", MAIL)

    def read() -> bytes:
        if message is None:
            return _payload(part)
        if str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64":
            return binascii.a2b_base64(str(message.get_payload()))
        return bytes(message.as_bytes())

    suffix = "" if name.lower().endswith((".eml", ".msg")) else ".eml"
    return Attachment(name + suffix, read, is_mail=True)


def better_body(bodies: list[tuple[str, bool]]) -> tuple[str, bool]:
    """Of the same text as Markdown and plain, the former unless it lacks half of the words."""
    words = [len(text.split()) for text, _ in bodies]
    for (text, is_markdown), count in zip(reversed(bodies), reversed(words), strict=True):
        if is_markdown and count * 2 >= max(words):
            return text, True
    return bodies[words.index(max(words))] if bodies else ("", False)


def html_body(text: str) -> tuple[str, bool]:
    """Markdown of an HTML body; no text if it cannot be read."""
    try:
        # The mark says that it is UTF-8, whatever the page says of itself.
        page = codecs.BOM_UTF8 + text.encode()
        return parse_html(page, name="", keep_boilerplate=True).text.strip(), True
    except ParseError:
        return "", True


def _rtf_body(data: bytes) -> tuple[str, bool]:
    """Markdown of an RTF body; no text if it cannot be read."""
    try:
        return parse_rtf(data, name="").text.strip(), True
    except ParseError:
        return "", True


def _payload(part: Message) -> bytes:
    payload: Any = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _header(message: Message, name: str) -> str:
    return _decoded(next(_raw_headers(message, name), ""))


def _raw_headers(message: Message, name: str) -> Iterator[str]:
    """The headers of this name, of at most 10,000 characters, with undecoded bytes as surrogates:
    `get` would give them as unknown characters."""
    for label, value in message.raw_items():
        if label.lower() == name.lower():
            yield str(value)[:_MAX_HEADER_CHARACTERS]


def _decoded(value: str) -> str:
    """A header with its encoded words (RFC 2047) decoded; what is broken is shown as it is."""
    try:
        raw = value.encode("ascii", "surrogateescape")
        if not raw.isascii():
            try:  # characters that should have been encoded
                return normalise_text(raw.decode())
            except UnicodeDecodeError:
                return decode_as(raw, "")
        parts = [
            text if isinstance(text, str) else decode_as(text, charset or "")
            for text, charset in decode_header(value)
        ]
        return without_invisible(normalise_text("".join(parts)))
    except _BROKEN:  # or decoded already
        return normalise_text(value)


def _addresses(message: Message, name: str) -> list[Address]:
    values = [
        value if value.isascii() else _decoded(value) for value in _raw_headers(message, name)
    ]
    found: list[Address] = []
    try:
        pairs = email.utils.getaddresses(values)[:MAX_ADDRESSES]
    except RecursionError:  # over brackets in brackets
        pairs = []
    for encoded, written in pairs:
        label = " ".join(_decoded(encoded).split())[:200]
        address = normalise_text(written).strip().lower()[:320]
        if label or address:
            found.append((label, address))
    return found


def _date(value: str) -> str:
    try:
        plain = re.sub(r"\s*:\s*", ":", re.sub(r"\([^()]*\)", " ", value))
        moment = email.utils.parsedate_to_datetime(plain)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.isoformat(timespec="seconds")
    except (*_BROKEN, OverflowError):
        return ""


def _file_name(part: Message) -> str:
    try:
        own = Message()  # `get_filename` would give undecoded bytes as unknown characters
        for name in ("Content-Disposition", "Content-Type"):
            for value in _raw_headers(part, name):
                own[name] = value if value.isascii() else _decoded(value)
        return _decoded(str(own.get_filename() or ""))
    except _BROKEN:
        return ""


def safe_name(name: str, media_type: str) -> str:
    """A file name without folders, of bounded length, with the suffix that its type has."""
    name = _UNSAFE_IN_NAMES.sub("-", normalise_text(name)).strip(" .-") or "attachment"
    path = PurePosixPath(name)
    suffix = path.suffix[:12] or mimetypes.guess_extension(media_type) or ""
    if media_type == MAIL and suffix.lower() not in {".eml", ".msg"}:
        return name[: _MAX_NAME_CHARACTERS - 4]
    return (path.stem if path.suffix else name)[: _MAX_NAME_CHARACTERS - len(suffix)] + suffix


def unpack_mail(
    data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS, first: int = 0
) -> UnpackedContainer:
    """The attachments of a mail; from number `first` on a window of them with their bytes. Raises
    ParseError if the mail cannot be read; what cannot be read in it is a part with a problem."""
    mail = read_mail(data)
    parts: list[ContainerPart] = []
    left, window = limits.max_bytes, WINDOW_BYTES
    taken: set[str] = set()
    for number, attachment in enumerate(mail.attachments[:MAX_ATTACHMENTS]):
        path = free_name(attachment.name, taken)
        try:
            content = attachment.read()
        except (*_BROKEN, RecursionError) as error:
            reason = f"It cannot be decoded ({type(error).__name__}). Save it alone."
            parts.append(ContainerPart(path, 0, problem=reason))
            continue
        if len(content) > left:
            reason = f"The attachments have more than {limits.max_bytes:,} bytes. Save it alone."
            parts.append(ContainerPart(path, len(content), problem=reason))
            continue
        left -= len(content)
        is_shown = number == first or (number > first and len(content) <= window)
        if number >= first:
            window = window - len(content) if is_shown else 0
        parts.append(ContainerPart(path, len(content), content if is_shown else None))
    if len(mail.attachments) > MAX_ATTACHMENTS:
        reason = (
            f"The mail has more than {MAX_ATTACHMENTS:,} attachments. The others were not read."
        )
        parts.append(ContainerPart("…", 0, problem=reason))
    return UnpackedContainer(parts=tuple(parts), about=mail.about, message_id=mail.message_id)


def free_name(name: str, taken: set[str]) -> str:
    """The name, with a number where it is `taken` already; then it is, too."""
    free, number = name, 2
    path = PurePosixPath(name)
    while free in taken:
        free, number = str(path.with_name(f"{path.stem} ({number}){path.suffix}")), number + 1
    taken.add(free)
    return free

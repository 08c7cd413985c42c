"""Mails as people have them, made by the standard library; and Outlook's files."""

import mailbox
import struct
from collections.abc import Iterable, Mapping, Sequence
from email.message import EmailMessage
from email.mime.base import MIMEBase
from pathlib import Path
from typing import Any

from reading.parsers.outlook import OLE, PROPERTIES

Attached = bytes | EmailMessage


def mail(
    text: str = "The boiler was repaired on Tuesday.",
    *,
    html: str = "",
    attached: Mapping[str, Attached] | None = None,
    **headers: str,
) -> EmailMessage:
    """A mail from Ada to Bob. Headers are named as in Python: `message_id`."""
    message = EmailMessage()
    given = {
        "subject": "Boiler",
        "from": "Ada Lovelace <Ada@example.com>",
        "to": "Bob <bob@example.com>, carol@example.com",
        "date": "Tue, 03 Mar 2026 10:00:00 +0100",
        "message_id": "<m1@example.com>",
        **headers,
    }
    for name, value in given.items():
        if value:
            message[name.replace("_", "-")] = value
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    for name, data in (attached or {}).items():
        if isinstance(data, EmailMessage):
            message.add_attachment(data, filename=name)
        else:
            message.add_attachment(
                data, maintype="application", subtype="octet-stream", filename=name
            )
    return message


def nested(depth: int) -> bytes:
    """A mail in a mail in a mail."""
    inner = mail("The innermost.").as_bytes()
    for level in range(depth):
        head = f"Subject: Level {level}\nFrom: a@example.com\nContent-Type: message/rfc822\n\n"
        inner = head.encode() + inner
    return inner


def many_attachments(count: int) -> bytes:
    head = b'Subject: Many\nFrom: a@example.com\nContent-Type: multipart/mixed; boundary="b"\n\n'
    part = b"--b\nContent-Type: application/x-note\n\nNote.\n"
    return head + part * count + b"--b--\n"


def broken_part(data: bytes) -> MIMEBase:
    part = MIMEBase("text", "plain", charset="no-such-charset")
    part.set_payload(data)
    return part


def write_mbox(path: Path, mails: Iterable[EmailMessage]) -> None:
    path.unlink(missing_ok=True)
    box = mailbox.mbox(path)
    for each in mails:
        box.add(each)
    box.close()


def outlook(
    properties: Mapping[int, str | bytes], storages: Mapping[str, Mapping[int, Any]] | None = None
) -> bytes:
    """A .msg file: properties by number, and recipients and attachments as storages of them."""
    return compound_file(
        [(PROPERTIES, b"\0" * 32), *_streams(properties)],
        [(name, _streams(inner)) for name, inner in (storages or {}).items()],
    )


def compound_file(
    streams: Sequence[tuple[str, bytes]],
    groups: Sequence[tuple[str, Sequence[tuple[str, bytes]]]] = (),
) -> bytes:
    """An OLE file of streams, and of storages with theirs."""
    # Entries: the root, its streams, then each storage with its own.
    entries: list[bytes] = []
    content: list[bytes] = []
    fat: list[int] = []

    def store(data: bytes) -> int:
        if not data:
            return 0xFFFFFFFE
        start, count = len(fat), -(-len(data) // 512)
        fat.extend([*range(start + 1, start + count), 0xFFFFFFFE])
        content.append(data.ljust(count * 512, b"\0"))
        return start

    def entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
        raw = name.encode("utf-16-le")
        head = raw.ljust(64, b"\0") + struct.pack("<HBB", len(raw) + 2, kind, 1)
        ids = struct.pack("<III", 0xFFFFFFFF, right, child)
        return head + ids + b"\0" * 36 + struct.pack("<II", start, size) + b"\0" * 4

    none = 0xFFFFFFFF
    entries.append(entry("Root Entry", 5, none, 1, 0xFFFFFFFE, 0))
    top: Sequence[tuple[str, Any]] = [*streams, *groups]
    inner_at = 1 + len(top)
    for place, (name, value) in enumerate(top, start=1):
        right = place + 1 if place < len(top) else none
        if isinstance(value, bytes):
            entries.append(entry(name, 2, right, none, store(value), len(value)))
        else:
            entries.append(entry(name, 1, right, inner_at, 0, 0))
            inner_at += len(value)
    for _, inner in groups:
        for place, (name, value) in enumerate(inner, start=1):
            right = len(entries) + 1 if place < len(inner) else none
            entries.append(entry(name, 2, right, none, store(value), len(value)))
    directory = store(b"".join(entries))
    fat.append(0xFFFFFFFD)
    fat_at = len(fat) - 1
    head = OLE + b"\0" * 16 + struct.pack("<HHHHH", 62, 3, 0xFFFE, 9, 6) + b"\0" * 6
    head += struct.pack("<9I", 0, 1, directory, 0, 0, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    head += struct.pack("<109I", fat_at, *[none] * 108)
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(512, b"\xff")
    assert len(table) == 512
    return head + b"".join(content) + table


def _streams(properties: Mapping[int, Any]) -> list[tuple[str, bytes]]:
    return [
        (PROPERTIES, value)
        if number == 0
        else (f"__substg1.0_{number:04X}{'0102' if isinstance(value, bytes) else '001F'}",
              value if isinstance(value, bytes) else value.encode("utf-16-le"))
        for number, value in properties.items()
    ]  # fmt: skip

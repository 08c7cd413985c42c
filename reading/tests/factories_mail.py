"""Mails as people have them, made by the standard library; and Outlook's files."""

import mailbox
from collections.abc import Iterable, Mapping
from email.message import EmailMessage
from email.mime.base import MIMEBase
from pathlib import Path

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

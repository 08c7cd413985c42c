"""What the parser process does besides parsing. A task gets a file's bytes and returns a JSON
header and a body of bytes; ParseError fails the file."""

from collections.abc import Callable
from typing import Any

from documents.parsers.base import Limits
from documents.sandbox.protocol import MessageHeader, mail_fields


def unpack_mail(data: bytes, *, name: str, limits: Limits) -> tuple[MessageHeader, bytes]:
    """The attachments of a mail, one after the other."""
    from documents.parsers import mail  # noqa: PLC0415 (most files are no mail)

    unpacked = mail.unpack_mail(data, name=name, limits=limits)
    return mail_fields(unpacked), b"".join(part.data for part in unpacked.parts)


TASKS: dict[str, Callable[..., tuple[dict[str, Any], bytes]]] = {"unpack_mail": unpack_mail}

"""What the parser process does besides parsing. A task gets a file's bytes and returns a JSON
header and a body of bytes; ParseError fails the file."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from reading.parsers.base import Limits, UnpackedContainer
from reading.sandbox.protocol import MessageHeader, container_fields, page_fields


def unpack_mail(data: bytes, **options: Any) -> tuple[MessageHeader, bytes]:
    """The attachments of a mail from number `first` on, one after the other."""
    from reading.parsers import mail  # noqa: PLC0415 (most files are no mail)

    return _container(mail.unpack_mail(data, **options))


def unpack_zip(data: bytes, **options: Any) -> tuple[MessageHeader, bytes]:
    """The files in a ZIP archive from number `first` on, one after the other."""
    from reading.parsers import zip_folder  # noqa: PLC0415 (most files are no archive)

    return _container(zip_folder.unpack_zip(data, **options))


def _container(unpacked: UnpackedContainer) -> tuple[MessageHeader, bytes]:
    return container_fields(unpacked), b"".join(part.data or b"" for part in unpacked.parts)


def render_page(
    data: bytes, *, name: str, limits: Limits, **options: Any
) -> tuple[MessageHeader, bytes]:
    """The image of a page, and the hash of the file that it is of."""
    from reading.parsers import page_image  # noqa: PLC0415 (most files have no picture)

    body = page_image.render_page(data, **options)
    return {"sha256": hashlib.sha256(data).hexdigest()}, body


def read_page_layer(
    data: bytes, *, name: str, limits: Limits, **options: Any
) -> tuple[MessageHeader, bytes]:
    """What lies over the image of a page, and the hash of the file."""
    from reading.parsers import page_image  # noqa: PLC0415

    layer = page_image.read_page_layer(data, **options)
    return {"sha256": hashlib.sha256(data).hexdigest(), "layer": asdict(layer)}, b""


def read_page(
    data: bytes, *, name: str, limits: Limits, **options: Any
) -> tuple[MessageHeader, bytes]:
    """What OCR reads on a page of a PDF or picture; the body is its text."""
    from reading.ocr import page  # noqa: PLC0415 (most files have no picture)

    read = page.read_page(data, **options)
    return page_fields(read), read.text.encode(errors="replace")


def convert_office(data: bytes, **options: Any) -> tuple[MessageHeader, bytes]:
    """An old Office file as one of today."""
    from reading import libreoffice  # noqa: PLC0415 (few files are so old)

    return {}, libreoffice.convert(data, **options)


TASKS: dict[str, Callable[..., tuple[dict[str, Any], bytes]]] = {
    "convert_office": convert_office,
    "read_page": read_page,
    "read_page_layer": read_page_layer,
    "render_page": render_page,
    "unpack_mail": unpack_mail,
    "unpack_zip": unpack_zip,
}

"""Files as people bring them: whole, torn, locked, mis-named. Made here, never stored."""

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from pypdf import PdfReader, PdfWriter

#: Of no format that is read.
GZIP = b"\x1f\x8b\x08\x00" + bytes(range(128, 168))
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02" + b"\x00" * 40


def pdf(
    *pages: str | Sequence[str],
    metadata: Mapping[str, str] | None = None,
    outline: Iterable[tuple[str, int]] = (),
    language: str = "",
) -> bytes:
    """A PDF with a text layer; each page is its lines. `outline` has titles and page indices."""
    plain = _plain_pdf([[page] if isinstance(page, str) else page for page in pages], language)
    if not metadata and not outline:
        return plain
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(plain)))
    writer.add_metadata({f"/{key}": value for key, value in (metadata or {}).items()})
    parent = None
    for title, index in outline:
        item = writer.add_outline_item(title=title, page_number=index, parent=parent)
        parent = parent or item
    return _written(writer)


def scanned_pdf(pages: int = 1) -> bytes:
    """Pages without a text layer."""
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    return _written(writer)


def encrypted_pdf(text: str, *, user_password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(text))))
    writer.encrypt(user_password=user_password, owner_password="owner", algorithm="AES-256")
    return _written(writer)


def docx() -> bytes:
    """What marks a ZIP as a Word document, and no more."""
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": "<w:document/>"})


def zipped(members: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def chunk_fields(number: int = 1, /, **changes: Any) -> dict[str, Any]:
    """The fields of a chunk file; a field changed to None is left out."""
    original = f"This is passage number {number} of the leaflet."
    prefix = "Package leaflet of examplol, section: 4. Possible side effects."
    fields = {
        "chunk_id": f"07_examplol_chunk_{number:03}",
        "source_document": "examplol_leaflet",
        "chunk_text": f"{prefix}\n\n{original}",
        "original_text": original,
        "contextual_prefix": prefix,
        "token_count": 12,
        "metadata": {
            "chapter_title": "Package leaflet: examplol",
            "section_title": "4. Possible side effects",
            "subsection_title": [],
            "summary": "About side effects.",
        },
        "processing_metadata": {"phase_1_model": "none"},
    } | changes
    return {key: value for key, value in fields.items() if value is not None}


def chunk_json(number: int = 1, /, **changes: Any) -> bytes:
    return json.dumps(chunk_fields(number, **changes)).encode()


def _written(writer: PdfWriter) -> bytes:
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def _plain_pdf(pages: Sequence[Sequence[str]], language: str) -> bytes:
    """Catalogue, page tree and one Latin-1 font, then a page and its content for each."""
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    lang = f" /Lang ({language})" if language else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R{lang} >>".encode(),
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, lines in enumerate(pages):
        content = _content_stream(lines)
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * index} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    return _numbered(objects)


def _content_stream(lines: Sequence[str]) -> bytes:
    shown = [line.encode("cp1252") for line in lines]
    escaped = [
        line.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") for line in shown
    ]
    return b"BT /F1 12 Tf 14 TL 72 720 Td " + b" T* ".join(b"(%s) Tj" % x for x in escaped) + b" ET"


def _numbered(objects: Sequence[bytes]) -> bytes:
    header = b"%PDF-1.7\n"
    framed = [b"%d 0 obj\n%s\nendobj\n" % pair for pair in enumerate(objects, start=1)]
    *offsets, end = accumulate(map(len, framed), initial=len(header))
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    trailer = (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (size, table, size, end)
    )
    return b"".join([header, *framed, trailer])

"""A document as a file: what was brought, or its text."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from django.http import FileResponse

from common.errors import NotFound
from documents.models import Document
from documents.services.documents import document_text

SUFFIXES = {"markdown": ".md", "plain": ".txt"}


@dataclass(frozen=True, slots=True)
class Original:
    """A file to be sent: `name` has no folders."""

    name: str
    media_type: str
    size: int
    file: IO[bytes]


def open_original(document: Document) -> Original:
    """The file as it was brought. Raises NotFound where it is not stored here: what commands and
    programs bring is read and let go."""
    try:
        if not document.file:
            raise FileNotFoundError
        file: Any = document.file.open("rb")
    except OSError as error:
        raise NotFound(
            "The original file of this document is not stored here: it was brought as text, or by a"
            " command. Its text is here."
        ) from error
    return Original(
        name=_name(document), media_type=document.media_type, size=document.file.size, file=file
    )


def sent(original: Original) -> FileResponse:
    """As an answer that no browser shows: what people bring may hold anything."""
    answer = FileResponse(
        original.file,
        as_attachment=True,
        filename=original.name,
        content_type="application/octet-stream",
    )
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Content-Length"] = str(original.size)
    return answer


def text_file(document: Document) -> tuple[str, str]:
    """Name and content of the document's text as it is here, with what people changed in it."""
    stem = PurePosixPath(_name(document)).stem or "document"
    return stem + SUFFIXES.get(document.rendering, ".txt"), document_text(document).text


def _name(document: Document) -> str:
    said = str(document.declared.get("file_name") or document.source or document.key)
    name = PurePosixPath(said.replace("\\", "/")).name
    printable = "".join(letter for letter in name if letter.isprintable())
    return printable.strip(". ")[:200] or f"document-{document.pk}"

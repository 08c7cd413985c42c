"""PDF: the text of each page, the outline as headings, the document's own metadata."""

import io
import logging
from typing import Any

from pypdf import Configuration, PdfReader, apply_configuration
from pypdf.errors import LimitReachedError, PyPdfError

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Limits,
    Page,
    ParsedDocument,
    ParseError,
)
from documents.parsers.metadata import json_safe, language_code, readable_title
from documents.parsers.pdf_outline import outline_headings
from documents.parsers.pdf_running import without_running_lines
from documents.parsers.pdf_text import clean_page, join_pages

# pypdf reports every repaired fault of a file; the outcome is told by ParseError instead.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)

#: A page of prose has some 10 kB of content stream. The library's own limits (75 MB a stream,
#: 2 million operands) let one page take minutes.
_WORK = Configuration(
    zlib_maximum_output_length=32_000_000,
    lzw_maximum_output_length=32_000_000,
    run_length_maximum_output_length=32_000_000,
    stream_decoding_work_maximum_length=64_000_000,
    stream_parsing_work_maximum_count=1_000_000,
    outline_maximum_entries=20_000,
)
_MAX_EXCESSIVE_PAGES = 3
_ANEW = "Make the PDF anew and try again."


class PdfParser:
    """PDF with a text layer, unencrypted or with an empty user password."""

    media_types: tuple[str, ...] = ("application/pdf",)
    suffixes: tuple[str, ...] = (".pdf",)

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        with apply_configuration(_WORK):
            try:
                return _parse(data, name, limits)
            except ParseError:
                raise
            except LimitReachedError as error:
                raise _excessive(error) from error
            except Exception as error:  # a broken PDF may raise anything, says pypdf
                raise _broken(data, error) from error


def _parse(data: bytes, name: str, limits: Limits) -> ParsedDocument:
    reader = _open(data)
    count = len(reader.pages)
    if count > limits.max_pages:
        raise ParseError(
            "too_large",
            f"The PDF has {count:,} pages, the limit is {limits.max_pages:,}. Split it.",
        )
    texts, unreadable = _page_texts(reader, limits)
    pages = without_running_lines(texts)
    text, offsets = join_pages(pages)
    if not text.strip():
        raise _without_text(data, count, unreadable)
    metadata = _metadata(reader)
    if unreadable:
        metadata["unreadable_pages"] = unreadable
    return ParsedDocument(
        text=text,
        media_type="application/pdf",
        title=_title(metadata) or readable_title(name),
        headings=outline_headings(reader, pages, offsets),
        pages=tuple(Page(offset, number) for number, offset in enumerate(offsets, start=1)),
        metadata=metadata,
        language=language_code(reader.root_object.get("/Lang")),
    )


def _open(data: bytes) -> PdfReader:
    if _is_cut_off(data):
        raise _broken(data, None)
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not _opens_without_password(reader):
        raise ParseError(
            "encrypted", "The PDF is protected by a password. Save a copy without one."
        )
    return reader


def _opens_without_password(reader: PdfReader) -> bool:
    try:
        return bool(reader.decrypt(""))
    except (PyPdfError, NotImplementedError):
        return False


def _page_texts(reader: PdfReader, limits: Limits) -> tuple[list[str], list[int]]:
    """The text of each page, and the numbers of those that could not be read."""
    texts: list[str] = []
    unreadable: list[int] = []
    excessive = characters = 0
    for number, page in enumerate(reader.pages, start=1):
        try:
            texts.append(clean_page(page.extract_text()))
        except Exception as error:  # one bad page must not cost the others
            excessive += isinstance(error, LimitReachedError)
            if excessive > _MAX_EXCESSIVE_PAGES:
                raise
            unreadable.append(number)
            texts.append("")
        characters += len(texts[-1])
        if characters > limits.max_characters:
            raise ParseError(
                "too_large",
                f"The PDF has more than {limits.max_characters:,} characters. Split it.",
            )
    return texts, unreadable


def _metadata(reader: PdfReader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, attribute in (
        ("title", "title"),
        ("author", "author"),
        ("subject", "subject"),
        ("keywords", "keywords"),
        ("created_at", "creation_date"),
        ("modified_at", "modification_date"),
    ):
        try:
            value = getattr(reader.metadata, attribute, None)
        except Exception:  # noqa: S112  (a malformed date is no reason to refuse the text)
            continue
        if value not in (None, ""):
            found[key] = value
    safe: dict[str, Any] = json_safe(found)
    return safe


def _title(metadata: dict[str, Any]) -> str:
    """The title, unless it is what a program put there by itself."""
    title = " ".join(str(metadata.get("title", "")).split())
    machine_made = title.lower().endswith((".doc", ".docx", ".pdf", ".indd", ".tex", ".dvi"))
    return "" if machine_made or title.lower().startswith("untitled") else title


def _is_cut_off(data: bytes) -> bool:
    """A whole PDF ends with its table of contents; readers guess at what a torn one lost."""
    tail = data[-2048:]
    return b"%%EOF" not in tail and b"startxref" not in tail


def _without_text(data: bytes, count: int, unreadable: list[int]) -> ParseError:
    if unreadable:
        return _broken(data, None)
    if not count:
        return ParseError("no_text", f"The PDF has no page. {_ANEW}")
    return ParseError(
        "no_text",
        "The PDF has pages but no text, it is probably scanned. Run OCR on it first.",
    )


def _excessive(error: LimitReachedError) -> ParseError:
    return ParseError("too_large", f"The PDF expands beyond reason ({str(error)[:200]}). {_ANEW}")


def _broken(data: bytes, error: Exception | None) -> ParseError:
    if _is_cut_off(data):
        return ParseError(
            "truncated", "The PDF ends too early, a part is missing. Download or copy it again."
        )
    reason = f" ({type(error).__name__}: {str(error)[:200]})" if error else ""
    return ParseError("malformed", f"The PDF is damaged{reason}. {_ANEW}")

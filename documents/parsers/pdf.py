"""PDF: the text of each page without running heads, the outline as headings, the document's
metadata. Begin with `parse_pdf`."""

import io
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pypdf import Configuration, PdfReader, apply_configuration
from pypdf.errors import LimitReachedError, PyPdfError
from pypdf.generic import Destination

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    Page,
    ParsedDocument,
    ParseError,
)
from documents.parsers.normalise import json_safe, language_code, normalise_text, readable_title

_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
#: The dots that lead from a title to its page number, in a table of contents.
_DOT_LEADER = re.compile(r"(?: ?\.){5,}")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n(?=([^\W\d_]))")
#: Numbering such as "4.2 " may stand between the line's start and the title.
_MAX_NUMBERING = 12


def clean_page(text: str) -> str:
    """The page's text with ligatures and hyphenation resolved, without trailing space and runs of
    blank lines."""
    text = normalise_text(text).translate(_LIGATURES)
    text = _DOT_LEADER.sub(" …", text)
    lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    # `infor-/mation` is one word; `Smith-/Jones` keeps its hyphen.
    joined = _HYPHENATED.sub(lambda match: "" if match[1].islower() else match[0], lines)
    joined = joined.replace("\u00ad", "")
    return re.sub(r"\n{3,}", "\n\n", joined).strip("\n")


def join_pages(pages: Sequence[str]) -> tuple[str, list[int]]:
    """The full text and the offset of each page.

    A sentence across a page break is not split into two paragraphs.
    """
    parts: list[str] = []
    offsets: list[int] = []
    length, before = 0, ""
    for page in pages:
        glue = ""
        if before and page:
            glue = "\n" if before[-1].isalnum() and page[0].islower() else "\n\n"
        offsets.append(length + len(glue))
        parts += [glue, page]
        length += len(glue) + len(page)
        before = page or before
    return "".join(parts), offsets


def find_title_line(page: str, title: str) -> int | None:
    """Offset in `page` of the line with the outline entry `title`; None if there is none."""
    words = title.split()
    if not words:
        return None
    pattern = r"\s+".join(re.escape(word) for word in words[:40])
    for match in re.finditer(pattern, page, re.I):
        start = page.rfind("\n", 0, match.start()) + 1
        if match.start() - start <= _MAX_NUMBERING:
            return start
    return None


#: Lines at the top and at the bottom of a page that may be running heads.
_EDGE_LINES = 2
_MIN_PAGES = 3
_NUMBER = re.compile(r"^\d{1,6}\b|\b\d{1,6}$")


def without_running_lines(pages: Sequence[str]) -> list[str]:
    """Pages without running heads and page numbers: outer lines that occur on two pages in five,
    and on at least three.

    Lines are equal if they differ only in a number that grows with the pages. Other numbers count:
    the total at the foot of each sheet is no running line.
    """
    split = [page.split("\n") for page in pages]
    seen = Counter(
        key
        for number, lines in enumerate(split)
        for key in {_line_key(lines[at], number) for at in _edge_lines(lines)}
    )
    running = {key for key, count in seen.items() if count >= max(_MIN_PAGES, 0.4 * len(pages))}
    if not running:
        return list(pages)
    cleaned = []
    for number, lines in enumerate(split):
        gone = {at for at in _edge_lines(lines) if _line_key(lines[at], number) in running}
        kept = (line for at, line in enumerate(lines) if at not in gone)
        cleaned.append("\n".join(kept).strip("\n"))
    return cleaned


def _edge_lines(lines: Sequence[str]) -> set[int]:
    """Indices of the outermost non-blank lines; empty if there are no other lines."""
    filled = [at for at, line in enumerate(lines) if line]
    return (
        {*filled[:_EDGE_LINES], *filled[-_EDGE_LINES:]} if len(filled) > 2 * _EDGE_LINES else set()
    )


def _line_key(line: str, page: int) -> str:
    """The line, with the number at its start or end relative to the page number."""
    return _NUMBER.sub(lambda number: f"page{int(number[0]) - page:+}", line, count=1)


def outline_headings(
    reader: PdfReader, pages: Sequence[str], offsets: Sequence[int]
) -> tuple[Heading, ...]:
    """Headings from outline entries (bookmarks) whose title begins a line of the page they point
    to.

    Other entries are left out, because a heading must point at its own words.
    """
    try:
        entries = list(_entries(reader.outline, level=1))
    except Exception:  # a broken outline costs the headings, not the text
        return ()
    found: dict[int, Heading] = {}
    for level, entry in entries:
        try:
            index = reader.get_destination_page_number(entry)
        except Exception:  # noqa: S112  (a destination may be anything at all)
            continue
        title = " ".join(normalise_text(str(entry.title or "")).split())
        if index is None or not 0 <= index < len(pages):
            continue
        place = find_title_line(pages[index], title)
        if place is not None:
            offset = offsets[index] + place
            found.setdefault(offset, Heading(offset, level, title))
    return tuple(found[offset] for offset in sorted(found))


def _entries(outline: list[Any], *, level: int) -> Iterator[tuple[int, Destination]]:
    for entry in outline:
        if isinstance(entry, list):
            yield from _entries(entry, level=level + 1)
        else:
            yield level, entry


# pypdf logs every repaired fault of a file; the outcome is reported by ParseError instead.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)

#: A page of prose has some 10 kB of content stream. The library's own limits (75 MB a stream,
#: 2 million operands) let one page take minutes.
_WORK_LIMITS = Configuration(
    zlib_maximum_output_length=32_000_000,
    lzw_maximum_output_length=32_000_000,
    run_length_maximum_output_length=32_000_000,
    stream_decoding_work_maximum_length=64_000_000,
    stream_parsing_work_maximum_count=1_000_000,
    outline_maximum_entries=20_000,
)
_MAX_EXCESSIVE_PAGES = 3
_EXPORT_AGAIN = "Make the PDF anew and try again."


def parse_pdf(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """PDF with a text layer, unencrypted or with an empty user password."""
    with apply_configuration(_WORK_LIMITS):
        try:
            return _read_pdf(data, name, limits)
        except ParseError:
            raise
        except LimitReachedError as error:
            raise ParseError(
                "too_large",
                f"The PDF expands beyond reason ({str(error)[:200]}). {_EXPORT_AGAIN}",
            ) from error
        except Exception as error:  # a broken PDF may raise anything, says pypdf
            raise _broken_error(data, error) from error


def _read_pdf(data: bytes, name: str, limits: Limits) -> ParsedDocument:
    if _is_truncated(data):
        raise _broken_error(data, None)
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted:
        try:
            is_open = bool(reader.decrypt(""))
        except (PyPdfError, NotImplementedError):
            is_open = False
        if not is_open:
            raise ParseError(
                "encrypted", "The PDF is protected by a password. Save a copy without one."
            )
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
        if unreadable:
            raise _broken_error(data, None)
        if not count:
            raise ParseError("no_text", f"The PDF has no page. {_EXPORT_AGAIN}")
        raise ParseError(
            "no_text",
            "The PDF has pages but no text, it is probably scanned. Run OCR on it first.",
        )
    metadata = _metadata(reader)
    if unreadable:
        metadata["unreadable_pages"] = unreadable
    # The title property, unless a program generated it.
    title = " ".join(str(metadata.get("title", "")).split())
    machine_made = title.lower().endswith((".doc", ".docx", ".pdf", ".indd", ".tex", ".dvi"))
    title_property = "" if machine_made or title.lower().startswith("untitled") else title
    return ParsedDocument(
        text=text,
        media_type="application/pdf",
        title=title_property or readable_title(name),
        headings=outline_headings(reader, pages, offsets),
        pages=tuple(Page(offset, number) for number, offset in enumerate(offsets, start=1)),
        metadata=metadata,
        language=language_code(reader.root_object.get("/Lang")),
    )


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
        limits.check_characters(characters, "The PDF")
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


def _is_truncated(data: bytes) -> bool:
    """Whether the trailer at the end is missing; readers guess at the rest of a truncated file."""
    tail = data[-2048:]
    return b"%%EOF" not in tail and b"startxref" not in tail


def _broken_error(data: bytes, error: Exception | None) -> ParseError:
    if _is_truncated(data):
        return ParseError(
            "truncated", "The PDF ends too early, a part is missing. Download or copy it again."
        )
    reason = f" ({type(error).__name__}: {str(error)[:200]})" if error else ""
    return ParseError("malformed", f"The PDF is damaged{reason}. {_EXPORT_AGAIN}")

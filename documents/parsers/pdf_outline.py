"""The outline (bookmarks) of a PDF as headings."""

from collections.abc import Iterator, Sequence
from typing import Any

from pypdf import PdfReader
from pypdf.generic import Destination

from documents.parsers.base import Heading
from documents.parsers.normalise import normalise_text
from documents.parsers.pdf_text import find_title


def outline_headings(
    reader: PdfReader, pages: Sequence[str], offsets: Sequence[int]
) -> tuple[Heading, ...]:
    """Entries whose title stands at the beginning of a line of the page they lead to.

    An entry without such a line is left out: a heading must point at its own words.
    """
    try:
        entries = list(_entries(reader.outline, level=1))
    except Exception:  # a broken outline costs the headings, not the text
        return ()
    found: dict[int, Heading] = {}
    for level, entry in entries:
        index = _page_index(reader, entry)
        title = " ".join(normalise_text(str(entry.title or "")).split())
        if index is None or not 0 <= index < len(pages):
            continue
        place = find_title(pages[index], title)
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


def _page_index(reader: PdfReader, entry: Destination) -> int | None:
    try:
        return reader.get_destination_page_number(entry)
    except Exception:  # a destination may be anything at all
        return None

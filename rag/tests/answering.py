"""Passages for tests of the pure parts of answering."""

from collections.abc import Mapping
from typing import NamedTuple

from rag.answering.citations import CitationScanner
from rag.events import Citation, Passage


def passage(
    text: str,
    number: int = 1,
    *,
    start: int = 0,
    document_id: int | None = None,
    title: str = "A title",
    language: str = "en",
) -> Passage:
    """The passage `[number]`, alone in a document of its own unless one is named."""
    return Passage(
        number=number,
        chunk_id=100 + number,
        document_id=number if document_id is None else document_id,
        document_key=f"document-{number}",
        version=1,
        collection_slug="shelf",
        title=title,
        heading_path=(),
        page=None,
        text=text,
        start=start,
        end=start + len(text),
        url=f"/documents/shelf/{number}/",
        language=language,
        rank=number,
        similarity=None,
        lexical=None,
        fused=1.0 / number,
        rerank=None,
    )


class Scanned(NamedTuple):
    """A complete text with its citations, and how many were removed."""

    text: str
    cited: tuple[Citation, ...]
    dropped: int


def scan_citations(text: str, known: Mapping[int, Passage]) -> Scanned:
    """Find the citations of a complete text."""
    scanner = CitationScanner(known)
    pieces = [*scanner.feed(text), *scanner.finish()]
    return Scanned(
        "".join(piece for piece in pieces if isinstance(piece, str)),
        tuple(piece for piece in pieces if isinstance(piece, Citation)),
        scanner.dropped,
    )

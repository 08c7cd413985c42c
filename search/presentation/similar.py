"""Passages and documents that are like another, with their addresses."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from common.plain_words import without_signs
from documents.models import Chunk, Document
from search.similar import Similar

SHOWN_CHARACTERS = 300
MARKDOWN = "text/markdown"


@dataclass(frozen=True, slots=True)
class ShownSimilar:
    """Something similar, its address, and what is like it in turn."""

    similar: Similar
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What others are like: a passage, or a document as a whole."""

    title: str
    url: str
    heading_path: tuple[str, ...]
    text: str


def shown_similar(found: Sequence[Similar]) -> list[ShownSimilar]:
    """In their order."""
    return [
        ShownSimilar(
            each,
            url=_address(each.collection_slug, each.document_id, each.chunk_id),
            text=in_words(each.text, each.media_type),
        )
        for each in found
    ]


def similar_to(document: Document, chunk: Chunk | None) -> Origin:
    """What was asked about."""
    text = in_words(chunk.text, chunk.media_type) if chunk else ""
    return Origin(
        title=str(document),
        url=_address(document.collection.slug, document.pk, chunk.pk if chunk else None),
        heading_path=tuple(chunk.heading_path) if chunk else (),
        text=text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…",
    )


def in_words(text: str, media_type: str) -> str:
    """One line of words, of Markdown without its signs."""
    return " ".join((without_signs(text) if media_type == MARKDOWN else text).split())


def _address(slug: str, document_id: int, chunk_id: int | None) -> str:
    path = reverse("document", args=[slug, document_id])
    return path if chunk_id is None else f"{path}?chunk={chunk_id}#passage"

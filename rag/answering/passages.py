"""Hits as the passages that an answer rests on, numbered as it cites them."""

from collections.abc import Iterable

from django.urls import reverse
from django.utils.functional import lazy

from rag.passage import Passage
from search.results import Hit

__all__ = ["Passage", "from_hit", "from_hits", "passage_url"]


def from_hit(hit: Hit, *, number: int) -> Passage:
    """A hit under a number of its own."""
    return Passage(
        number=number,
        chunk_id=hit.chunk_id,
        document_id=hit.document_id,
        document_key=hit.document_key,
        version=hit.version,
        collection_slug=hit.collection_slug,
        title=hit.title,
        heading_path=hit.heading_path,
        page=hit.page,
        text=hit.text,
        start=hit.start,
        end=hit.end,
        # made where it is told: the first address of a process imports every page
        url=lazy(passage_url, str)(hit.collection_slug, hit.document_id, hit.chunk_id),
        language=hit.language,
        rank=hit.rank,
        similarity=hit.similarity,
        lexical=hit.lexical,
        fused=hit.fused,
        rerank=hit.rerank,
    )


def from_hits(hits: Iterable[Hit], *, first_number: int = 1) -> list[Passage]:
    """Hits numbered one after the other."""
    return [from_hit(hit, number=number) for number, hit in enumerate(hits, first_number)]


def passage_url(collection_slug: str, document_id: int, chunk_id: int) -> str:
    """The page of a document at one of its passages."""
    path = reverse("document", args=[collection_slug, document_id])
    return f"{path}?chunk={chunk_id}#passage"

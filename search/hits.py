"""From ranked ids to hits: what a page shows of its passages, and only of those."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from documents.models import Chunk
from search.fusion import Fused
from search.highlighting import highlights
from search.query import Query
from search.results import Hit
from search.retrieval.arms import Candidate
from search.snippets import make_snippet


@dataclass(frozen=True, slots=True)
class Row:
    """What grouping and facets need of every ranked chunk."""

    chunk_id: int
    document_id: int
    collection_slug: str
    collection_name: str
    media_type: str


def load_rows(chunk_ids: Sequence[int]) -> dict[int, Row]:
    """Rows by chunk id. A chunk that was deleted since it was ranked is absent."""
    values = Chunk.objects.filter(id__in=chunk_ids).values_list(
        "id", "document_id", "collection__slug", "collection__name", "media_type"
    )
    return {row[0]: Row(*row) for row in values}


def group_rows(ranked: Sequence[Fused], rows: Mapping[int, Row]) -> list[tuple[Fused, int]]:
    """The best passage of each document, with the number of its other ranked ones."""
    present = [entry for entry in ranked if entry.hit in rows]
    counts = Counter(rows[entry.hit].document_id for entry in present)
    best: dict[int, Fused] = {}
    for entry in present:
        best.setdefault(rows[entry.hit].document_id, entry)
    return [(entry, counts[document_id] - 1) for document_id, entry in best.items()]


def make_hits(
    query: Query,
    listed: Sequence[tuple[Fused, int]],
    *,
    candidates: Mapping[int, Candidate],
    rows: Mapping[int, Row],
    best: float,
    first_rank: int,
    snippets: bool,
) -> tuple[Hit, ...]:
    """The page's hits, with their texts and snippets."""
    ids = [entry.hit for entry, _ in listed]
    chunks = (
        Chunk.objects.select_related("document").defer("embedding", "search_vector").in_bulk(ids)
    )
    marked = highlights(query, ids) if snippets else {}
    return tuple(
        _hit(
            chunks[entry.hit],
            entry,
            candidate=candidates[entry.hit],
            row=rows[entry.hit],
            spans=marked.get(entry.hit, []),
            best=best,
            rank=rank,
            more=more,
        )
        for rank, (entry, more) in enumerate(listed, start=first_rank)
        if entry.hit in chunks
    )


def _hit(
    chunk: Chunk,
    fused: Fused,
    *,
    candidate: Candidate,
    row: Row,
    spans: list[tuple[int, int]],
    best: float,
    rank: int,
    more: int,
) -> Hit:
    document = chunk.document
    return Hit(
        rank=rank,
        chunk_id=chunk.pk,
        chunk_key=chunk.key,
        ordinal=chunk.ordinal,
        text=chunk.text,
        context=chunk.context,
        heading_path=tuple(chunk.heading_path),
        page=chunk.page,
        start=chunk.start,
        end=chunk.end,
        document_id=document.pk,
        document_key=document.key,
        title=document.title or document.source or document.key,
        source=document.source,
        url=document.url,
        media_type=chunk.media_type,
        language=document.language,
        collection_id=chunk.collection_id,
        collection_slug=row.collection_slug,
        collection_name=row.collection_name,
        updated_at=document.updated_at,
        metadata=chunk.metadata,
        similarity=candidate.similarity,
        lexical=candidate.lexical,
        fused=fused.score,
        rerank=None,
        ranks=candidate.ranks,
        contributions=dict(fused.contributions),
        relevance=max(0.0, min(1.0, fused.score / best)) if best > 0 else 0.0,
        snippet=make_snippet(chunk.text, spans),
        more_in_document=more,
    )

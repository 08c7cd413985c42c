"""From ranked candidates to hits: what a page shows of its passages, and only of those."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from documents.models import Chunk
from graph.retrieval import Named, RankedGraph
from search.expansion import surroundings
from search.highlighting import highlights
from search.query import Query
from search.ranking import Ranked
from search.relating import paths, related
from search.results import Expansion, Hit, RelatedPassage, Scope, Surroundings
from search.retrieval.facts import ScopeFacts
from search.sentences import focuses
from search.snippets import Span, make_snippet
from search.told import Told


def grouped(hits: Sequence[Ranked]) -> list[tuple[Ranked, int]]:
    """The best passage of each document, with the number of its other ranked ones."""
    counts = Counter(hit.candidate.document_id for hit in hits)
    best: dict[int, Ranked] = {}
    for hit in hits:
        best.setdefault(hit.candidate.document_id, hit)
    return [(hit, counts[document_id] - 1) for document_id, hit in best.items()]


def one_of_each_parent(hits: Sequence[Ranked]) -> list[Ranked]:
    """The best part of each larger passage, which would be shown again for every other part."""
    seen: set[tuple[int, int]] = set()
    kept = []
    for hit in hits:
        parent = hit.candidate.parent
        if parent is not None:
            if (hit.candidate.document_id, parent) in seen:
                continue
            seen.add((hit.candidate.document_id, parent))
        kept.append(hit)
    return kept


def make_hits(
    query: Query,
    listed: Sequence[tuple[Ranked, int]],
    *,
    facts: ScopeFacts,
    relevance: Callable[[Ranked], float],
    first_rank: int,
    snippets: bool,
    by_meaning: bool,
    expand: Expansion,
    scope: Scope,
    told: Callable[[Iterable[int]], Mapping[int, Told]],
    graph: RankedGraph | None = None,
) -> tuple[Hit, ...]:
    """The page's hits, with their texts and snippets; those of hits that hold no word of the query
    show the sentence nearest to it where `by_meaning`. A hit that was deleted since it was ranked
    is left out. `graph` says how it led to those that it did."""
    ids = [ranked.candidate.chunk_id for ranked, _ in listed]
    chunks = (
        Chunk.objects.select_related("document").defer("embedding", "search_vector").in_bulk(ids)
    )
    marked = highlights(query, ids) if snippets else {}
    present = [chunks[chunk_id] for chunk_id in ids if chunk_id in chunks]
    focus = focuses(query.text, present, marked, spaces=facts.spaces) if by_meaning else {}
    around = surroundings(present, expand)
    of = told(chunk.document_id for chunk in present)
    led = paths(graph, ids)
    beside = related(query, ids, scope=scope) if expand == "graph" else {}
    return tuple(
        _hit(
            chunks[ranked.candidate.chunk_id],
            ranked,
            facts=facts,
            spans=marked.get(ranked.candidate.chunk_id, []),
            focus=focus.get(ranked.candidate.chunk_id),
            around=around.get(ranked.candidate.chunk_id),
            path=led.get(ranked.candidate.chunk_id, ()),
            beside=beside.get(ranked.candidate.chunk_id, ()),
            dated=of[chunks[ranked.candidate.chunk_id].document_id].dated,
            relevance=relevance(ranked),
            rank=rank,
            more=more,
        )
        for rank, (ranked, more) in enumerate(listed, start=first_rank)
        if ranked.candidate.chunk_id in chunks
        and chunks[ranked.candidate.chunk_id].document_id in of
    )


def _hit(
    chunk: Chunk,
    ranked: Ranked,
    *,
    facts: ScopeFacts,
    spans: list[tuple[int, int]],
    focus: Span | None,
    around: Surroundings | None,
    path: tuple[Named, ...],
    beside: tuple[RelatedPassage, ...],
    dated: str,
    relevance: float,
    rank: int,
    more: int,
) -> Hit:
    document, candidate = chunk.document, ranked.candidate
    collection = facts.collections[chunk.collection_id]
    return Hit(
        rank=rank,
        chunk_id=chunk.pk,
        chunk_key=chunk.key,
        ordinal=chunk.ordinal,
        text=chunk.text,
        context=chunk.context,
        heading_path=tuple(chunk.heading_path),
        page=chunk.page,
        parent=chunk.parent,
        start=chunk.start,
        end=chunk.end,
        document_id=document.pk,
        document_key=document.key,
        version=document.version,
        is_current=document.is_current,
        title=document.shown_title,
        source=document.source,
        url=document.url,
        media_type=chunk.media_type,
        rendering=document.rendering,
        language=document.language,
        collection_id=chunk.collection_id,
        collection_slug=collection.slug,
        collection_name=collection.name,
        updated_at=document.updated_at,
        dated=dated,
        metadata=chunk.metadata,
        similarity=candidate.similarity,
        lexical=candidate.lexical,
        fused=ranked.fused.score,
        fused_rank=ranked.fused_rank,
        rerank=ranked.rerank,
        ranks=candidate.ranks,
        contributions=dict(ranked.fused.contributions),
        relevance=relevance,
        snippet=make_snippet(chunk.text, spans, focus=focus),
        surroundings=around,
        more_in_document=more,
        graph=candidate.graph,
        path=path,
        related=beside,
    )

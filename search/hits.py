"""From ranked candidates to hits: what a page shows of its passages, and only of those."""

from collections import Counter
from collections.abc import Callable, Sequence

from graph.retrieval import RankedGraph
from search.expansion import surroundings
from search.highlighting import highlights
from search.query import Query
from search.ranking import Passages, Ranked
from search.relating import paths, related
from search.results import Expansion, Hit, Scope
from search.retrieval.facts import ScopeFacts
from search.sentences import focuses
from search.snippets import make_snippet


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
    passages: Passages,
    graph: RankedGraph | None = None,
) -> tuple[Hit, ...]:
    """The page's hits, with their texts and snippets; those of hits that hold no word of the query
    show the sentence nearest to it where `by_meaning`. A hit that was deleted since it was ranked
    is left out. `graph` says how it led to those that it did."""
    ids = [ranked.candidate.chunk_id for ranked, _ in listed]
    read = passages(ids)
    marked = highlights(query, ids) if snippets else {}
    present = [read[chunk_id] for chunk_id in ids if chunk_id in read]
    focus = focuses(query.text, present, marked, spaces=facts.spaces) if by_meaning else {}
    around = surroundings(present, expand)
    led = paths(graph, ids)
    beside = related(query, ids, scope=scope) if expand == "graph" else {}
    hits = []
    for rank, (ranked, more) in enumerate(listed, start=first_rank):
        candidate, fused = ranked.candidate, ranked.fused
        passage = read.get(candidate.chunk_id)
        if passage is None:
            continue
        collection = facts.collections[passage.collection_id]
        hits.append(
            Hit(
                rank=rank,
                chunk_id=passage.chunk_id,
                chunk_key=passage.chunk_key,
                ordinal=passage.ordinal,
                text=passage.text,
                context=passage.context,
                heading_path=tuple(passage.heading_path),
                page=passage.page,
                parent=passage.parent,
                start=passage.start,
                end=passage.end,
                summary=passage.summary,
                token_count=passage.token_count,
                document_id=passage.document_id,
                document_key=passage.document_key,
                version=passage.version,
                is_current=passage.is_current,
                title=passage.title,
                source=passage.source,
                url=passage.url,
                media_type=passage.media_type,
                rendering=passage.rendering,
                language=passage.language,
                collection_id=passage.collection_id,
                collection_slug=collection.slug,
                collection_name=collection.name,
                updated_at=passage.updated_at,
                dated=passage.dated,
                metadata=passage.metadata,
                similarity=candidate.similarity,
                lexical=candidate.lexical,
                fused=fused.score,
                fused_rank=ranked.fused_rank,
                rerank=ranked.rerank,
                ranks=candidate.ranks,
                contributions=fused.contributions,
                relevance=relevance(ranked),
                snippet=make_snippet(
                    passage.text,
                    marked.get(passage.chunk_id, []),
                    focus=focus.get(passage.chunk_id),
                ),
                surroundings=around.get(passage.chunk_id),
                more_in_document=more,
                graph=candidate.graph,
                path=led.get(passage.chunk_id, ()),
                related=beside.get(passage.chunk_id, ()),
            )
        )
    return tuple(hits)

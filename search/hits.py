"""Hits for one page: text, snippet, surroundings and graph paths of ranked candidates.
Begin with `make_hits`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import takewhile

from django.db.models import Q

from documents.ingestion.text_changes import join_passages
from documents.models import Chunk
from graph.ranking import PathStop, RankedGraph
from graph.retrieval import NamedStop, named_stops, related_passages
from search.query import Query
from search.ranking import PassageReader, RankedHit
from search.results import Expansion, Hit, Passage, RelatedPassage, Scope, Surroundings
from search.retrieval.scope_facts import ScopeFacts
from search.retrieval.statements import scope_conditions
from search.snippets import highlights, make_snippet, snippet_focuses

#: Chunks on either side; longer sections are cut.
NEIGHBOUR_COUNTS = {"siblings": 1, "section": 10}

_HEAVY_FIELDS = ("embedding", "search_vector", "metadata")


def surroundings(
    chunks: Sequence[Chunk | Passage], expansion: Expansion
) -> dict[int, Surroundings]:
    """By chunk id. `siblings`: the chunks before and after; `section`: adjacent chunks under the
    same headings; `parent`: all parts of the larger passage, nothing for chunks without one.
    """
    if expansion in ("none", "graph") or not chunks:
        return {}
    if expansion == "parent":
        return _parent_surroundings(chunks)
    reach = NEIGHBOUR_COUNTS[expansion]
    places = Q()
    for chunk in chunks:
        near = (max(0, chunk.ordinal - reach), chunk.ordinal + reach)
        places |= Q(document_id=chunk.document_id, ordinal__range=near)
    by_place = {
        (chunk.document_id, chunk.ordinal): chunk
        for chunk in Chunk.objects.filter(places).defer(*_HEAVY_FIELDS)
    }
    found = {}
    for chunk in chunks:
        before = list(_neighbours(chunk, by_place, expansion, step=-1))[::-1]
        found[chunk.pk] = _join_chunks(
            [*before, chunk, *_neighbours(chunk, by_place, expansion, step=1)]
        )
    return found


def _parent_surroundings(chunks: Sequence[Chunk | Passage]) -> dict[int, Surroundings]:
    parts = [chunk for chunk in chunks if chunk.parent is not None]
    if not parts:
        return {}
    wanted = Q()
    for document_id, parent in {(chunk.document_id, chunk.parent) for chunk in parts}:
        wanted |= Q(document_id=document_id, parent=parent)
    families: dict[tuple[int, int | None], list[Chunk]] = defaultdict(list)
    for chunk in (
        Chunk.objects.filter(wanted).order_by("document_id", "ordinal").defer(*_HEAVY_FIELDS)
    ):
        families[chunk.document_id, chunk.parent].append(chunk)
    whole = {family: _join_chunks(members) for family, members in families.items()}
    return {
        chunk.pk: whole[chunk.document_id, chunk.parent]
        for chunk in parts
        if (chunk.document_id, chunk.parent) in whole
    }


def _join_chunks(chunks: Sequence[Chunk | Passage]) -> Surroundings:
    start, end = chunks[0].start, max(chunk.end for chunk in chunks)
    return Surroundings(join_passages(chunks, start=start), start, end)


def _neighbours(
    chunk: Chunk | Passage,
    by_place: dict[tuple[int, int], Chunk],
    expansion: Expansion,
    *,
    step: int,
) -> Iterator[Chunk]:
    """Adjacent chunks in one direction, as far as the expansion goes."""
    places = range(
        chunk.ordinal + step, chunk.ordinal + step * (NEIGHBOUR_COUNTS[expansion] + 1), step
    )
    present = takewhile(lambda place: (chunk.document_id, place) in by_place, places)
    siblings = (by_place[chunk.document_id, place] for place in present)
    if expansion == "siblings":
        return siblings
    return takewhile(lambda sibling: sibling.heading_path == chunk.heading_path, siblings)


#: Hits that are expanded, and most passages per hit.
MAX_EXPANDED_HITS = 10
MAX_RELATED = 3

Names = Mapping[PathStop, NamedStop]


def paths_to_hits(
    graph: RankedGraph | None, chunk_ids: Sequence[int]
) -> dict[int, tuple[NamedStop, ...]]:
    """Graph paths of the chunks that the graph arm reached; paths of one stop are left out."""
    if graph is None:
        return {}
    found = {chunk_id: graph.path(chunk_id) for chunk_id in chunk_ids}
    led = {chunk_id: path for chunk_id, path in found.items() if len(path) > 1}
    names = named_stops(led.values())
    return {chunk_id: _named(path, names) for chunk_id, path in led.items()}


def _named(path: Sequence[PathStop], names: Names) -> tuple[NamedStop, ...]:
    return tuple(names[stop] for stop in path if stop in names)


def related_to_hits(
    query: Query, chunk_ids: Sequence[int], *, scope: Scope
) -> dict[int, tuple[RelatedPassage, ...]]:
    """By chunk id of the first hits: up to MAX_RELATED passages of the scope that are
    not hits themselves.
    """
    within, parameters = scope_conditions(scope, query)
    found = related_passages(
        chunk_ids[:MAX_EXPANDED_HITS],
        known=chunk_ids,
        within=within,
        parameters=parameters,
        each=MAX_RELATED,
    )
    chunks = (
        Chunk.objects.select_related("document", "collection")
        .defer("embedding", "search_vector", "metadata")
        .in_bulk([each.chunk_id for each in found])
    )
    names = named_stops(each.path for each in found)
    by_hit: dict[int, list[RelatedPassage]] = defaultdict(list)
    for each in found:
        chunk = chunks.get(each.chunk_id)
        if chunk is not None:
            path = _named(each.path, names)
            document = chunk.document
            passage = RelatedPassage(
                chunk_id=chunk.pk,
                expanded_from=each.expanded_from,
                path=path,
                text=chunk.text,
                ordinal=chunk.ordinal,
                start=chunk.start,
                end=chunk.end,
                document_id=document.pk,
                document_key=document.key,
                title=document.display_title,
                collection_slug=chunk.collection.slug,
            )
            by_hit[each.expanded_from].append(passage)
    return {chunk_id: tuple(passages) for chunk_id, passages in by_hit.items()}


def group_by_document(hits: Sequence[RankedHit]) -> list[tuple[RankedHit, int]]:
    """The best passage of each document, with the number of its other ranked ones."""
    counts = Counter(hit.candidate.document_id for hit in hits)
    best: dict[int, RankedHit] = {}
    for hit in hits:
        best.setdefault(hit.candidate.document_id, hit)
    return [(hit, counts[document_id] - 1) for document_id, hit in best.items()]


def best_of_each_parent(hits: Sequence[RankedHit]) -> list[RankedHit]:
    """The best part of each parent passage; other parts would show the same text."""
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


#: Fields of a hit that its passage has too.
_PASSAGE_FIELDS = {each.name for each in fields(Hit)} & {*Passage._fields} - {"heading_path"}


def make_hits(
    query: Query,
    listed: Sequence[tuple[RankedHit, int]],
    *,
    facts: ScopeFacts,
    relevance: Callable[[RankedHit], float],
    first_rank: int,
    snippets: bool,
    by_meaning: bool,
    expand: Expansion,
    scope: Scope,
    passages: PassageReader,
    graph: RankedGraph | None = None,
) -> tuple[Hit, ...]:
    """Hits of one page with text and snippet. Chunks deleted since ranking are left out.

    With `by_meaning`, hits without query words show the sentence nearest to the query. `graph`
    gives the paths of hits that the graph arm reached.
    """
    ids = [ranked.candidate.chunk_id for ranked, _ in listed]
    read = passages(ids)
    marked = highlights(query, ids) if snippets else {}
    present = [read[chunk_id] for chunk_id in ids if chunk_id in read]
    focus = snippet_focuses(query.text, present, marked, spaces=facts.spaces) if by_meaning else {}
    around = surroundings(present, expand)
    hit_paths = paths_to_hits(graph, ids)
    related = related_to_hits(query, ids, scope=scope) if expand == "graph" else {}
    hits = []
    for rank, (ranked, more) in enumerate(listed, start=first_rank):
        candidate, fused = ranked.candidate, ranked.fused
        passage = read.get(candidate.chunk_id)
        if passage is None:
            continue
        collection = facts.collections[passage.collection_id]
        hits.append(
            Hit(
                **{name: getattr(passage, name) for name in _PASSAGE_FIELDS},
                rank=rank,
                heading_path=tuple(passage.heading_path),
                metadata=passage.metadata,
                collection_slug=collection.slug,
                collection_name=collection.name,
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
                path=hit_paths.get(passage.chunk_id, ()),
                related=related.get(passage.chunk_id, ()),
            )
        )
    return tuple(hits)

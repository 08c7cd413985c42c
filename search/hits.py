"""Hits for one page: text, snippet, surroundings and graph paths of ranked candidates.
Begin with `make_hits`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Q

from documents.ingestion.text_changes import join_passages
from documents.models import Chunk
from graph.ranking import RankedGraph
from graph.retrieval import NamedStop, named_stops, related_passages
from search.hit_rows import tables_of_hits
from search.query import Query
from search.ranking import PassageReader
from search.results import (
    Expansion,
    Hit,
    Passage,
    RelatedPassage,
    Scope,
    Surroundings,
    read_passages,
)
from search.retrieval.arms import Candidate
from search.retrieval.scope_facts import ScopeFacts
from search.retrieval.statements import scope_conditions
from search.snippets import Span, highlights, make_snippet, snippet_focuses

#: Chunks on either side; longer sections are cut.
NEIGHBOUR_COUNTS = {"siblings": 1, "section": 10}

_HEAVY_FIELDS = ("embedding", "search_vector", "metadata")


def surroundings(
    chunks: Sequence[Chunk | Passage], expansion: Expansion
) -> dict[int, Surroundings]:
    """By chunk id. `siblings`: the chunks before and after; `section`: adjacent chunks under the
    same headings; `parent`: all parts of the larger passage, nothing for chunks without one.
    """
    places = Q()
    for chunk in chunks:
        if expansion == "parent" and chunk.parent is not None:
            places |= Q(document_id=chunk.document_id, parent=chunk.parent)
        elif reach := NEIGHBOUR_COUNTS.get(expansion):
            near = (max(0, chunk.ordinal - reach), chunk.ordinal + reach)
            places |= Q(document_id=chunk.document_id, ordinal__range=near)
    if not places:
        return {}
    rows = Chunk.objects.filter(places).order_by("document_id", "ordinal").defer(*_HEAVY_FIELDS)
    by_document: dict[int, list[Chunk]] = defaultdict(list)
    for row in rows:
        by_document[row.document_id].append(row)
    found = {}
    for chunk in chunks:
        around = by_document[chunk.document_id]
        if expansion == "parent":
            parts: list[Chunk | Passage] = [
                row for row in around if row.parent is not None and row.parent == chunk.parent
            ]
        else:
            by_place = {row.ordinal: row for row in around}
            before = list(_neighbours(chunk, by_place, expansion, step=-1))[::-1]
            parts = [*before, chunk, *_neighbours(chunk, by_place, expansion, step=1)]
        if parts:
            start, end = parts[0].start, max(part.end for part in parts)
            found[chunk.pk] = Surroundings(join_passages(parts, start=start), start, end)
    return found


def _neighbours(
    chunk: Chunk | Passage, by_place: Mapping[int, Chunk], expansion: Expansion, *, step: int
) -> Iterator[Chunk]:
    """Adjacent chunks in one direction, as far as the expansion goes."""
    last = chunk.ordinal + step * (NEIGHBOUR_COUNTS[expansion] + 1)
    for place in range(chunk.ordinal + step, last, step):
        sibling = by_place.get(place)
        if sibling is None or (
            expansion == "section" and sibling.heading_path != list(chunk.heading_path)
        ):
            return
        yield sibling


#: Hits that are expanded, and most passages per hit.
MAX_EXPANDED_HITS = 10
MAX_RELATED = 3


def paths_to_hits(
    graph: RankedGraph | None, chunk_ids: Sequence[int]
) -> dict[int, tuple[NamedStop, ...]]:
    """Graph paths of the chunks that the graph arm reached; paths of one stop are left out."""
    if graph is None:
        return {}
    found = {chunk_id: graph.path(chunk_id) for chunk_id in chunk_ids}
    led = {chunk_id: path for chunk_id, path in found.items() if len(path) > 1}
    names = named_stops(led.values())
    return {
        chunk_id: tuple(names[stop] for stop in path if stop in names)
        for chunk_id, path in led.items()
    }


def related_to_hits(
    query: Query, chunk_ids: Sequence[int], *, scope: Scope
) -> dict[int, list[RelatedPassage]]:
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
    passages = read_passages([each.chunk_id for each in found])
    names = named_stops(each.path for each in found)
    by_hit: dict[int, list[RelatedPassage]] = defaultdict(list)
    for each in found:
        if each.chunk_id in passages:
            by_hit[each.expanded_from].append(
                RelatedPassage(
                    **passages[each.chunk_id].values(),
                    expanded_from=each.expanded_from,
                    path=tuple(names[stop] for stop in each.path if stop in names),
                )
            )
    return by_hit


def group_by_document(hits: Sequence[Candidate]) -> list[Candidate]:
    """The best passage of each document, with the number of its other ranked ones."""
    counts = Counter(hit.document_id for hit in hits)
    best: dict[int, Candidate] = {}
    for hit in hits:
        hit.more_in_document = counts[hit.document_id] - 1
        best.setdefault(hit.document_id, hit)
    return list(best.values())


def best_of_each_parent(hits: Sequence[Candidate]) -> list[Candidate]:
    """The best part of each parent passage; other parts would show the same text."""
    best: dict[object, Candidate] = {}
    for hit in hits:
        best.setdefault(hit.chunk_id if hit.parent is None else (hit.document_id, hit.parent), hit)
    return list(best.values())


def make_hits(
    query: Query,
    listed: Sequence[Candidate],
    *,
    facts: ScopeFacts,
    relevance: Callable[[Candidate], float],
    first_rank: int,
    snippets: bool,
    rows: bool,
    by_meaning: bool,
    expand: Expansion,
    scope: Scope,
    passages: PassageReader,
    graph: RankedGraph | None = None,
) -> tuple[Hit, ...]:
    """Hits of one page with text and snippet. Chunks deleted since ranking are left out.

    With `rows`, hits have the rows of tables that fit best. With `by_meaning`, hits without query
    words and rows show the sentence nearest to the query. `graph` gives the paths of hits that the
    graph arm reached.
    """
    ids = [candidate.chunk_id for candidate in listed]
    read = passages(ids)
    marked = highlights(query, ids) if snippets else {}
    present = [read[chunk_id] for chunk_id in ids if chunk_id in read]
    tables = tables_of_hits(query, present, marked) if rows else {}
    focus: Mapping[int, Span] = {}
    if by_meaning:
        ids_with_vectors = facts.embedded
        embedded = [
            each
            for each in present
            if each.collection_id in ids_with_vectors and each.pk not in tables
        ]
        focus = snippet_focuses(query.text, embedded, marked, spaces=facts.spaces)
    around = surroundings(present, expand)
    hit_paths = paths_to_hits(graph, ids)
    related = related_to_hits(query, ids, scope=scope) if expand == "graph" else {}
    return tuple(
        make_hit(
            candidate,
            passage,
            rank=rank,
            relevance=relevance(candidate),
            snippet=make_snippet(passage.text, marked.get(pk, []), focus=focus.get(pk)),
            table=tables.get(pk),
            surroundings=around.get(pk),
            path=hit_paths.get(pk, ()),
            related=tuple(related.get(pk, ())),
        )
        for rank, (candidate, pk) in enumerate(zip(listed, ids, strict=True), start=first_rank)
        if (passage := read.get(pk)) is not None
    )


def make_hit(candidate: Candidate, passage: Passage, **shown: Any) -> Hit:
    """The passage with the scores of its candidate and what is shown of it, by field of `Hit`."""
    return Hit(
        **passage.values(),
        similarity=candidate.arm_score("similarity"),
        lexical=candidate.arm_score("lexical"),
        graph=candidate.arm_score("graph"),
        fused=candidate.fused_score,
        fused_rank=candidate.fused_rank,
        rerank=candidate.rerank,
        rerank_factor=candidate.rerank_factor,
        ranks=candidate.ranks,
        contributions=candidate.contributions,
        more_in_document=candidate.more_in_document,
        **shown,
    )

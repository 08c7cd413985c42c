"""What the graph adds to hits: how one got to them, and what hangs together with them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from documents.models import Chunk
from graph.retrieval import Named, RankedGraph, Stop, named_stops, related_passages
from search.query import Query
from search.results import RelatedPassage, Scope
from search.retrieval.scope import scope_conditions

#: Hits that are expanded, and how many passages each may bring.
EXPANDED = 10
EACH = 3

Names = Mapping[Stop, Named]


def paths(graph: RankedGraph | None, chunk_ids: Sequence[int]) -> dict[int, tuple[Named, ...]]:
    """How the graph led to those of `chunk_ids` that it did lead to; not where paths only start."""
    if graph is None:
        return {}
    found = {chunk_id: graph.path(chunk_id) for chunk_id in chunk_ids}
    led = {chunk_id: path for chunk_id, path in found.items() if len(path) > 1}
    names = named_stops(led.values())
    return {chunk_id: _named(path, names) for chunk_id, path in led.items()}


def _named(path: Sequence[Stop], names: Names) -> tuple[Named, ...]:
    return tuple(names[stop] for stop in path if stop in names)


def related(
    query: Query, chunk_ids: Sequence[int], *, scope: Scope
) -> dict[int, tuple[RelatedPassage, ...]]:
    """By chunk id of the first EXPANDED hits: at most EACH passages that are not hits themselves,
    from the same scope."""
    within, parameters = scope_conditions(scope, query)
    found = related_passages(
        chunk_ids[:EXPANDED], known=chunk_ids, within=within, parameters=parameters, each=EACH
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
            by_hit[each.expanded_from].append(_passage(chunk, each.expanded_from, path))
    return {chunk_id: tuple(passages) for chunk_id, passages in by_hit.items()}


def _passage(chunk: Chunk, expanded_from: int, path: tuple[Named, ...]) -> RelatedPassage:
    document = chunk.document
    return RelatedPassage(
        chunk_id=chunk.pk,
        expanded_from=expanded_from,
        path=path,
        text=chunk.text,
        ordinal=chunk.ordinal,
        start=chunk.start,
        end=chunk.end,
        document_id=document.pk,
        document_key=document.key,
        title=document.shown_title,
        collection_slug=chunk.collection.slug,
    )

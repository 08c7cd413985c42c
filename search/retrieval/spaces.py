"""Which spaces a search looks in, with the query's vector for each, and how it looks."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.db.models import Sum

from documents.embedders import embedder_for
from documents.ingestion.indexes import IndexState, index_states
from documents.models import Collection, EmbeddingSpace, LexicalStatistics
from inference.base import InferenceError
from inference.query_cache import embed_query_cached
from search.query import Query
from search.results import Scope
from search.retrieval.statement import SAMPLE, SpaceQuery, scope_size_statement

#: pgvector's default of 40 would cut every list to 40 rows.
MINIMUM_EF_SEARCH = 200
MAX_EF_SEARCH = 1000  # pgvector's own limit
#: Chunks that lie together are of one document: the sample is spread over more than its number.
MAX_STRIDE = 16


@dataclass(frozen=True, slots=True)
class SpaceQueries:
    """The query in every space that its model works for.

    `ids` are all spaces that hold chunks of the scope; `error` is why some are missing. `probes`
    is for IVFFlat indexes, `ef_search` for HNSW ones. Every `stride`th chunk is enough to see what
    similarity is usual.
    """

    queries: tuple[SpaceQuery, ...] = ()
    ids: frozenset[int] = frozenset()
    error: InferenceError | None = None
    ef_search: int = MINIMUM_EF_SEARCH
    probes: int = 1
    stride: int = 1

    @property
    def approximate(self) -> bool:
        """Whether any space is searched through its index."""
        return any(not entry.exact for entry in self.queries)


def space_queries(query: Query, scope: Scope, *, depth: int) -> SpaceQueries:
    """Embed `query` for every space that holds chunks of `scope`."""
    spaces = _spaces(scope)
    queries: list[SpaceQuery] = []
    error: InferenceError | None = None
    known = _known_chunks(scope)
    indexes = {} if _scans_exactly(scope, known) else _usable_indexes(spaces)
    for space in spaces:
        try:
            embedder_for(space)
            vector = embed_query_cached(space.embedder, query.text, space.query_instruction or None)
        except InferenceError as failed:
            error = failed
            continue
        queries.append(SpaceQuery(space.sql, vector, exact=space.pk not in indexes))
    return SpaceQueries(
        queries=tuple(queries),
        ids=frozenset(space.pk for space in spaces),
        error=error,
        ef_search=_ef_search(spaces, depth),
        probes=max(
            (space.sql.probes(indexes[space.pk].rows) for space in spaces if space.pk in indexes),
            default=1,
        ),
        stride=min(MAX_STRIDE, max(1, known // SAMPLE)),
    )


def _spaces(scope: Scope) -> list[EmbeddingSpace]:
    """The collections' own spaces, and those that their chunks are just leaving."""
    collections = Collection.objects.filter(id__in=scope.collection_ids)
    ids: set[int] = set()
    for space_id, former in collections.values_list("space_id", "former_spaces").distinct():
        ids |= {space_id, *former}
    return list(EmbeddingSpace.objects.filter(pk__in=ids).order_by("pk"))


def _usable_indexes(spaces: Sequence[EmbeddingSpace]) -> dict[int, IndexState]:
    """Indexes that are there and whole; a space without one is scanned."""
    return {pk: state for pk, state in index_states(spaces).items() if state.valid}


def _ef_search(spaces: Sequence[EmbeddingSpace], depth: int) -> int:
    wanted: list[int] = [space.index_options.get("ef_search", 0) for space in spaces]
    return min(max(depth, MINIMUM_EF_SEARCH, *wanted), MAX_EF_SEARCH)


def _known_chunks(scope: Scope) -> int:
    """How many chunks the scope's collections had when their words were counted."""
    statistics = LexicalStatistics.objects.filter(collection_id__in=scope.collection_ids)
    return statistics.aggregate(chunks=Sum("chunk_count"))["chunks"] or 0


def _scans_exactly(scope: Scope, known: int) -> bool:
    """Whether the scope is small enough to look at every vector in it."""
    limit = settings.EXACT_SCAN_CHUNKS
    if known <= limit and not _is_stale(scope):
        return True
    statement = scope_size_statement(scope, at_most=limit + 1)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        return bool(cursor.fetchone()[0] <= limit)


def _is_stale(scope: Scope) -> bool:
    return Collection.objects.filter(id__in=scope.collection_ids, statistics_stale=True).exists()

"""Running the arms: which spaces, exact or approximate, and what came back."""

from dataclasses import dataclass
from time import perf_counter

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Sum

from documents.models import Collection, EmbeddingSpace, LexicalStatistics
from documents.spaces import SpaceSql
from inference.base import InferenceError
from inference.query_cache import embed_query_cached
from search.query import Query
from search.results import ArmReport, Mode, Scope
from search.retrieval.statement import (
    SpaceQuery,
    Statement,
    build_statement,
    scope_size_statement,
)

#: pgvector's default of 40 would cut every list to 40 rows.
MINIMUM_EF_SEARCH = 200
MAX_EF_SEARCH = 1000  # pgvector's own limit


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that some arm listed, with what every arm says of it.

    `ranks` are its 1-based places in the lists of the arms that listed it.
    """

    chunk_id: int
    lexical: float | None
    similarity: float | None
    ranks: dict[str, int]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the arms brought, in no order, and how they worked."""

    candidates: tuple[Candidate, ...]
    arms: tuple[ArmReport, ...]
    degraded: tuple[str, ...]
    timings: dict[str, float]


def retrieve(query: Query, *, scope: Scope, mode: Mode, depth: int) -> Retrieved:
    """Run the arms of `mode`, each listing its best `depth` chunks in scope.

    An embedder that does not work takes the vector arm away and leaves the lexical one; the
    answer says so. With mode `vector` there is nothing left, and its InferenceError is raised.
    """
    timings: dict[str, float] = {}
    lexical = mode != "vector"
    degraded: tuple[str, ...] = ()
    started = perf_counter()
    try:
        spaces = _space_queries(query, scope) if mode != "lexical" else []
    except InferenceError:
        if mode == "vector":
            raise
        spaces, degraded = [], ("vector",)
    timings["embed"] = _milliseconds(started)
    started = perf_counter()
    statement = build_statement(query, scope=scope, depth=depth, lexical=lexical, spaces=spaces)
    rows = _run(statement, spaces, depth)
    if any(not entry.exact for entry in spaces) and sum(row[3] for row in rows) < depth:
        # The index walked past rows that the scope wanted: look at all of them.
        spaces = [SpaceQuery(entry.space, entry.vector, exact=True) for entry in spaces]
        statement = build_statement(query, scope=scope, depth=depth, lexical=lexical, spaces=spaces)
        rows = _run(statement, spaces, depth)
    timings["database"] = _milliseconds(started)
    candidates = _candidates(rows, depth)
    arms = _reports(candidates, lexical=lexical, spaces=spaces)
    return Retrieved(candidates, arms, degraded, timings)


def _milliseconds(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)


def _space_queries(query: Query, scope: Scope) -> list[SpaceQuery]:
    spaces = EmbeddingSpace.objects.filter(collections__in=scope.collection_ids).distinct()
    exact = _scans_exactly(scope)
    return [
        SpaceQuery(
            space=SpaceSql(space.id, space.dimensions, space.metric),
            vector=embed_query_cached(space.embedder, query.text, space.query_instruction or None),
            exact=exact,
        )
        for space in spaces.order_by("id")
    ]


def _scans_exactly(scope: Scope) -> bool:
    """Whether the scope is small enough to look at every vector in it."""
    limit = settings.EXACT_SCAN_CHUNKS
    statistics = LexicalStatistics.objects.filter(collection_id__in=scope.collection_ids)
    known = statistics.aggregate(chunks=Sum("chunk_count"))["chunks"] or 0
    if known <= limit and not _is_stale(scope):
        return True
    statement = scope_size_statement(scope, at_most=limit + 1)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        return bool(cursor.fetchone()[0] <= limit)


def _is_stale(scope: Scope) -> bool:
    return Collection.objects.filter(id__in=scope.collection_ids, statistics_stale=True).exists()


def _run(
    statement: Statement, spaces: list[SpaceQuery], depth: int
) -> list[tuple[int, float | None, float | None, bool]]:
    """Run it; settings of the approximate scan live only as long as the transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        if any(not entry.exact for entry in spaces):
            cursor.execute(
                "SELECT set_config('hnsw.ef_search', %s, true),"
                " set_config('hnsw.iterative_scan', 'strict_order', true)",
                [str(min(max(depth, MINIMUM_EF_SEARCH), MAX_EF_SEARCH))],
            )
        cursor.execute(statement.sql, statement.parameters)
        return [(row[0], row[1], row[2], row[3]) for row in cursor.fetchall()]


def _candidates(
    rows: list[tuple[int, float | None, float | None, bool]], depth: int
) -> tuple[Candidate, ...]:
    lexical = sorted((row for row in rows if row[1]), key=lambda row: (-(row[1] or 0), row[0]))
    near = sorted((row for row in rows if row[3]), key=lambda row: (-(row[2] or 0), row[0]))
    lexical_rank = {row[0]: rank for rank, row in enumerate(lexical[:depth], start=1)}
    vector_rank = {row[0]: rank for rank, row in enumerate(near, start=1)}
    return tuple(
        Candidate(
            chunk_id=chunk_id,
            lexical=score,
            similarity=similarity,
            ranks={
                name: ranks[chunk_id]
                for name, ranks in (("lexical", lexical_rank), ("vector", vector_rank))
                if chunk_id in ranks
            },
        )
        for chunk_id, score, similarity, _ in rows
    )


def _reports(
    candidates: tuple[Candidate, ...], *, lexical: bool, spaces: list[SpaceQuery]
) -> tuple[ArmReport, ...]:
    def listed(name: str) -> int:
        return sum(name in candidate.ranks for candidate in candidates)

    reports = [ArmReport("lexical", "bm25", listed("lexical"))] if lexical else []
    if spaces:
        method = "exact" if all(entry.exact for entry in spaces) else "ann"
        reports.append(ArmReport("vector", method, listed("vector")))
    return tuple(reports)

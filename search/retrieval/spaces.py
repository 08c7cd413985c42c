"""Which spaces a search looks in, with the query's vector for each, and how it looks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.replicas import read_connection
from documents.embedders import embed_question
from documents.ingestion.indexes import IndexState, index_states
from documents.models import EmbeddingSpace
from inference.base import InferenceError
from search.query import Query
from search.results import Scope
from search.retrieval.facts import ScopeFacts
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


def space_queries(
    query: Query,
    scope: Scope,
    facts: ScopeFacts,
    *,
    depth: int,
    vector: NDArray[np.float32] | None = None,
    vectors: Mapping[int, NDArray[np.float32]] | None = None,
) -> SpaceQueries:
    """The query in every space of the scope: embedded, or `vector` where the caller brings it.
    With `vectors` by id of the space, those spaces alone are asked.

    Raises InvalidInput for a vector of another length than the space's, or where the scope has
    chunks of several models.
    """
    if vector is not None:
        _check_vector(vector, facts)
    queries: list[SpaceQuery] = []
    error: InferenceError | None = None
    indexes = {} if _scans_exactly(scope, facts) else usable_indexes(facts.spaces)
    for space in facts.spaces:
        if vectors is not None and space.pk not in vectors:
            continue
        try:
            if vectors is not None:
                asked = vectors[space.pk]
            else:
                asked = vector if vector is not None else embed_question(space, query.text)
        except InferenceError as failed:
            error = failed
            continue
        queries.append(SpaceQuery(space.sql, asked, exact=space.pk not in indexes))
    return SpaceQueries(
        queries=tuple(queries),
        ids=frozenset(space.pk for space in facts.spaces),
        error=error,
        ef_search=_ef_search(facts.spaces, depth),
        probes=max(
            (
                space.sql.probes(indexes[space.pk].rows)
                for space in facts.spaces
                if space.pk in indexes
            ),
            default=1,
        ),
        stride=min(MAX_STRIDE, max(1, facts.chunks // SAMPLE)),
    )


def _check_vector(vector: NDArray[np.float32], facts: ScopeFacts) -> None:
    if len(facts.spaces) > 1:
        names = ", ".join(space.name for space in facts.spaces)
        raise InvalidInput(
            f"These collections hold vectors of several models ({names}), and a vector is of one:"
            " search collections of one model.",
            field="vector",
        )
    for space in facts.spaces:
        if len(vector) != space.dimensions:
            raise InvalidInput(
                f"The vector has the wrong length for space {space.name}:"
                f" expected {space.dimensions}, got {len(vector)}.",
                field="vector",
            )


def usable_indexes(spaces: Sequence[EmbeddingSpace]) -> dict[int, IndexState]:
    """Indexes that are there and whole; a space without one is scanned."""
    return {pk: state for pk, state in index_states(spaces).items() if state.valid}


def _ef_search(spaces: Sequence[EmbeddingSpace], depth: int) -> int:
    wanted: list[int] = [space.index_options.get("ef_search", 0) for space in spaces]
    return min(max(depth, MINIMUM_EF_SEARCH, *wanted), MAX_EF_SEARCH)


def _scans_exactly(scope: Scope, facts: ScopeFacts) -> bool:
    """Whether the scope is small enough to look at every vector in it."""
    limit: int = settings.EXACT_SCAN_CHUNKS
    sees_all = not scope.is_filtered and (scope.principals is None or not facts.restricted)
    is_counted = scope.versions == "current" and not facts.stale
    if is_counted and (facts.chunks <= limit or sees_all):
        return facts.chunks <= limit
    return not is_large(scope)


def is_large(scope: Scope) -> bool:
    """Whether the scope, as counted now, has more chunks than are scanned exactly."""
    limit: int = settings.EXACT_SCAN_CHUNKS
    statement = scope_size_statement(scope, at_most=limit + 1)
    with read_connection().cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        return bool(cursor.fetchone()[0] > limit)


def set_index_options(cursor: Any, *, ef_search: int, probes: int) -> None:
    """How far the indexes are walked, for the rest of the transaction."""
    cursor.execute(
        "SELECT set_config('hnsw.ef_search', %s, true),"
        " set_config('hnsw.iterative_scan', 'strict_order', true),"
        " set_config('ivfflat.probes', %s, true),"
        " set_config('ivfflat.iterative_scan', 'relaxed_order', true)",
        [str(ef_search), str(probes)],
    )

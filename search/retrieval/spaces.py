"""Which spaces a search looks in, with the query's vector for each, and how it looks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from common.bm25 import Ids
from common.errors import InvalidInput
from common.fence import unfenced
from common.postgresql.binary import fetch
from common.replicas import read_connection
from documents.embedders import embed_question
from documents.ingestion.indexes import IndexState, index_states
from documents.models import EmbeddingSpace
from inference.base import InferenceError
from search.query import Query
from search.results import Scope
from search.retrieval.facts import ScopeFacts
from search.retrieval.statement import (
    SpaceQuery,
    scope_estimate_statement,
    scope_size_statement,
    scope_statement,
)

#: An HNSW index keeps as many of the nearest in sight as the square root of the rows that it has,
#: and never fewer than these. So the ten nearest of 5,000 and of 100,000 generated vectors are
#: found to 0.99 and more (docs/decisions/0051). pgvector's default of 40 cuts every list to that.
MIN_EF_SEARCH = 64
#: Where a filter drops some of them on the way, so many times as many.
NARROWED = 2
MAX_EF_SEARCH = 1000  # pgvector's own limit
#: A filtered scope of at most so many times the square root of the chunks that it is taken from is
#: compared exactly. Walking an index past all that a filter drops takes as long as that at about
#: this size, and finds fewer: of 20,000 in a million 0.84 of the ten nearest (docs/decisions/0051).
EXACT_PER_ROOT = 25


@dataclass(frozen=True, slots=True)
class SpaceQueries:
    """The query in every space that its model works for.

    `error` is why some of the spaces that hold chunks of the scope are missing. `probes` is for
    IVFFlat indexes, `ef_search` for HNSW ones.
    """

    queries: tuple[SpaceQuery, ...] = ()
    error: InferenceError | None = None
    ef_search: int = MIN_EF_SEARCH
    probes: int = 1

    def exactly(self) -> "SpaceQueries":
        """The same, and no index is asked."""
        return replace(self, queries=tuple(replace(each, exact=True) for each in self.queries))

    def looking_at(self, *, ef_search: int | None, probes: int | None) -> "SpaceQueries":
        """The same with these numbers, where they are given."""
        return replace(self, ef_search=ef_search or self.ef_search, probes=probes or self.probes)

    @property
    def approximate(self) -> bool:
        """Whether any space is searched through its index."""
        return any(not entry.exact for entry in self.queries)

    @property
    def settings(self) -> str:
        """How far the indexes are walked, as settings of a transaction. The plans of statements
        that the server keeps are made once: what they would cost anew is half of a search."""
        settings = "SET LOCAL plan_cache_mode = force_generic_plan; "
        if self.approximate:
            settings += index_settings(ef_search=self.ef_search, probes=self.probes)
        return settings


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
    indexes = {} if _scans_exactly(scope, facts) else facts.indexes
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
        is_exact = space.pk not in indexes or _is_small_part(
            facts.chunks, of=indexes[space.pk], depth=depth
        )
        queries.append(SpaceQuery(space.sql, asked, exact=is_exact))
    return SpaceQueries(
        queries=tuple(queries),
        error=error,
        ef_search=_ef_search(
            facts, depth, times=NARROWED if is_narrowed(query, scope, facts) else 1
        ),
        probes=max(
            (space.sql.probes(indexes[space.pk]) for space in facts.spaces if space.pk in indexes),
            default=1,
        ),
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


def _ef_search(facts: ScopeFacts, depth: int, *, times: int) -> int:
    usual = max(MIN_EF_SEARCH, isqrt(_indexed(facts)))
    automatic = min(max(depth, usual * times), MAX_EF_SEARCH)
    # One setting is for the indexes of all spaces.
    return max(
        (int(space.index_options.get("ef_search") or automatic) for space in facts.spaces),
        default=automatic,
    )


def _indexed(facts: ScopeFacts) -> int:
    """Chunks in the largest of the scope's indexes, or in the scope: an index that was not analysed
    yet says that it has none."""
    return max(facts.chunks, *facts.indexes.values(), 0)


def is_narrowed(query: Query, scope: Scope, facts: ScopeFacts) -> bool:
    """Whether some chunks of the scope's collections may not be found."""
    return bool(
        scope.is_filtered
        or scope.but
        or query.phrases
        or query.excluded
        or (scope.principals is not None and facts.restricted)
    )


def _is_small_part(chunks: int, *, of: int, depth: int) -> bool:
    """Whether the scope is so small a part of its space that most of what the index gives would lie
    outside it: comparing each of its chunks is quicker.

    An index looks at `depth · of / chunks` rows for `depth` in scope, and at each for about three
    times as long.
    """
    return of > 4 * chunks and chunks * chunks < 3 * depth * of


def _scans_exactly(scope: Scope, facts: ScopeFacts) -> bool:
    """Whether the scope is small enough to look at every vector in it."""
    limit: int = settings.EXACT_SCAN_CHUNKS
    if scope.versions == "current":
        return facts.chunks <= limit
    return not is_large(scope)


def is_large(scope: Scope) -> bool:
    """Whether the scope, as counted now, has more chunks than are scanned exactly."""
    limit: int = settings.EXACT_SCAN_CHUNKS
    statement = scope_size_statement(scope, at_most=limit + 1)
    with read_connection().cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        return bool(cursor.fetchone()[0] > limit)


def index_settings(*, ef_search: int, probes: int) -> str:
    """Statements that say how far indexes of vectors are walked for the rest of a transaction."""
    return (
        f"SET LOCAL hnsw.ef_search = {int(ef_search)};"
        " SET LOCAL hnsw.iterative_scan = strict_order;"
        f" SET LOCAL ivfflat.probes = {int(probes)};"
        " SET LOCAL ivfflat.iterative_scan = relaxed_order; "
    )


def narrow_ids(
    scope: Scope, query: Query, facts: ScopeFacts, *, spaces: SpaceQueries, depth: int
) -> tuple[Ids, dict[int, Ids] | None] | None:
    """The index ids of all chunks in a scope that is compared exactly, which is one of at most
    `EXACT_SCAN_CHUNKS` or `EXACT_PER_ROOT`; None for a larger one. With them, by space, those of
    the nearest `depth`; None where these are not known yet. Reading a vector takes as long as
    finding its chunk, so both are done at once where the planner expects a narrow scope.

    Outside the fence: a policy would keep the filter from its index. It names workspace,
    collections and access itself, and gives numbers (docs/decisions/0045).
    """
    limit: int = settings.EXACT_SCAN_CHUNKS
    most = EXACT_PER_ROOT * isqrt(_indexed(facts))
    is_expected = False
    with unfenced():
        if 0 < limit < most:
            # Reading more ids than are used costs most where the scope is large.
            estimate = scope_estimate_statement(scope, query)
            plan = fetch(read_connection(), estimate.sql, estimate.parameters)[0][0]
            is_expected = plan[0]["Plan"]["Plan Rows"] <= most
            limit = most if is_expected else limit
        statement = scope_statement(
            scope,
            query,
            at_most=limit + 1,
            depth=depth,
            spaces=spaces.queries if is_expected else (),
        )
        (_, found), *near = fetch(read_connection(), statement.sql, statement.parameters)
    ids: Ids = np.zeros(0, np.int64) if found is None else found
    if len(ids) > limit:
        return None
    return ids, {pk: each for pk, each in near if each is not None} if is_expected else None

"""SQL of retrieval: scope conditions, the statements that gather and compare candidates, and the
query vector of each embedding space. Begin with `gather_statement`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
from django.conf import settings
from django.utils.translation import gettext
from numpy.typing import NDArray

from common.bm25 import Ids
from common.errors import InvalidInput
from common.replicas import read_connection
from common.rls import bypass_rls
from common.sql import bigint_array, fetch_rows, one_line
from documents import lexical_search
from documents.embedders import embed_question, scale_of
from documents.ingestion.vector_indexes import IndexState, index_states
from documents.languages import configuration
from documents.models import EmbeddingSpace
from documents.spaces import (
    BINARY_OVERSAMPLING,
    HNSW_DEFAULTS,
    MIN_BINARY_CANDIDATES,
    SpaceSql,
    similarity_by_space,
)
from inference.interfaces import InferenceError
from search.filters import compile_filter
from search.query import Query
from search.results import Scope
from search.retrieval.scope_facts import STATE_CTE, ScopeFacts

Parameters = dict[str, Any]


def scope_conditions(scope: Scope, query: Query | None = None) -> tuple[str, Parameters]:
    """Conditions on `documents_chunk AS chunk`, with their parameters.

    Workspace and access come first; the filter is in parentheses of its own. Phrases and
    exclusions of the query are conditions too, since they hold for every arm.
    """
    conditions = [
        "chunk.workspace_id = %(workspace)s",
        "chunk.collection_id = ANY(%(collections)s::bigint[])",
    ]
    if scope.versions == "current":
        conditions.append("chunk.is_current")
    parameters: Parameters = {
        "workspace": scope.workspace_id,
        "collections": list(scope.collection_ids),
    }
    if scope.principals is not None:
        conditions.append("(chunk.access IS NULL OR chunk.access && %(principals)s::varchar[])")
        parameters["principals"] = list(scope.principals)
    if scope.excluded_document_ids:
        conditions.append("chunk.document_id <> ALL(%(but)s::bigint[])")
        parameters["but"] = list(scope.excluded_document_ids)
    if scope.is_filtered:
        condition, values = compile_filter(scope.filter, configuration=configuration)
        conditions.append(f"({condition})")
        parameters |= values
    for number, phrase in enumerate(query.phrases if query else ()):
        conditions.append(
            f"chunk.search_vector @@ ragsite_phrase(chunk.language, %(phrase_{number})s)"
        )
        parameters[f"phrase_{number}"] = phrase
    for number, words in enumerate(query.excluded if query else ()):
        conditions.append(
            f"NOT chunk.search_vector @@ ragsite_phrase(chunk.language, %(excluded_{number})s)"
        )
        parameters[f"excluded_{number}"] = words
    return " AND ".join(conditions), parameters


_STATE = one_line(STATE_CTE)
SQL_DIRECTORY = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True)
class SpaceQuery:
    """The query's vector in one space, and whether that space is scanned exactly. `unrelated` is
    the similarity that its model gives to texts that have nothing in common. `collections` are the
    only ones whose vectors count; None: all."""

    space: SpaceSql
    vector: NDArray[np.float32]
    exact: bool
    unrelated: float = 0.0
    collections: tuple[int, ...] | None = None

    @property
    def condition(self) -> str:
        """What chunks must fulfil so that their vectors count."""
        if self.collections is None:
            return "TRUE"
        return f"chunk.collection_id = ANY('{{{','.join(map(str, self.collections))}}}'::bigint[])"


@cache
def load_sql(name: str) -> str:
    """Text of `sql/<name>.sql`, read once."""
    return (SQL_DIRECTORY / f"{name}.sql").read_text()


def gather_statement(
    query: Query,
    *,
    scope: Scope,
    depth: int,
    lexical: bool,
    spaces: Sequence[SpaceQuery],
    within: Sequence[int] | None = None,
) -> tuple[str, Parameters]:
    """The statement that lists candidates of both arms, in one snapshot.

    Rows have the columns of `lexical_search.COLUMNS`. Kind `near`: space id as `a`, index ids
    of its best `depth` chunks as `ids`, nearest first; `state`: restricted (`flag`),
    version (`name`), content (`lexeme`), chunk counts (`ids`); and those of the lexical index.
    `within`: index ids of a small scope.
    """
    conditions, parameters = scope_conditions(scope, query)
    if within is not None:
        conditions = "chunk.index_id = ANY(%(within)s::bigint[])"
        parameters["within"] = bigint_array(within)
    ctes = [_STATE]
    rows = [
        "SELECT 'state' AS kind, NULL::int AS number, NULL::bigint AS a, NULL::bigint AS b,"
        " NULL::bigint AS c, is_restricted AS flag, version AS name, content AS lexeme,"
        " NULL::bytea AS data, chunks AS ids FROM state"
    ]
    if lexical:
        lexical_ctes, lexical_rows = lexical_search.statement_parts(prefixes=bool(query.prefixes))
        ctes.append(lexical_ctes)
        rows += lexical_rows
        parameters |= lexical_search.statement_parameters(
            collections=scope.collection_ids,
            text=query.text,
            prefixes=query.prefixes,
            superseded=scope.versions == "all",
        )
    for entry in spaces:
        parameters[entry.space.parameter] = entry.vector
        rows.append(
            f"SELECT 'near', NULL, {entry.space.space_id}, NULL, NULL, NULL, NULL, NULL, NULL,"  # noqa: S608 - fixed pieces, values are parameters
            f" array_agg(index_id) FROM ({_nearest_sql(entry, conditions, depth)}) AS near"
        )
    sql = f"WITH {', '.join(ctes)}\n" + "\nUNION ALL\n".join(rows)
    return sql, parameters


def _nearest_sql(entry: SpaceQuery, conditions: str, depth: int) -> str:
    """Exact: `+ 0` gives an order that no index has, so the planner scans the scope.

    Approximate: expression and predicate must equal the index's. A binary index only yields
    candidates, ranked by the full vectors. The limit is a literal, since a generic plan would
    assume a tenth of all rows.
    """
    query, space = f"%({entry.space.parameter})s", entry.space
    chunks = (
        f"FROM documents_chunk AS chunk WHERE {space.predicate}"
        f" AND chunk.embedding IS NOT NULL AND {entry.condition} AND {conditions}"
    )
    exactly = f"ORDER BY ({space.distance(query)}) + 0, index_id LIMIT {int(depth)}"
    if entry.exact:
        return f"SELECT chunk.index_id {chunks} {exactly}"
    roughly = f"ORDER BY {space.indexed_distance(query)} LIMIT"
    if space.precision != "binary":
        return f"SELECT chunk.index_id {chunks} {roughly} {int(depth)}"
    oversampled = max(depth * BINARY_OVERSAMPLING, MIN_BINARY_CANDIDATES)
    candidates = f"SELECT chunk.index_id, embedding {chunks} {roughly} {int(oversampled)}"
    return f"SELECT index_id FROM ({candidates}) AS candidate {exactly}"  # noqa: S608 - fixed pieces, values are parameters


def compare_statement(
    query: Query,
    *,
    scope: Scope,
    spaces: Sequence[SpaceQuery],
    candidates: Sequence[int],
    best: Sequence[int],
    are_within: bool = False,
    by: Literal["id", "index_id"] = "index_id",
) -> tuple[str, Parameters]:
    """Data of the candidates in scope, as one row of arrays. `by` says which ids they are;
    `are_within`: all are in scope.

    `best` are index ids of the best lexical match and the nearest of each space. Arrays: chunk
    id, index id, space, document, collection, media type, parent (-1: none), similarity to the
    query, similarity to the mean direction of `best` (NaN: none).

    OFFSET 0: each id is looked up, whatever the planner believes. With a join it reads the whole
    collection once an id where it takes that for empty, and plans of prepared statements last.
    """
    conditions, parameters = scope_conditions(scope, query)
    if are_within:
        conditions = "chunk.workspace_id = %(workspace)s"
    parameters["candidates"] = bigint_array(candidates)
    for entry in spaces:
        parameters[entry.space.parameter] = entry.vector
    similarity = similarity_by_space("chunk", [entry.space for entry in spaces])
    counts = spaces[0].condition if spaces else "TRUE"
    similarity = f"CASE WHEN {counts} THEN {similarity} END"
    ctes, likeness, beside = "", "NULL::float8", ""
    if best:
        parameters["best"] = bigint_array(best)
        ctes = f"""
        WITH best AS MATERIALIZED (
            SELECT space_id, sum(l2_normalize(embedding)) AS vector
            FROM (SELECT * FROM documents_chunk
                  WHERE index_id = ANY(%(best)s::bigint[]) OFFSET 0) AS chunk
            WHERE embedding IS NOT NULL AND {conditions}
            GROUP BY space_id
        )"""  # noqa: S608 - fixed pieces, values are parameters
        likeness = f"CASE WHEN {counts} THEN 1 - (embedding <=> best.vector) END"
        beside = "LEFT JOIN best ON best.space_id = chunk.space_id"
    sql = f"""{ctes}
        SELECT array_agg(id), array_agg(index_id), array_agg(space_id), array_agg(document_id),
               array_agg(collection_id), array_agg(media_type), array_agg(parent),
               array_agg(similarity), array_agg(likeness)
        FROM (
            SELECT chunk.id, chunk.index_id, chunk.space_id, document_id, collection_id,
                   media_type::text, coalesce(parent, -1)::bigint AS parent,
                   coalesce({similarity}, 'NaN') AS similarity,
                   coalesce({likeness}, 'NaN') AS likeness
            FROM unnest(%(candidates)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
            CROSS JOIN LATERAL (
                SELECT * FROM documents_chunk WHERE {by} = wanted.id OFFSET 0
            ) AS chunk
            {beside}
            WHERE {conditions}
            ORDER BY wanted.place
        ) AS ordered
    """  # noqa: S608 - fixed pieces, values are parameters
    return sql, parameters


def has_plain_conditions(scope: Scope, query: Query) -> bool:
    """Whether the scope has only the usual conditions, so that the statement can be prepared."""
    return not (scope.is_filtered or query.phrases or query.excluded)


def in_scope_statement(
    query: Query, *, scope: Scope, index_ids: Sequence[int]
) -> tuple[str, Parameters]:
    """The statement that keeps the index ids in scope, in their order."""
    conditions, parameters = scope_conditions(scope, query)
    parameters["candidates"] = bigint_array(index_ids)
    sql = (
        "SELECT array_agg(chunk.index_id ORDER BY wanted.place)"  # noqa: S608 - fixed pieces, values are parameters
        " FROM unnest(%(candidates)s::bigint[]) WITH ORDINALITY AS wanted (index_id, place)"
        " CROSS JOIN LATERAL (SELECT * FROM documents_chunk"
        " WHERE index_id = wanted.index_id OFFSET 0) AS chunk"
        f" WHERE {conditions}"
    )
    return sql, parameters


def scope_statement(
    scope: Scope, query: Query, *, at_most: int, depth: int, spaces: Sequence[SpaceQuery] = ()
) -> tuple[str, Parameters]:
    """Index ids of the scope's chunks, at most `at_most`."""
    conditions, parameters = scope_conditions(scope, query)
    parameters["at_most"] = at_most
    distances = ""
    nearest = []
    for entry in spaces:
        space = entry.space
        parameters[space.parameter] = entry.vector
        distances += f" WHEN {space.space_id} THEN {space.distance(f'%({space.parameter})s')}"
        nearest.append(
            f" UNION ALL SELECT {space.space_id}, array_agg(index_id) FROM (SELECT index_id"  # noqa: S608 - fixed pieces, values are parameters
            f" FROM counted WHERE {space.predicate} AND distance IS NOT NULL"
            f" ORDER BY distance, index_id LIMIT {int(depth)}) AS near"
        )
    distance = "NULL"
    if spaces:
        distance = f"CASE WHEN {spaces[0].condition} THEN CASE chunk.space_id{distances} END END"
    sql = (
        f"WITH counted AS MATERIALIZED (SELECT chunk.index_id, chunk.space_id, {distance}"  # noqa: S608 - fixed pieces, values are parameters
        f" AS distance FROM documents_chunk AS chunk WHERE {conditions} LIMIT %(at_most)s)"
        f" SELECT NULL::bigint, array_agg(index_id) FROM counted{''.join(nearest)}"
    )
    return sql, parameters


def scope_size_statement(scope: Scope, *, at_most: int) -> tuple[str, Parameters]:
    """Number of chunks in the scope, counted up to `at_most`."""
    conditions, parameters = scope_conditions(scope)
    parameters["at_most"] = at_most
    sql = (
        f"SELECT count(*) FROM (SELECT FROM documents_chunk AS chunk WHERE {conditions}"  # noqa: S608 - fixed pieces, values are parameters
        " LIMIT %(at_most)s) AS counted"
    )
    return sql, parameters


#: A search of an HNSW index with 16 links keeps as many candidates as the square root of its rows,
#: and never fewer than these; with 32 links a quarter is enough. So the ten nearest of 5,000 and of
#: 100,000 generated vectors are found to 0.99 and more (docs/decisions/0051). pgvector's default
#: of 40 cuts every list to that.
MIN_EF_SEARCH = 64
#: Factor of `ef_search` where a filter drops some of the candidates.
FILTER_FACTOR = 2
MAX_EF_SEARCH = 1000  # pgvector's own limit
#: A filtered scope of at most so many times the square root of the chunks that it is taken from is
#: compared exactly. Walking an index past all that a filter drops takes as long as that at about
#: this size, and finds fewer: of 20,000 in a million 0.84 of the ten nearest (docs/decisions/0051).
EXACT_SCAN_FACTOR = 25


@dataclass(frozen=True, slots=True)
class SpaceQueries:
    """The query vector in every space whose model works.

    `error`: why some spaces are missing. `probes` is for IVFFlat indexes, `ef_search` for HNSW.
    """

    queries: tuple[SpaceQuery, ...] = ()
    error: InferenceError | None = None
    ef_search: int = MIN_EF_SEARCH
    probes: int = 1

    def with_exact_scan(self) -> "SpaceQueries":
        """A copy that scans all spaces exactly."""
        return replace(self, queries=tuple(replace(each, exact=True) for each in self.queries))

    @property
    def approximate(self) -> bool:
        """Whether any space is searched through its index."""
        return any(not entry.exact for entry in self.queries)

    @property
    def settings(self) -> str:
        """Transaction settings: index options, and generic plans for prepared statements, since
        planning would take half of a search. They last, so none may read a table as a whole because
        it was small when the plan was made, or be compiled because its cost is overestimated.
        """
        settings = (
            "SET LOCAL plan_cache_mode = force_generic_plan;"
            " SET LOCAL enable_seqscan = off; SET LOCAL jit = off; "
        )
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
    ef_search: int | None = None,
    probes: int | None = None,
) -> SpaceQueries:
    """The query in every space of the scope: embedded, or the given `vector`. With `vectors` by
    space id, only in those. `ef_search` and `probes` override those of the spaces.

    Raises InvalidInput for a vector of wrong length, or where the scope has several models.
    """
    if vector is not None:
        _check_vector(vector, facts)
    queries: list[SpaceQuery] = []
    embedded = facts.embedded
    collections = None if len(embedded) == len(facts.collections) else embedded
    error: InferenceError | None = None
    # A small scope is scanned exactly.
    if scope.versions == "current":
        is_small = facts.chunks <= settings.EXACT_SCAN_CHUNKS
    else:
        is_small = not is_large(scope)
    indexes = {} if is_small else facts.indexes
    for space in facts.spaces:
        if vectors is not None and space.pk not in vectors:
            continue
        unrelated = 0.0
        try:
            if vectors is not None:
                asked = vectors[space.pk]
            elif vector is not None:
                asked = vector
            else:
                asked = embed_question(space, query.text)
                # Its model is asked for it once, and answers just now.
                unrelated = scale.unrelated if (scale := scale_of(space)) else 0.0
        except InferenceError as failed:
            error = failed
            continue
        # So is a part of a space so small that its index is slower: for `depth` in scope it visits
        # `depth · of / chunks` rows, each for about three times as long.
        of = indexes.get(space.pk)
        is_exact = of is None or (of > 4 * facts.chunks and facts.chunks**2 < 3 * depth * of)
        queries.append(
            SpaceQuery(
                space.sql, asked, exact=is_exact, unrelated=unrelated, collections=collections
            )
        )
    links = min((space.sql.links for space in facts.spaces), default=HNSW_DEFAULTS["m"])
    usual = round(isqrt(_largest_index(facts)) * (HNSW_DEFAULTS["m"] / links) ** 2)
    usual = max(MIN_EF_SEARCH, usual)
    usual *= FILTER_FACTOR if is_narrowed(query, scope, facts) else 1
    automatic = min(max(depth, usual), MAX_EF_SEARCH)
    # One setting is for the indexes of all spaces.
    own = [int(space.index_options.get("ef_search") or automatic) for space in facts.spaces]
    of_spaces = [
        space.sql.probes(indexes[space.pk]) for space in facts.spaces if space.pk in indexes
    ]
    return SpaceQueries(
        queries=tuple(queries),
        error=error,
        ef_search=ef_search or max(own, default=automatic),
        probes=probes or max(of_spaces, default=1),
    )


def _check_vector(vector: NDArray[np.float32], facts: ScopeFacts) -> None:
    if len(facts.spaces) > 1:
        names = ", ".join(space.name for space in facts.spaces)
        raise InvalidInput(
            gettext(
                "These collections use different models ({names}), but a vector belongs"
                " to one. Search collections that use the same model."
            ).format(names=names),
            field="vector",
        )
    for space in facts.spaces:
        if len(vector) != space.dimensions:
            raise InvalidInput(
                gettext(
                    "The vector has {count} dimensions; those of {model} have"
                    " {dimensions}. Use vectors of this model."
                ).format(count=len(vector), model=space.name, dimensions=space.dimensions),
                field="vector",
            )


def usable_indexes(spaces: Sequence[EmbeddingSpace]) -> dict[int, IndexState]:
    """Valid vector indexes by space id; spaces without one are scanned."""
    return {pk: state for pk, state in index_states(spaces).items() if state.valid}


def _largest_index(facts: ScopeFacts) -> int:
    """Chunks in the largest index of the scope, or in the scope: an index not analysed
    yet reports none.
    """
    return max(facts.chunks, *facts.indexes.values(), 0)


def is_narrowed(query: Query, scope: Scope, facts: ScopeFacts) -> bool:
    """Whether some chunks of the collections may be excluded."""
    return bool(
        scope.is_filtered
        or scope.excluded_document_ids
        or query.phrases
        or query.excluded
        or (scope.principals is not None and facts.state.restricted)
    )


def is_large(scope: Scope) -> bool:
    """Whether the scope, counted now, has more chunks than are scanned exactly."""
    limit: int = settings.EXACT_SCAN_CHUNKS
    with read_connection().cursor() as cursor:
        cursor.execute(*scope_size_statement(scope, at_most=limit + 1))
        return bool(cursor.fetchone()[0] > limit)


def index_settings(*, ef_search: int, probes: int) -> str:
    """SET LOCAL statements for the search effort of vector indexes."""
    return (
        f"SET LOCAL hnsw.ef_search = {int(ef_search)};"
        " SET LOCAL hnsw.iterative_scan = strict_order;"
        f" SET LOCAL ivfflat.probes = {int(probes)};"
        " SET LOCAL ivfflat.iterative_scan = relaxed_order; "
    )


def exact_scan_ids(
    scope: Scope, query: Query, facts: ScopeFacts, *, spaces: SpaceQueries, depth: int
) -> tuple[Ids, dict[int, Ids] | None] | None:
    """Index ids of all chunks of a scope that is scanned exactly (at most `EXACT_SCAN_CHUNKS` or
    `EXACT_SCAN_FACTOR` times the square root of its index); None for a larger one.

    Runs without row-level security, whose policy would prevent index use: it names workspace,
    collections and access itself and returns numbers only (docs/decisions/0045).
    """
    limit: int = settings.EXACT_SCAN_CHUNKS
    most = EXACT_SCAN_FACTOR * isqrt(_largest_index(facts))
    is_expected = False
    with bypass_rls():
        if 0 < limit < most:
            # Reading more ids than are used costs most where the scope is large.
            conditions, parameters = scope_conditions(scope, query)
            estimate = (
                f"EXPLAIN (FORMAT JSON) SELECT FROM documents_chunk AS chunk WHERE {conditions}"
            )
            plan = fetch_rows(read_connection(), estimate, parameters)[0][0]
            is_expected = plan[0]["Plan"]["Plan Rows"] <= most
            limit = most if is_expected else limit
        statement = scope_statement(
            scope,
            query,
            at_most=limit + 1,
            depth=depth,
            spaces=spaces.queries if is_expected else (),
        )
        (_, found), *near = fetch_rows(read_connection(), *statement)
    ids: Ids = np.zeros(0, np.int64) if found is None else found
    if len(ids) > limit:
        return None
    return ids, {pk: each for pk, each in near if each is not None} if is_expected else None

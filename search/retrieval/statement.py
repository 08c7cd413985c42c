"""The statements of a search: one gathers what both arms need, one compares candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from common.postgresql.binary import array, one_line
from documents import lexical_search
from documents.spaces import BINARY_CANDIDATES, BINARY_OVERSAMPLING, SpaceSql, similarity_by_space
from search.query import Query
from search.results import Scope
from search.retrieval.facts import STATE
from search.retrieval.scope import Parameters, scope_conditions

_STATE = one_line(STATE)
SQL_DIRECTORY = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True)
class SpaceQuery:
    """The query's vector in one space, and whether that space is scanned exactly."""

    space: SpaceSql
    vector: NDArray[np.float32]
    exact: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL and its parameters. `prepare`: its text comes again with other questions."""

    sql: str
    parameters: Parameters
    prepare: bool = False


@cache
def load_sql(name: str) -> str:
    """The text of `sql/name.sql`."""
    return (SQL_DIRECTORY / f"{name}.sql").read_text()


def gather_statement(
    query: Query,
    *,
    scope: Scope,
    depth: int,
    lexical: bool,
    spaces: Sequence[SpaceQuery],
    settled: bool = False,
    within: Sequence[int] | None = None,
) -> Statement:
    """What the arms of a search start from, in one snapshot.

    Rows have the columns of `lexical_search.COLUMNS`. Of kind `near`: a space's id as `a`, and as
    `ids` the index ids of its best `depth` chunks, nearest first; `state`: that of the scope's
    facts, as settled (`number`), restricted (`flag`), version (`name`), content (`lexeme`) and
    number of chunks of each collection (`ids`); and those of the lexical index, which looks for
    nothing pending or removed where it is `settled`. `within` are the index ids of a narrow scope.
    """
    conditions, parameters = scope_conditions(scope, query)
    if within is not None:
        conditions = "chunk.index_id = ANY(%(within)s::bigint[])"
        parameters["within"] = array(within)
    ctes = [_STATE]
    rows = [
        "SELECT 'state' AS kind, is_settled::int AS number, NULL::bigint AS a, NULL::bigint AS b,"
        " NULL::bigint AS c, is_restricted AS flag, version AS name, content AS lexeme,"
        " NULL::bytea AS data, chunks AS ids FROM state"
    ]
    if lexical:
        lexical_ctes, lexical_rows = lexical_search.statement_parts(
            prefixes=bool(query.prefixes), settled=settled
        )
        ctes.append(lexical_ctes)
        rows += lexical_rows
        parameters |= lexical_search.parameters(
            collections=scope.collection_ids,
            text=query.text,
            prefixes=query.prefixes,
            superseded=scope.versions == "all",
        )
    for entry in spaces:
        parameters[entry.space.parameter] = entry.vector
        rows.append(
            f"SELECT 'near', NULL, {entry.space.space_id}, NULL, NULL, NULL, NULL, NULL, NULL,"
            f" array_agg(index_id) FROM ({_nearest(entry, conditions, depth)}) AS near"
        )
    sql = f"WITH {', '.join(ctes)}\n" + "\nUNION ALL\n".join(rows)
    return Statement(sql, parameters, prepare=within is not None or is_plain(scope, query))


def _nearest(entry: SpaceQuery, conditions: str, depth: int) -> str:
    """Exact: `+ 0` makes the order one that no index can give, so the planner scans the scope.

    Approximate: the expression and the predicate must be the index's to the letter. An index of
    bits is too coarse to rank by: it gives candidates, and the whole vectors decide. The limit is
    written in, or a kept plan would be one for a tenth of all rows.
    """
    query, space = f"%({entry.space.parameter})s", entry.space
    chunks = (
        f"FROM documents_chunk AS chunk WHERE {space.predicate}"
        f" AND chunk.embedding IS NOT NULL AND {conditions}"
    )
    exactly = f"ORDER BY ({space.distance(query)}) + 0, index_id LIMIT {int(depth)}"
    if entry.exact:
        return f"SELECT chunk.index_id {chunks} {exactly}"
    roughly = f"ORDER BY {space.indexed_distance(query)} LIMIT"
    if space.precision != "binary":
        return f"SELECT chunk.index_id {chunks} {roughly} {int(depth)}"
    oversampled = max(depth * BINARY_OVERSAMPLING, BINARY_CANDIDATES)
    candidates = f"SELECT chunk.index_id, embedding {chunks} {roughly} {int(oversampled)}"
    return f"SELECT index_id FROM ({candidates}) AS candidate {exactly}"


def compare_statement(
    query: Query,
    *,
    scope: Scope,
    spaces: Sequence[SpaceQuery],
    candidates: Sequence[int],
    best: Sequence[int],
    are_within: bool = False,
    by: Literal["id", "index_id"] = "index_id",
) -> Statement:
    """What there is to say of the candidates that are in scope, as they are known to be where they
    `are_within` the ids of a narrow one, in one row of arrays. `by` tells which ids they are.

    `best` are the index ids of the best by words and of the nearest of each space, where both arms
    run. The arrays: chunk id, index id, space, document, collection, media type, parent (-1: none),
    similarity to the question, similarity to the direction between the best of both arms (NaN:
    none).
    """
    conditions, parameters = scope_conditions(scope, query)
    if are_within:
        conditions = "chunk.workspace_id = %(workspace)s"
    parameters["candidates"] = array(candidates)
    for entry in spaces:
        parameters[entry.space.parameter] = entry.vector
    similarity = similarity_by_space("chunk", [entry.space for entry in spaces])
    ctes, likeness, beside = "", "NULL::float8", ""
    if best:
        parameters["best"] = array(best)
        ctes = f"""
        WITH best AS MATERIALIZED (
            SELECT space_id, sum(l2_normalize(embedding)) AS vector
            FROM documents_chunk AS chunk
            WHERE index_id = ANY(%(best)s::bigint[]) AND embedding IS NOT NULL AND {conditions}
            GROUP BY space_id
        )"""
        likeness = "1 - (embedding <=> best.vector)"
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
            JOIN documents_chunk AS chunk ON chunk.{by} = wanted.id
            {beside}
            WHERE {conditions}
            ORDER BY wanted.place
        ) AS ordered
    """
    return Statement(sql, parameters, prepare=are_within or is_plain(scope, query))


def is_plain(scope: Scope, query: Query) -> bool:
    """Whether the conditions are those of any search, whose parameters' types are known."""
    return not (scope.is_filtered or query.phrases or query.excluded)


def in_scope_statement(query: Query, *, scope: Scope, index_ids: Sequence[int]) -> Statement:
    """Those of the index ids that are in scope, in their order."""
    conditions, parameters = scope_conditions(scope, query)
    parameters["candidates"] = array(index_ids)
    sql = (
        "SELECT array_agg(chunk.index_id ORDER BY wanted.place)"
        " FROM unnest(%(candidates)s::bigint[]) WITH ORDINALITY AS wanted (index_id, place)"
        " JOIN documents_chunk AS chunk ON chunk.index_id = wanted.index_id"
        f" WHERE {conditions}"
    )
    return Statement(sql, parameters)


def scope_estimate_statement(scope: Scope, query: Query) -> Statement:
    """The planner's estimate of how many chunks a scope has: `[{"Plan": {"Plan Rows": …}}]`."""
    conditions, parameters = scope_conditions(scope, query)
    sql = f"EXPLAIN (FORMAT JSON) SELECT FROM documents_chunk AS chunk WHERE {conditions}"
    return Statement(sql, parameters)


def scope_statement(
    scope: Scope, query: Query, *, at_most: int, depth: int, spaces: Sequence[SpaceQuery] = ()
) -> Statement:
    """The index ids of the scope's chunks, up to `at_most` of them, in a row without a space; and
    in one for each of the `spaces` those of the nearest `depth` of these, nearest first."""
    conditions, parameters = scope_conditions(scope, query)
    parameters["at_most"] = at_most
    distances = ""
    nearest = []
    for entry in spaces:
        space = entry.space
        parameters[space.parameter] = entry.vector
        distances += f" WHEN {space.space_id} THEN {space.distance(f'%({space.parameter})s')}"
        nearest.append(
            f" UNION ALL SELECT {space.space_id}, array_agg(index_id) FROM (SELECT index_id"
            f" FROM counted WHERE {space.predicate} AND distance IS NOT NULL"
            f" ORDER BY distance, index_id LIMIT {int(depth)}) AS near"
        )
    distance = f"CASE chunk.space_id{distances} END" if spaces else "NULL"
    sql = (
        f"WITH counted AS MATERIALIZED (SELECT chunk.index_id, chunk.space_id, {distance}"
        f" AS distance FROM documents_chunk AS chunk WHERE {conditions} LIMIT %(at_most)s)"
        f" SELECT NULL::bigint, array_agg(index_id) FROM counted{''.join(nearest)}"
    )
    return Statement(sql, parameters)


def scope_size_statement(scope: Scope, *, at_most: int) -> Statement:
    """How many chunks the scope has, counted up to `at_most`."""
    conditions, parameters = scope_conditions(scope)
    parameters["at_most"] = at_most
    sql = (
        f"SELECT count(*) FROM (SELECT FROM documents_chunk AS chunk WHERE {conditions}"
        " LIMIT %(at_most)s) AS counted"
    )
    return Statement(sql, parameters)

"""One statement for all arms of a query, put together from named pieces of SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from documents.spaces import BINARY_CANDIDATES, BINARY_OVERSAMPLING, SpaceSql, similarity_by_space
from search.query import Query
from search.results import Scope
from search.retrieval.scope import Parameters, scope_conditions

SQL_DIRECTORY = Path(__file__).parent / "sql"

#: Robertson and Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond” (2009).
K1 = 1.2
B = 0.75
#: A word of the title or a heading counts this often more. Of 0 and 1, 1 was never worse.
HEADING_BOOST = 1.0
#: Where the rarest lexemes stand in fewer chunks than this, common ones are looked up as well.
LEXEME_BUDGET = 300
#: So many chunks tell how similar just any chunk is.
SAMPLE = 200
#: So many chunks are scored, once for rare and once for common lexemes: what a question costs does
#: not grow with the corpus. The figures are in docs/decisions/0019.
MAX_CANDIDATES = 2000


#: How many columns of a row speak of a chunk.
FOUND_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class SpaceQuery:
    """The query's vector in one space, and whether that space is scanned exactly."""

    space: SpaceSql
    vector: NDArray[np.float32]
    exact: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL and its parameters.

    Rows: (chunk id, lexical score, similarity, likeness to the best of both arms, in the vector
    list, the chunk's space, document, collection, media type and parent). One row more has NULL
    for these, and behind them (spaces that hold chunks of the scope, usual similarity in each space
    asked, whether words were left out, whether some stand nowhere).
    """

    sql: str
    parameters: Parameters


@cache
def piece(name: str) -> str:
    """The text of `sql/name.sql`."""
    return (SQL_DIRECTORY / f"{name}.sql").read_text()


def build_statement(
    query: Query,
    *,
    scope: Scope,
    depth: int,
    lexical: bool,
    spaces: Sequence[SpaceQuery],
    stride: int = 1,
    any_word: bool = False,
) -> Statement:
    """The arms that are wanted, each listing its best `depth` chunks.

    With both arms every listed chunk gets both scores, whichever arm listed it: everything is in
    one database, so nothing need be guessed for the arm that did not. Every `stride`th chunk is
    looked at for the usual similarity. `any_word` looks up chunks that have nothing but one of the
    common words, too.
    """
    conditions, parameters = scope_conditions(scope, query)
    parameters["depth"] = depth
    parameters["oversampled"] = max(depth * BINARY_OVERSAMPLING, BINARY_CANDIDATES)
    steps: list[str] = []
    if spaces:
        steps.append(_nearest(spaces, conditions, parameters))
    if lexical:
        parameters |= {**_lexical_parameters(query), "any": any_word}
        steps += [piece("terms"), piece("lexical_candidates").format(scope=conditions)]
        steps.append(piece("also_nearest") if spaces else "candidate AS (SELECT * FROM found)")
        steps.append(piece("bm25"))
    steps += [_listed(lexical=lexical, vector=bool(spaces)), piece("spaces")]
    if lexical and spaces:
        steps.append(piece("best").format(nearest=_nearest_of_all(spaces)))
    steps.append(_background(spaces, conditions, stride))
    sql = "WITH\n" + ",\n".join(steps) + "\n" + _selection(lexical=lexical, spaces=spaces)
    return Statement(sql, parameters)


def _lexical_parameters(query: Query) -> Parameters:
    return {
        "text": query.text,
        "prefixes": list(query.prefixes),
        "budget": LEXEME_BUDGET,
        "candidates": MAX_CANDIDATES,
        "k1": K1,
        "b": B,
        "heading_boost": HEADING_BOOST,
    }


def _nearest(spaces: Sequence[SpaceQuery], conditions: str, parameters: Parameters) -> str:
    arms = []
    for entry in spaces:
        name = entry.space.parameter
        parameters[name] = entry.vector
        arms.append(_nearest_in_space(entry, conditions, name))
    return "nearest AS MATERIALIZED (\n" + "\nUNION ALL\n".join(arms) + "\n)"


def _nearest_in_space(entry: SpaceQuery, conditions: str, name: str) -> str:
    """Exact: `+ 0` makes the order one that no index can give, so the planner scans the scope.

    Approximate: the expression and the predicate must be the index's to the letter. An index of
    bits is too coarse to rank by: it gives candidates, and the whole vectors decide.
    """
    query, space = f"%({name})s", entry.space
    chunks = (
        f"FROM documents_chunk AS chunk WHERE {space.predicate}"
        f" AND chunk.embedding IS NOT NULL AND {conditions}"
    )
    exactly = f"ORDER BY ({space.distance(query)}) + 0, id LIMIT %(depth)s"
    if entry.exact:
        return f"(SELECT chunk.id {chunks} {exactly})"
    roughly = f"ORDER BY {space.indexed_distance(query)} LIMIT"
    if space.precision != "binary":
        return f"(SELECT chunk.id {chunks} {roughly} %(depth)s)"
    candidates = f"SELECT chunk.id, embedding {chunks} {roughly} %(oversampled)s"
    return f"(SELECT id FROM ({candidates}) AS candidate {exactly})"


def _nearest_of_all(spaces: Sequence[SpaceQuery]) -> str:
    """The one nearest chunk of each space."""
    return " UNION ".join(
        "(SELECT id FROM nearest JOIN documents_chunk AS chunk USING (id)"
        f" WHERE {entry.space.predicate}"
        f" ORDER BY {entry.space.distance(f'%({entry.space.parameter})s')}, id LIMIT 1)"
        for entry in spaces
    )


def _listed(*, lexical: bool, vector: bool) -> str:
    lists = []
    if lexical:
        lists.append("(SELECT id FROM bm25 ORDER BY score DESC, id LIMIT %(depth)s)")
    if vector:
        lists.append("SELECT id FROM nearest")
    if not lists:  # by vectors, of collections that there are none of
        lists.append("SELECT NULL::bigint AS id WHERE false")
    return "listed AS (" + " UNION ".join(lists) + ")"


def _selection(*, lexical: bool, spaces: Sequence[SpaceQuery]) -> str:
    score = "bm25.score" if lexical else "NULL::float8"
    near = "nearest.id IS NOT NULL" if spaces else "false"
    left_out = "EXISTS (SELECT FROM other)" if lexical else "false"
    # In no language every word is known.
    strange = (
        "(SELECT bool_and(unknown) FROM (SELECT bool_or(chunk_count = 0) AS unknown FROM term"
        " GROUP BY language) AS strange)"
    )
    joins = "JOIN documents_chunk AS chunk USING (id)"
    joins += " LEFT JOIN bm25 USING (id)" if lexical else ""
    joins += " LEFT JOIN nearest USING (id)" if spaces else ""
    likeness = "NULL::float8"
    if lexical and spaces:
        joins += " LEFT JOIN best ON best.space_id = chunk.space_id"
        likeness = "1 - (chunk.embedding <=> best.vector)"
    similarity = similarity_by_space("chunk", [entry.space for entry in spaces])
    found = (
        f"SELECT listed.id, {score} AS lexical, {similarity} AS similarity,"
        f" {likeness} AS likeness, {near} AS near, chunk.space_id, chunk.document_id,"
        f" chunk.collection_id, chunk.media_type, chunk.parent FROM listed {joins}"
    )
    # What holds for the whole search stands in one row and not in hundreds.
    return (
        f"SELECT {', '.join(['NULL'] * FOUND_COLUMNS)}, spaces.ids, background.levels,"
        f" {left_out} AS left_out, {strange if lexical else 'false'} AS strange"
        " FROM spaces CROSS JOIN background"
        f" UNION ALL SELECT found.*, NULL, NULL, NULL, NULL FROM ({found}) AS found"
    )


def _background(spaces: Sequence[SpaceQuery], conditions: str, stride: int) -> str:
    """How similar the query is to just any chunks of the scope, in each space."""
    samples = ", ".join(
        f"(SELECT avg(similarity) FROM (SELECT"
        f" {entry.space.similarity(f'%({entry.space.parameter})s')} AS similarity"
        f" FROM documents_chunk AS chunk WHERE {entry.space.predicate}"
        f" AND chunk.embedding IS NOT NULL AND chunk.id %% {int(stride)} = 0 AND {conditions}"
        f" LIMIT {SAMPLE}) AS sample)"
        for entry in spaces
    )
    return f"background AS (SELECT ARRAY[{samples}]::float8[] AS levels)"


def addition_statement(
    query: Query,
    *,
    scope: Scope,
    spaces: Sequence[SpaceQuery],
    chunk_ids: Sequence[int],
    best_ids: Sequence[int],
) -> Statement:
    """What both arms say of chunks that neither listed: rows as `build_statement`'s, of those of
    `chunk_ids` that are in scope. `best_ids` are the best of both arms."""
    conditions, parameters = scope_conditions(scope, query)
    parameters |= {**_lexical_parameters(query), "any": False}
    parameters |= {"added": list(chunk_ids), "best": list(best_ids)}
    for entry in spaces:
        parameters[entry.space.parameter] = entry.vector
    similarity = similarity_by_space("chunk", [entry.space for entry in spaces])
    steps = (piece("terms"), piece("added").format(scope=conditions), piece("bm25"))
    sql = (
        "WITH\n" + ",\n".join([*steps, piece("best_given")]) + "\n"
        f"SELECT chunk.id, bm25.score AS lexical, {similarity} AS similarity,"
        " 1 - (chunk.embedding <=> best.vector) AS likeness, false AS near, chunk.space_id,"
        " chunk.document_id, chunk.collection_id, chunk.media_type, chunk.parent"
        " FROM candidate JOIN documents_chunk AS chunk USING (id) LEFT JOIN bm25 USING (id)"
        " LEFT JOIN best ON best.space_id = chunk.space_id"
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

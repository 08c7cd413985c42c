"""Graph retrieval: passages reached from the best hits over shared mentions. Begin
with `rank_passages`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from common.replicas import read_connection
from common.rls import bypass_rls
from common.sql import bigint_array, fetch_rows
from graph.extraction.normalized_names import candidate_names
from graph.node_ids import passage_id
from graph.ranking import (
    BEAM,
    HOPS,
    HUB,
    OWN_NAME,
    Ints,
    Neighbourhood,
    PathStop,
    RankedGraph,
    rank,
)

__all__ = [
    "NamedStop",
    "PathStop",
    "RankedGraph",
    "RelatedChunk",
    "named_stops",
    "rank_passages",
    "related_passages",
]


def visible_chunk_sql(chunk_id: str, within: str) -> str:
    """SQL for a LATERAL: `id`, `document_id`, and `is_allowed` (the conditions `within` hold) of a
    passage by id, or of those in `ANY(…)`.

    The conditions are in the select list, so that only the index of ids can be used: for a
    collection newer than the planner's statistics, it would choose to scan all of it for each
    passage.
    """
    return (
        f"SELECT chunk.id, chunk.document_id, ({within}) AS is_allowed"
        f" FROM documents_chunk AS chunk WHERE chunk.id = {chunk_id} OFFSET 0"
    )


class NamedStop(NamedTuple):
    """A stop with its public id and name; for a passage its document's title."""

    kind: Literal["chunk", "node"]
    id: str
    name: str


_STOP_NAMES_SQL = """
    SELECT 'node' AS kind, id, key, name, NULL AS slug, NULL::int AS ordinal
    FROM graph_node WHERE id = ANY(%(nodes)s::bigint[])
    UNION ALL
    SELECT 'chunk', chunk.id, document.key,
           coalesce(nullif(document.title, ''), nullif(document.source, ''), document.key),
           collection.slug, chunk.ordinal
    FROM documents_chunk AS chunk
    JOIN documents_document AS document ON document.id = chunk.document_id
    JOIN documents_collection AS collection ON collection.id = chunk.collection_id
    WHERE chunk.id = ANY(%(chunks)s::bigint[])
"""


def named_stops(paths: Iterable[Iterable[PathStop]]) -> dict[PathStop, NamedStop]:
    """Names by stop; deleted ones are absent."""
    ids: dict[str, set[int]] = {"node": set(), "chunk": set()}
    for path in paths:
        for stop in path:
            ids[stop.kind].add(stop.id)
    if not any(ids.values()):
        return {}
    asked = {f"{kind}s": bigint_array(of_kind) for kind, of_kind in ids.items()}
    names = {}
    for kind, pk, key, name, slug, ordinal in fetch_rows(
        read_connection(), _STOP_NAMES_SQL, asked, prepare=True
    ):
        is_node = kind == "node"
        public = key if is_node else passage_id(collection=slug, key=key, ordinal=ordinal)
        names[PathStop(kind, pk)] = NamedStop(kind, public, name or key)
    return names


#: Nodes with more mentions are hubs, followed only to documents of that name.
MAX_MENTIONS = 200
#: Mentions that are looked at around one step's passages, those of the rarest nodes first.
MAX_ROWS = 1200
#: Documents with the same name that a hub leads to.
MAX_NAMESAKES = 50
#: Of a node's edges the weightiest in either direction, and so many of all in one step.
MAX_EDGES = 10
MAX_LINKED = 50
#: Documents are counted up to this: from there on a name is as rare as it gets.
MAX_COUNTED_DOCUMENTS = 10_000

#: An edge that passages tell of is there for those who may read one of them. Not EXISTS: of that
#: PostgreSQL may make a list of all edges.
_READABLE_EDGE_SQL = """
    (edge.origin = 'given' OR (
        SELECT TRUE FROM graph_evidence AS evidence, LATERAL ({seen_evidence}) AS seen
        WHERE evidence.edge_id = edge.id AND seen.is_allowed LIMIT 1))
"""
# Of names within each other the question means the longest. A node that too many passages mention
# costs no more than one look at its first mentions. Of hubs the own documents are taken, and the
# mentions that lead to the hub from here. All of this is in indexes, but that a mention is of the
# document's own name is in another one, so it comes again, as such. What an edge says of a thing
# that is named here is as if it were named here, too.
_PULL_SQL = f"""
    WITH found AS MATERIALIZED (
        SELECT alias.node_id, run.start, run.stop
        FROM unnest(%(graph_forms)s::text[], %(graph_starts)s::int[], %(graph_stops)s::int[])
             AS run (form, start, stop)
        JOIN graph_alias AS alias
          ON alias.workspace_id = %(graph_workspace)s AND alias.form = run.form
    ),
    asked AS MATERIALIZED (
        SELECT DISTINCT node_id FROM found
        WHERE NOT EXISTS (SELECT FROM found AS longer
                          WHERE longer.start <= found.start AND longer.stop >= found.stop
                            AND longer.stop - longer.start > found.stop - found.start)
    ),
    named AS MATERIALIZED (
        SELECT node_id, chunk_id, kind
        FROM graph_mention WHERE chunk_id = ANY(%(graph_chunks)s::bigint[])
    ),
    linked AS MATERIALIZED (
        SELECT other.node_id, named.chunk_id
        FROM named,
             LATERAL ((SELECT target_id AS node_id, weight FROM graph_edge AS edge
                       WHERE source_id = named.node_id AND {{readable}}
                       ORDER BY weight DESC, target_id, rel LIMIT {MAX_EDGES})
                      UNION ALL
                      (SELECT source_id, weight FROM graph_edge AS edge
                       WHERE target_id = named.node_id AND {{readable}}
                       ORDER BY weight DESC, source_id, rel LIMIT {MAX_EDGES})) AS other
        WHERE EXISTS (SELECT FROM graph_edge WHERE workspace_id = %(graph_workspace)s)
        GROUP BY other.node_id, named.chunk_id
        ORDER BY max(other.weight) DESC, other.node_id, named.chunk_id
        LIMIT {MAX_LINKED}
    ),
    start AS MATERIALIZED (
        SELECT node_id FROM named
        UNION SELECT node_id FROM linked
        UNION SELECT node_id FROM asked
    ),
    counted AS MATERIALIZED (
        SELECT start.node_id, coalesce(often.chunks, '{{{{}}}}') AS chunks
        FROM start,
             LATERAL (SELECT array_agg(chunk_id) AS chunks
                      FROM (SELECT chunk_id FROM graph_mention AS mention
                            WHERE mention.node_id = start.node_id
                            LIMIT {MAX_MENTIONS} + 1) AS first_ones) AS often
    ),
    ordered AS MATERIALIZED (
        SELECT node_id, chunks, cardinality(chunks) > {MAX_MENTIONS} AS is_hub,
               sum(cardinality(chunks)) OVER (ORDER BY cardinality(chunks), node_id
                                              ROWS UNBOUNDED PRECEDING) AS upto
        FROM counted
    ),
    pulled AS MATERIALIZED (
        SELECT node_id, unnest(chunks) AS chunk_id, 0::bigint AS sign
        FROM ordered
        WHERE NOT is_hub AND upto <= {MAX_ROWS}
        UNION ALL
        SELECT node_id, own.chunk_id, {OWN_NAME} + is_hub::int
        FROM ordered,
             LATERAL (SELECT chunk_id FROM graph_mention AS mention
                      WHERE mention.node_id = ordered.node_id AND mention.kind = 0
                      LIMIT CASE WHEN is_hub THEN {MAX_NAMESAKES} ELSE {MAX_MENTIONS} END) AS own
        WHERE is_hub OR upto <= {MAX_ROWS}
        UNION ALL
        SELECT node_id, chunk_id, {HUB}
        FROM ordered JOIN named USING (node_id)
        WHERE is_hub AND kind <> 0
        UNION ALL
        SELECT node_id, chunk_id, is_hub::int
        FROM ordered JOIN linked USING (node_id)
    )
    SELECT (SELECT array_agg(node_id) FROM asked),
           (SELECT count(*)
            FROM (SELECT FROM documents_document
                  WHERE collection_id IN (SELECT collection_id FROM documents_chunk
                                          WHERE id = ANY(%(graph_chunks)s::bigint[]))
                    AND is_current
                  LIMIT %(graph_counted)s) AS counted),
           mention.*, chunk.*
    FROM (SELECT array_agg(chunk_id), array_agg(node_id), array_agg(sign) FROM pulled) AS mention,
         (SELECT array_agg(seen.id), array_agg(seen.document_id)
          FROM ({{seen_pulled}}) AS seen WHERE seen.is_allowed) AS chunk
"""

_NO_IDS = np.zeros(0, np.int64)


class _PulledMentions(NamedTuple):
    """Result of one query: nodes named in the question, number of documents in scope, mentions by
    ids with their signs, and readable chunks with their documents.
    """

    asked: Ints
    total: int
    chunks: Ints
    nodes: Ints
    signs: Ints
    readable: Ints
    documents: Ints


def rank_passages(
    *,
    question: str,
    workspace_id: int,
    seeds: Mapping[int, float],
    within: str,
    parameters: Mapping[str, Any],
    limit: int,
    prepare: bool = False,
) -> RankedGraph:
    """The best `limit` passages reached from `seeds` (fused scores by chunk id) and from names in
    `question`.

    `within` are SQL conditions on `documents_chunk AS chunk` with their `parameters`; other
    chunks are neither found nor passed through. `prepare`: the statement's text will be reused
    and all parameters have types.
    """
    if not seeds:
        return RankedGraph({})
    parameters = {**parameters, "graph_workspace": workspace_id}
    pull = partial(_pull, within=within, parameters=parameters, prepare=prepare)
    # Names that the question may contain, with their word positions; −1 for identifiers of code and
    # dates. Years and months are too common.
    from graph.extraction.code import identifiers  # noqa: PLC0415 (compiles large patterns)
    from graph.extraction.names import dates  # noqa: PLC0415

    days = {spot.form for spot in dates(question) if spot.form.count(" ") == 2}
    others = days | {spot.form for spot in identifiers(question)}
    runs = [(run.form, run.start, run.end) for run in candidate_names(question)]
    question_names = [*runs, *((form, -1, -1) for form in others)]
    first = pull([*seeds], names=question_names, most_counted=MAX_COUNTED_DOCUMENTS)
    asked = dict.fromkeys(first.asked.tolist(), 1.0)
    around = [first]
    for _ in range(1, HOPS):
        most = BEAM + len(seeds)
        near = rank(
            _merge_pulled(around), seeds=seeds, question=asked, total=first.total, most=most
        )
        front = [chunk_id for chunk_id in near.scores if chunk_id not in seeds][:BEAM]
        if front:
            around.append(pull(front))
    return rank(_merge_pulled(around), seeds=seeds, question=asked, total=first.total, most=limit)


def _pull(
    chunk_ids: Sequence[int],
    *,
    within: str,
    parameters: Mapping[str, Any],
    prepare: bool,
    names: Sequence[tuple[str, int, int]] = (),
    most_counted: int = 0,
) -> _PulledMentions:
    statement = _PULL_SQL.format(
        seen_pulled=visible_chunk_sql(
            "ANY((SELECT array_agg(chunk_id) FROM pulled)::bigint[])", within
        ),
        readable=_READABLE_EDGE_SQL.format(
            seen_evidence=visible_chunk_sql("evidence.chunk_id", within)
        ),
    )
    values = {
        **parameters,
        "graph_forms": [form for form, _, _ in names],
        "graph_starts": bigint_array(start for _, start, _ in names),
        "graph_stops": bigint_array(stop for _, _, stop in names),
        "graph_chunks": bigint_array(chunk_ids),
        "graph_counted": most_counted,
    }
    # It names the workspace and what may be seen itself, and gives ids: docs/decisions/0045.
    with bypass_rls():
        ((asked, total, *arrays),) = fetch_rows(
            read_connection(), statement, values, prepare=prepare
        )
    asked, *arrays = (_NO_IDS if each is None else each for each in (asked, *arrays))
    return _PulledMentions(asked, total, *arrays)


def _merge_pulled(around: Sequence[_PulledMentions]) -> Neighbourhood:
    columns = zip(*(each[2:] for each in around), strict=True)
    return Neighbourhood.of(*map(np.concatenate, columns))


#: Nodes mentioned by more passages are too common to relate two of them.
MAX_PASSAGES = 100
#: Of a passage that names more, the rarest are looked at.
MAX_NODES = 20


@dataclass(frozen=True, slots=True)
class RelatedChunk:
    """A passage related to `expanded_from`.

    `path` leads there over a node that both mention, or directly to an adjacent passage. Rarer
    shared nodes score higher.
    """

    chunk_id: int
    expanded_from: int
    path: tuple[PathStop, ...]
    score: float


# Counting ends where a node is too common, so no hub costs more than another.
_RELATED_SQL = """
    WITH named AS MATERIALIZED (
        SELECT mention.chunk_id AS seed, mention.node_id, often.passages,
               row_number() OVER (PARTITION BY mention.chunk_id
                                  ORDER BY often.passages, mention.node_id) AS place
        FROM graph_mention AS mention,
             LATERAL (SELECT count(*) AS passages
                      FROM (SELECT FROM graph_mention AS other
                            WHERE other.node_id = mention.node_id
                            LIMIT %(graph_most)s + 1) AS counted) AS often
        WHERE mention.chunk_id = ANY(%(graph_seeds)s)
          AND often.passages BETWEEN 2 AND %(graph_most)s
    ),
    shared AS (
        SELECT named.seed, mention.chunk_id, sum(1 / ln(1 + named.passages)) AS score,
               (array_agg(named.node_id ORDER BY named.passages, named.node_id))[1] AS node_id
        FROM named,
             LATERAL (SELECT chunk_id FROM graph_mention AS other
                      WHERE other.node_id = named.node_id
                      LIMIT %(graph_most)s) AS mention
        WHERE named.place <= %(graph_nodes)s AND mention.chunk_id <> ALL(%(graph_known)s)
        GROUP BY named.seed, mention.chunk_id
    ),
    -- the own document's neighbours beside them: what stands next to a passage goes with it
    beside AS (
        SELECT seed.id AS seed, near.id AS chunk_id, {beside}::float8 AS score,
               NULL::bigint AS node_id
        FROM documents_chunk AS seed
        JOIN documents_chunk AS near ON near.document_id = seed.document_id
         AND near.ordinal IN (seed.ordinal - 1, seed.ordinal + 1)
        WHERE seed.id = ANY(%(graph_seeds)s) AND near.id <> ALL(%(graph_known)s)
    ),
    best AS MATERIALIZED (
        SELECT * FROM (
            SELECT together.*, row_number() OVER (PARTITION BY seed ORDER BY score DESC, chunk_id)
                               AS among_all
            FROM (SELECT * FROM shared UNION ALL SELECT * FROM beside) AS together
        ) AS numbered
        WHERE among_all <= %(graph_looked)s
    ),
    ordered AS (
        SELECT best.*, row_number() OVER (PARTITION BY seed ORDER BY among_all) AS place
        FROM best, LATERAL ({seen}) AS seen
        WHERE seen.is_allowed
    )
    SELECT seed, chunk_id, node_id, score FROM ordered WHERE place <= %(graph_each)s
    ORDER BY seed, place
"""
#: Best candidates per passage that are checked for being in scope.
MAX_CANDIDATES = 100
#: Score of adjacent passages: that of one node mentioned by these two only.
_NEIGHBOUR_SCORE = "1 / ln(3)"


def related_passages(
    chunk_ids: Sequence[int],
    *,
    known: Sequence[int] = (),
    within: str,
    parameters: Mapping[str, Any],
    each: int = 3,
    hops: int = 1,
) -> list[RelatedChunk]:
    """Up to `each` related passages for each of `chunk_ids`, best first, without duplicates and
    `known` ones.

    `within` are SQL conditions on `documents_chunk AS chunk` with their `parameters`; other
    chunks are neither found nor passed through. With `hops` above 1, found passages are
    expanded too and rank after.
    """
    found: dict[int, RelatedChunk] = {}
    origins = {
        chunk_id: RelatedChunk(chunk_id, chunk_id, (PathStop("chunk", chunk_id),), 0.0)
        for chunk_id in chunk_ids
    }
    room = dict.fromkeys(chunk_ids, each)
    level = origins
    statement = _RELATED_SQL.format(
        seen=visible_chunk_sql("best.chunk_id", within), beside=_NEIGHBOUR_SCORE
    )
    for _ in range(hops):
        # Twice as many as are wanted: two passages may lead to the same one.
        values = {
            **parameters,
            "graph_seeds": list(level),
            "graph_known": list({*origins, *found, *known}),
            "graph_most": MAX_PASSAGES,
            "graph_nodes": MAX_NODES,
            "graph_each": 2 * each,
            "graph_looked": MAX_CANDIDATES,
        }
        with read_connection().cursor() as cursor:
            cursor.execute(statement, values)
            rows: list[_Row] = cursor.fetchall()
        level = _take_new(rows, level, found, room)
        if not level:
            break
    order = {chunk_id: place for place, chunk_id in enumerate(chunk_ids)}
    return sorted(found.values(), key=lambda each: (order[each.expanded_from], len(each.path)))


_Row = tuple[int, int, int | None, float]


def _take_new(
    rows: Sequence[_Row],
    level: Mapping[int, RelatedChunk],
    found: dict[int, RelatedChunk],
    room: dict[int, int],
) -> dict[int, RelatedChunk]:
    """New passages, in turn for each seed."""
    by_seed: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        by_seed[row[0]].append(row)
    taken: dict[int, RelatedChunk] = {}
    for seed, before in level.items():
        for _, chunk_id, node_id, score in by_seed[seed]:
            if chunk_id in found or room[before.expanded_from] == 0:
                continue
            over = () if node_id is None else (PathStop("node", node_id),)
            path = (*before.path, *over, PathStop("chunk", chunk_id))
            step = RelatedChunk(chunk_id, before.expanded_from, path, score)
            found[chunk_id] = taken[chunk_id] = step
            room[before.expanded_from] -= 1
    return taken

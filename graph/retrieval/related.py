"""Passages that hang together with given ones: their neighbours, and those that name the same."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.replicas import read_connection
from graph.ranking import Stop
from graph.retrieval.sight import seen

#: Nodes that more passages name tell nothing of any two of them.
MOST_PASSAGES = 100
#: Of a passage that names more, the rarest are looked at.
MOST_NODES = 20


@dataclass(frozen=True, slots=True)
class Related:
    """A passage beside `expanded_from`, and how one gets there.

    `path` leads from `expanded_from` to the passage itself, over nodes that two passages name; to a
    neighbour in the document over none. Higher scores are rarer things that both name.
    """

    chunk_id: int
    expanded_from: int
    path: tuple[Stop, ...]
    score: float


# Counting ends where a node is too common, so no hub costs more than another.
_SHARED = """
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
#: So many of the best of a passage are looked at for those that are in scope.
MOST_LOOKED = 100
#: As much as one thing that two passages and no others name.
_BESIDE = "1 / ln(3)"


def related_passages(
    chunk_ids: Sequence[int],
    *,
    known: Sequence[int] = (),
    within: str,
    parameters: Mapping[str, Any],
    each: int = 3,
    hops: int = 1,
) -> list[Related]:
    """At most `each` passages for each of `chunk_ids`, the best first, none of them twice and none
    of the `known` ones.

    `within` are SQL conditions on `documents_chunk AS chunk` with their `parameters`: what they
    leave out is not there, and nothing is reached over it. With `hops` above 1 passages that are
    found lead on, and what they lead to stands behind.
    """
    found: dict[int, Related] = {}
    origins = {
        chunk_id: Related(chunk_id, chunk_id, (Stop("chunk", chunk_id),), 0.0)
        for chunk_id in chunk_ids
    }
    room = dict.fromkeys(chunk_ids, each)
    level = origins
    for _ in range(hops):
        # Twice as many as are wanted: two passages may lead to the same one.
        rows = _level(level, {*origins, *found, *known}, within, parameters, each=2 * each)
        level = _taken(rows, level, found, room)
        if not level:
            break
    order = {chunk_id: place for place, chunk_id in enumerate(chunk_ids)}
    return sorted(found.values(), key=lambda each: (order[each.expanded_from], len(each.path)))


_Row = tuple[int, int, int | None, float]


def _level(
    seeds: Mapping[int, Related],
    known: set[int],
    within: str,
    parameters: Mapping[str, Any],
    *,
    each: int,
) -> list[_Row]:
    statement = _SHARED.format(seen=seen("best.chunk_id", within), beside=_BESIDE)
    values = {
        **parameters,
        "graph_seeds": list(seeds),
        "graph_known": list(known),
        "graph_most": MOST_PASSAGES,
        "graph_nodes": MOST_NODES,
        "graph_each": each,
        "graph_looked": MOST_LOOKED,
    }
    with read_connection().cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[_Row] = cursor.fetchall()
    return rows


def _taken(
    rows: Sequence[_Row],
    level: Mapping[int, Related],
    found: dict[int, Related],
    room: dict[int, int],
) -> dict[int, Related]:
    """Those that are new, in turn for each passage that led here."""
    by_seed: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        by_seed[row[0]].append(row)
    taken: dict[int, Related] = {}
    for seed, before in level.items():
        for _, chunk_id, node_id, score in by_seed[seed]:
            if chunk_id in found or room[before.expanded_from] == 0:
                continue
            over = () if node_id is None else (Stop("node", node_id),)
            path = (*before.path, *over, Stop("chunk", chunk_id))
            step = Related(chunk_id, before.expanded_from, path, score)
            found[chunk_id] = taken[chunk_id] = step
            room[before.expanded_from] -= 1
    return taken

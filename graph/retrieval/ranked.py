"""The graph arm: pulls what lies around the best hits, and ranks the passages there."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.fence import unfenced
from common.replicas import read_connection
from graph.extraction.code import identifiers
from graph.extraction.dates import dates
from graph.extraction.forms import question_forms
from graph.models import Alias
from graph.ranking import BEAM, HOPS, Neighbourhood, RankedGraph, rank
from graph.retrieval.sight import seen

#: What more passages mention is a hub: it leads nowhere but to the document that it is the name of.
MOST_MENTIONS = 200
#: Mentions that are looked at around one step's passages, those of the rarest nodes first.
MOST_ROWS = 1200
#: Documents with the same name that a hub leads to.
MOST_NAMESAKES = 50
#: Of a node's edges the weightiest in either direction, and so many of all in one step.
MOST_EDGES = 10
MOST_LINKED = 50

# A node that too many passages mention costs no more than one look at its first mentions. Of hubs
# the own documents are taken, and the mentions that lead to the hub from here. What an edge says of
# a thing that is named here is as if it were named here, too.
_PULL = """
    WITH named AS MATERIALIZED (
        SELECT node_id, chunk_id, kind FROM graph_mention WHERE chunk_id = ANY(%(graph_chunks)s)
    ),
    linked AS MATERIALIZED (
        SELECT other.node_id, named.chunk_id
        FROM named,
             LATERAL ((SELECT target_id AS node_id, weight FROM graph_edge AS edge
                       WHERE source_id = named.node_id AND {readable}
                       ORDER BY weight DESC, target_id, rel LIMIT %(graph_edges)s)
                      UNION ALL
                      (SELECT source_id, weight FROM graph_edge AS edge
                       WHERE target_id = named.node_id AND {readable}
                       ORDER BY weight DESC, source_id, rel LIMIT %(graph_edges)s)) AS other
        GROUP BY other.node_id, named.chunk_id
        ORDER BY max(other.weight) DESC, other.node_id, named.chunk_id
        LIMIT %(graph_linked)s
    ),
    start AS MATERIALIZED (
        SELECT node_id FROM named
        UNION SELECT node_id FROM linked
        UNION SELECT unnest(%(graph_nodes)s::bigint[])
    ),
    counted AS MATERIALIZED (
        SELECT start.node_id, often.mentions
        FROM start,
             LATERAL (SELECT count(*) AS mentions
                      FROM (SELECT FROM graph_mention AS mention
                            WHERE mention.node_id = start.node_id
                            LIMIT %(graph_most)s + 1) AS first_ones) AS often
    ),
    ordered AS MATERIALIZED (
        SELECT node_id, mentions > %(graph_most)s AS is_hub,
               sum(mentions) OVER (ORDER BY mentions, node_id ROWS UNBOUNDED PRECEDING) AS upto
        FROM counted
    ),
    pulled AS MATERIALIZED (
        SELECT node_id, mention.chunk_id, mention.kind, false AS is_hub
        FROM ordered,
             LATERAL (SELECT chunk_id, kind FROM graph_mention AS mention
                      WHERE mention.node_id = ordered.node_id
                      LIMIT %(graph_most)s) AS mention
        WHERE NOT is_hub AND upto <= %(graph_rows)s
        UNION ALL
        SELECT node_id, own.chunk_id, 0, true
        FROM ordered,
             LATERAL (SELECT chunk_id FROM graph_mention AS mention
                      WHERE mention.node_id = ordered.node_id AND mention.kind = 0
                      LIMIT %(graph_namesakes)s) AS own
        WHERE is_hub
        UNION ALL
        SELECT node_id, chunk_id, kind, true
        FROM ordered JOIN named USING (node_id)
        WHERE is_hub AND kind <> 0
        UNION ALL
        SELECT node_id, chunk_id, 2, is_hub
        FROM ordered JOIN linked USING (node_id)
    )
    SELECT pulled.chunk_id, seen.document_id, pulled.node_id, pulled.kind = 0, pulled.is_hub
    FROM pulled, LATERAL ({seen_pulled}) AS seen
    WHERE seen.is_allowed
"""
#: An edge that passages tell of is there for those who may read one of them. Not EXISTS: of that
#: PostgreSQL may make a list of all edges.
_READABLE = """
    (edge.origin = 'given' OR (
        SELECT TRUE FROM graph_evidence AS evidence, LATERAL ({seen_evidence}) AS seen
        WHERE evidence.edge_id = edge.id AND seen.is_allowed LIMIT 1))
"""

#: Documents are counted up to this: from there on a name is as rare as it gets.
MOST_COUNTED = 10_000

_TOTAL = """
    SELECT count(*)
    FROM (SELECT FROM documents_document
          WHERE collection_id IN (SELECT collection_id FROM documents_chunk WHERE id = ANY(%s))
            AND is_current
          LIMIT %s) AS counted
"""

_Row = tuple[int, int, int, bool, bool]


def rank_passages(
    *,
    question: str,
    workspace_id: int,
    seeds: Mapping[int, float],
    within: str,
    parameters: Mapping[str, Any],
    limit: int,
) -> RankedGraph:
    """The passages that the graph leads to from `seeds` (fused scores by chunk id) and from what
    `question` names, the best `limit`.

    `within` are SQL conditions on `documents_chunk AS chunk` with their `parameters`: what they
    leave out is not there, and nothing is reached over it.
    """
    if not seeds:
        return rank(_neighbourhood(set()), seeds={}, question={}, total=0)
    asked = question_nodes(question, workspace_id=workspace_id)
    total = _total(list(seeds))
    rows = _pull(list(seeds), list(asked), within, parameters)
    for _ in range(1, HOPS):
        near = rank(
            _neighbourhood(rows), seeds=seeds, question=asked, total=total, most=BEAM + len(seeds)
        )
        front = [chunk_id for chunk_id in near.scores if chunk_id not in seeds][:BEAM]
        rows |= _pull(front, [], within, parameters)
    return rank(_neighbourhood(rows), seeds=seeds, question=asked, total=total, most=limit)


def question_nodes(question: str, *, workspace_id: int) -> dict[int, float]:
    """What the question names: in words, of which only the longest count where one name is within
    another, by identifiers of code, and days. Of a year or a month too much is told."""
    runs = question_forms(question)
    days = {spot.form for spot in dates(question) if spot.form.count(" ") == 2}
    others = days | {spot.form for spot in identifiers(question)}
    known = dict(
        Alias.objects.filter(
            workspace=workspace_id, form__in={run.form for run in runs} | others
        ).values_list("form", "node")
    )
    named = [run for run in runs if run.form in known]
    longest = [
        run
        for run in named
        if not any(
            other.start <= run.start and run.end <= other.end
            for other in named
            if other.end - other.start > run.end - run.start
        )
    ]
    found = {run.form for run in longest} | (others & known.keys())
    return {known[form]: 1.0 for form in sorted(found)}


def _pull(
    chunk_ids: Sequence[int], node_ids: Sequence[int], within: str, parameters: Mapping[str, Any]
) -> set[_Row]:
    if not chunk_ids and not node_ids:
        return set()
    values = {
        **parameters,
        "graph_chunks": list(chunk_ids),
        "graph_nodes": list(node_ids),
        "graph_most": MOST_MENTIONS,
        "graph_rows": MOST_ROWS,
        "graph_edges": MOST_EDGES,
        "graph_linked": MOST_LINKED,
        "graph_namesakes": MOST_NAMESAKES,
    }
    readable = _READABLE.format(seen_evidence=seen("evidence.chunk_id", within))
    statement = _PULL.format(seen_pulled=seen("pulled.chunk_id", within), readable=readable)
    # It names the workspace and what may be seen itself, and gives ids: docs/decisions/0045.
    with unfenced(), read_connection().cursor() as cursor:
        cursor.execute(statement, values)
        return set(cursor.fetchall())


def _total(chunk_ids: list[int]) -> int:
    with read_connection().cursor() as cursor:
        cursor.execute(_TOTAL, [chunk_ids, MOST_COUNTED])
        return int(cursor.fetchone()[0])


def _neighbourhood(rows: set[_Row]) -> Neighbourhood:
    """In one order, so that the same rows always rank alike."""
    columns = np.array(sorted(rows), dtype=np.int64).reshape(-1, 5).T
    chunks, documents, nodes, own, hubs = columns
    return Neighbourhood(
        chunks=chunks,
        documents=documents,
        nodes=nodes,
        own=own.astype(bool),
        frequencies=np.where(hubs > 0, np.iinfo(np.int32).max, _frequencies(documents, nodes)),
    )


def _frequencies(documents: Any, nodes: Any) -> Any:
    """In how many of these documents each entry's node is."""
    pairs = np.unique(np.stack([nodes, documents]), axis=1)
    known, counts = np.unique(pairs[0], return_counts=True)
    return counts[np.searchsorted(known, nodes)] if len(known) else np.zeros(0, dtype=np.int64)

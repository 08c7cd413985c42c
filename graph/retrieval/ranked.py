"""The graph arm: pulls what lies around the best hits, and ranks the passages there."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from common.fence import unfenced
from common.postgresql.binary import array, fetch
from common.replicas import read_connection
from graph.extraction.forms import question_forms
from graph.ranking import BEAM, HOPS, HUB, OWN, Ints, Neighbourhood, RankedGraph, rank
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
#: Documents are counted up to this: from there on a name is as rare as it gets.
MOST_COUNTED = 10_000

#: An edge that passages tell of is there for those who may read one of them. Not EXISTS: of that
#: PostgreSQL may make a list of all edges.
_READABLE = """
    (edge.origin = 'given' OR (
        SELECT TRUE FROM graph_evidence AS evidence, LATERAL ({seen_evidence}) AS seen
        WHERE evidence.edge_id = edge.id AND seen.is_allowed LIMIT 1))
"""
# Of names within each other the question means the longest. A node that too many passages mention
# costs no more than one look at its first mentions. Of hubs the own documents are taken, and the
# mentions that lead to the hub from here. All of this is in indexes, but that a mention is of the
# document's own name is in another one, so it comes again, as such. What an edge says of a thing
# that is named here is as if it were named here, too.
_PULL = f"""
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
                       ORDER BY weight DESC, target_id, rel LIMIT {MOST_EDGES})
                      UNION ALL
                      (SELECT source_id, weight FROM graph_edge AS edge
                       WHERE target_id = named.node_id AND {{readable}}
                       ORDER BY weight DESC, source_id, rel LIMIT {MOST_EDGES})) AS other
        WHERE EXISTS (SELECT FROM graph_edge WHERE workspace_id = %(graph_workspace)s)
        GROUP BY other.node_id, named.chunk_id
        ORDER BY max(other.weight) DESC, other.node_id, named.chunk_id
        LIMIT {MOST_LINKED}
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
                            LIMIT {MOST_MENTIONS} + 1) AS first_ones) AS often
    ),
    ordered AS MATERIALIZED (
        SELECT node_id, chunks, cardinality(chunks) > {MOST_MENTIONS} AS is_hub,
               sum(cardinality(chunks)) OVER (ORDER BY cardinality(chunks), node_id
                                              ROWS UNBOUNDED PRECEDING) AS upto
        FROM counted
    ),
    pulled AS MATERIALIZED (
        SELECT node_id, unnest(chunks) AS chunk_id, 0::bigint AS sign
        FROM ordered
        WHERE NOT is_hub AND upto <= {MOST_ROWS}
        UNION ALL
        SELECT node_id, own.chunk_id, {OWN} + is_hub::int
        FROM ordered,
             LATERAL (SELECT chunk_id FROM graph_mention AS mention
                      WHERE mention.node_id = ordered.node_id AND mention.kind = 0
                      LIMIT CASE WHEN is_hub THEN {MOST_NAMESAKES} ELSE {MOST_MENTIONS} END) AS own
        WHERE is_hub OR upto <= {MOST_ROWS}
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
"""  # noqa: S608 (constants)

_NO_IDS = np.zeros(0, np.int64)


class _Pulled(NamedTuple):
    """What a statement brought: nodes that the question names, how many documents are in scope,
    mentions by the ids of their ends with their signs, and chunks that may be read with their
    documents."""

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
    """The passages that the graph leads to from `seeds` (fused scores by chunk id) and from what
    `question` names, the best `limit`.

    `within` are SQL conditions on `documents_chunk AS chunk` with their `parameters`: what they
    leave out is not there, and nothing is reached over it. `prepare`: their text comes again with
    other questions, and all parameters have types.
    """
    if not seeds:
        return RankedGraph({})
    parameters = {**parameters, "graph_workspace": workspace_id}
    pull = partial(_pull, within=within, parameters=parameters, prepare=prepare)
    first = pull([*seeds], names=_names(question), most_counted=MOST_COUNTED)
    asked = dict.fromkeys(first.asked.tolist(), 1.0)
    around = [first]
    for _ in range(1, HOPS):
        most = BEAM + len(seeds)
        near = rank(_joined(around), seeds=seeds, question=asked, total=first.total, most=most)
        front = [chunk_id for chunk_id in near.scores if chunk_id not in seeds][:BEAM]
        if front:
            around.append(pull(front))
    return rank(_joined(around), seeds=seeds, question=asked, total=first.total, most=limit)


def _names(question: str) -> list[tuple[str, int, int]]:
    """What the question may name, each form with where it is: words `start` to `stop`, or −1 for
    what is within nothing else, identifiers of code and days. Of a year or a month too much is
    told."""
    from graph.extraction.code import identifiers  # noqa: PLC0415 (compiles large patterns)
    from graph.extraction.dates import dates  # noqa: PLC0415

    days = {spot.form for spot in dates(question) if spot.form.count(" ") == 2}
    others = days | {spot.form for spot in identifiers(question)}
    runs = [(run.form, run.start, run.end) for run in question_forms(question)]
    return [*runs, *((form, -1, -1) for form in others)]


def _pull(
    chunk_ids: Sequence[int],
    *,
    within: str,
    parameters: Mapping[str, Any],
    prepare: bool,
    names: Sequence[tuple[str, int, int]] = (),
    most_counted: int = 0,
) -> _Pulled:
    statement = _PULL.format(
        seen_pulled=seen("ANY((SELECT array_agg(chunk_id) FROM pulled)::bigint[])", within),
        readable=_READABLE.format(seen_evidence=seen("evidence.chunk_id", within)),
    )
    values = {
        **parameters,
        "graph_forms": [form for form, _, _ in names],
        "graph_starts": array(start for _, start, _ in names),
        "graph_stops": array(stop for _, _, stop in names),
        "graph_chunks": array(chunk_ids),
        "graph_counted": most_counted,
    }
    # It names the workspace and what may be seen itself, and gives ids: docs/decisions/0045.
    with unfenced():
        ((asked, total, *arrays),) = fetch(read_connection(), statement, values, prepare=prepare)
    asked, *arrays = (_NO_IDS if each is None else each for each in (asked, *arrays))
    return _Pulled(asked, total, *arrays)


def _joined(around: Sequence[_Pulled]) -> Neighbourhood:
    columns = zip(*(each[2:] for each in around), strict=True)
    return Neighbourhood.of(*map(np.concatenate, columns))

"""Graph retrieval: passages reached from the best hits over shared mentions. Begin
with `rank_passages`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    Floats,
    Ints,
    Neighbourhood,
    PathStop,
    RankedGraph,
    rank,
)
from graph.reading.vertices import load_sql


def visible_chunk_sql(chunk_id: str, within: str) -> str:
    """SQL for a LATERAL: `id`, `document_id`, and `is_allowed` (the conditions `within` hold) of a
    passage by id, or of those in `ANY(…)`.

    The conditions are in the select list, so that only the index of ids can be used: for a
    collection newer than the planner's statistics, it would choose to scan all of it for each
    passage.
    """
    return (
        f"SELECT chunk.id, chunk.document_id, ({within}) AS is_allowed"  # noqa: S608 - fixed pieces, values are parameters
        f" FROM documents_chunk AS chunk WHERE chunk.id = {chunk_id} OFFSET 0"
    )


class NamedStop(NamedTuple):
    """A stop with its public id and name; for a passage its document's title."""

    kind: Literal["chunk", "node"]
    id: str
    name: str


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
        read_connection(), load_sql("stop_names"), asked, prepare=True
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
    vectors: Mapping[int, NDArray[np.float32]] | None = None,
    prepare: bool = False,
) -> RankedGraph:
    """The best `limit` passages reached from `seeds` (fused scores by chunk id) and from names in
    `question`, whose `vectors` by embedding space tell what of it a path has left open.

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
    ranked = rank(_merge_pulled(around), seeds=seeds, question=asked, total=first.total, most=limit)
    best_hit = max(seeds, key=lambda chunk_id: (seeds[chunk_id], -chunk_id))
    return _follow_question(ranked, vectors or {}, best_hit=best_hit)


_VECTORS_SQL = """
    SELECT space_id, id, embedding FROM documents_chunk
    WHERE id = ANY(%(chunks)s::bigint[]) AND space_id = ANY(%(spaces)s::bigint[])
      AND embedding IS NOT NULL
"""


def _follow_question(
    ranked: RankedGraph, vectors: Mapping[int, NDArray[np.float32]], *, best_hit: int
) -> RankedGraph:
    """In each embedding space, scores by what paths have left of the question."""
    before = {each for chunk_id in ranked.scores for each in ranked.passages_before(chunk_id)}
    if not before or not vectors:
        return ranked
    values = {
        "chunks": bigint_array({*before, *ranked.scores}),
        "spaces": bigint_array(vectors),
    }
    passages: dict[int, dict[int, Floats]] = defaultdict(dict)
    for space_id, pk, embedding in fetch_rows(
        read_connection(), _VECTORS_SQL, values, prepare=True
    ):
        passages[space_id][pk] = embedding.to_numpy().astype(np.float64)
    for space_id, of_space in passages.items():
        ranked = ranked.follow_question(vectors[space_id].astype(np.float64), of_space)
    return ranked.normalized(best_hit)


def _pull(
    chunk_ids: Sequence[int],
    *,
    within: str,
    parameters: Mapping[str, Any],
    prepare: bool,
    names: Sequence[tuple[str, int, int]] = (),
    most_counted: int = 0,
) -> _PulledMentions:
    statement = load_sql("pull_mentions").format(
        seen_pulled=visible_chunk_sql(
            "ANY((SELECT array_agg(chunk_id) FROM pulled)::bigint[])", within
        ),
        seen_evidence=visible_chunk_sql("evidence.chunk_id", within),
        max_edges=MAX_EDGES,
        max_linked=MAX_LINKED,
        max_mentions=MAX_MENTIONS,
        max_rows=MAX_ROWS,
        max_namesakes=MAX_NAMESAKES,
        hub=HUB,
        own_name=OWN_NAME,
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
    statement = load_sql("related_passages").format(
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

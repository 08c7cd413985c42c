"""Running the arms: what each listed, and how it worked. Begin with `retrieve`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from common.bm25 import Ids, Scores
from common.fusion import Fusion, Numbers, normalize_across_spaces, normalized_similarity
from common.replicas import read_connection
from common.sql import fetch_rows, read_snapshot
from documents.lexical_search import Terms, read_terms
from graph.ranking import RankedGraph
from search.query import Query
from search.results import ArmReport, Mode, Scope
from search.retrieval.scope_facts import (
    ScopeFacts,
    ScopeState,
    cached_facts,
    current_facts,
    mean_vectors,
    read_state,
)
from search.retrieval.statements import (
    SpaceQueries,
    compare_statement,
    exact_scan_ids,
    gather_statement,
    has_plain_conditions,
    in_scope_statement,
    is_narrowed,
    space_queries,
)

#: Facts rarely change during a search; changing repeatedly within one search would be a bug.
MAX_TRIES = 3
#: Best lexical matches checked for being in scope at once, and the growth of further batches.
SCOPE_BATCH = 1_000
SCOPE_BATCH_GROWTH = 8


#: Arrays of one length, in the order of `compare_statement`.
Columns = Sequence[Any]
_NO_IDS, _NO_SCORES = np.zeros(0, np.int64), np.zeros(0)
_NO_ROWS: Columns = (_NO_IDS, _NO_IDS, _NO_IDS, [], [], [], [], _NO_SCORES, _NO_SCORES)


@dataclass(slots=True)
class Candidates:
    """Chunks that some arm listed, with the scores of all arms: arrays of one length. Parent -1 is
    none.

    `scores`: `lexical` (BM25), `similarity` (of the chunk's own model), `closeness` (normalised
    across models), `likeness` (cosine to the mean direction of both arms' best passages),
    `graph`; NaN where missing. `ranks` are 1-based ranks in the arms' lists, 0 if not listed.
    """

    chunk_ids: Ids
    index_ids: Ids
    space_ids: Ids
    document_ids: list[int]
    collection_ids: list[int]
    media_types: list[str]
    parents: list[int]
    scores: dict[str, Numbers]
    ranks: dict[str, Ids]

    def __len__(self) -> int:
        return len(self.chunk_ids)

    def __iter__(self) -> Iterator["Candidate"]:
        return (Candidate(self, place) for place in range(len(self)))

    def add_graph(self, scores: Mapping[int, float]) -> None:
        """Adds scores and ranks of the graph arm, given by chunk id."""
        order = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))
        places = {chunk_id: rank for rank, chunk_id in enumerate(order, start=1)}
        ids = self.chunk_ids.tolist()
        graph = [scores.get(chunk_id, np.nan) for chunk_id in ids]
        self.scores["graph"] = np.array(graph, np.float64)
        self.ranks["graph"] = np.array([places.get(each, 0) for each in ids], np.int64)


@dataclass(slots=True)
class Candidate:
    """One of the `Candidates`, at `place`; ranked by its `score`. `rerank` is the reranker's score
    where it read the passage, and `rerank_factor` what it does to the fused one.
    `more_in_document` counts further ranked passages where hits are grouped.
    """

    of: Candidates
    place: int
    fusion: Fusion | None = None
    fused_score: float = 0.0
    fused_rank: int = 0
    rerank: float | None = None
    rerank_factor: float = 1.0
    more_in_document: int = 0

    @property
    def score(self) -> float:
        """The fused one, times what the reranker makes of it."""
        return self.fused_score * self.rerank_factor

    @property
    def contributions(self) -> dict[str, float]:
        """Of each arm and feature to the fused score."""
        given = self.fusion.contributions if self.fusion else {}
        return {name: float(given[name][self.place]) for name in sorted(given)}

    @property
    def chunk_id(self) -> int:
        return int(self.of.chunk_ids[self.place])

    @property
    def document_id(self) -> int:
        return self.of.document_ids[self.place]

    @property
    def collection_id(self) -> int:
        return self.of.collection_ids[self.place]

    @property
    def media_type(self) -> str:
        return self.of.media_types[self.place]

    @property
    def parent(self) -> int | None:
        """Chunks of a document with equal parent are parts of one passage."""
        parent = self.of.parents[self.place]
        return None if parent < 0 else parent

    @property
    def ranks(self) -> dict[str, int]:
        """Its 1-based ranks in the arms that listed it."""
        ranks = ((name, int(ranks[self.place])) for name, ranks in self.of.ranks.items())
        return {name: rank for name, rank in ranks if rank}

    def arm_score(self, name: str) -> float | None:
        """One of the scores of `Candidates`; None where missing."""
        scores = self.of.scores.get(name)
        score = np.nan if scores is None else float(scores[self.place])
        return None if isnan(score) else score


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Candidates in no order, and how the arms ran.

    `near` are index ids of the vector arm, `nearest_ids` the first of each space. `backgrounds`:
    baseline similarity by space. `has_unknown_terms`: a query word may occur in no chunk.
    `languages`: the scope's chunks by text search configuration, where words were looked for.
    `terms` are the question's words. `graph` is the output of the graph arm.
    """

    candidates: Candidates
    bm25: Scores
    spaces: SpaceQueries
    near: Sequence[int]
    nearest_ids: Sequence[int]
    backgrounds: dict[int, float]
    arms: tuple[ArmReport, ...]
    has_unknown_terms: bool
    languages: Mapping[str, int]
    terms: Terms
    facts: ScopeFacts
    timings: dict[str, float] = field(default_factory=dict)
    graph: RankedGraph | None = None

    @property
    def nearest(self) -> float | None:
        """The best normalised similarity; None without vectors."""
        similarity = self.candidates.scores["similarity"]
        known = ~np.isnan(similarity)
        return max(
            (
                normalized_similarity(float(similarity[of_space].max()), background)
                for space_id, background in self.backgrounds.items()
                if (of_space := known & (self.candidates.space_ids == space_id)).any()
            ),
            default=None,
        )

    @property
    def degraded(self) -> tuple[str, ...]:
        """Names “vector” where a model did not work."""
        return ("vector",) if self.spaces.error else ()

    def listed(self, arm: str) -> int:
        """Number of candidates this arm listed; 0 if it did not run."""
        return sum(report.candidates for report in self.arms if report.name == arm)


def retrieve(
    query: Query,
    *,
    scope: Scope,
    mode: Mode,
    depth: int,
    vector: NDArray[np.float32] | None = None,
    vectors: Mapping[int, NDArray[np.float32]] | None = None,
    known: ScopeFacts | None = None,
    ef_search: int | None = None,
    probes: int | None = None,
) -> Retrieved:
    """Runs the arms of `mode`, each listing its best `depth` chunks in scope.

    `vector` replaces the query's embedding, or `vectors` by space id; other spaces are then
    skipped. A failing embedder leaves the lexical arm and sets `degraded`; with mode `vector`
    and no working space its InferenceError is raised. `known` are the scope's facts if just
    read. `ef_search` and `probes` override those of the spaces.
    """
    timings = {"plan": 0.0, "embed": 0.0, "database": 0.0}
    lexical = mode != "vector"
    for _ in range(MAX_TRIES):
        started = perf_counter()
        facts, known = known or cached_facts(scope), None
        timings["plan"] += _milliseconds(started)
        started = perf_counter()
        spaces = SpaceQueries()
        if mode != "lexical":
            spaces = space_queries(
                query,
                scope,
                facts,
                depth=depth,
                vector=vector,
                vectors=vectors,
                ef_search=ef_search,
                probes=probes,
            )
        timings["embed"] += _milliseconds(started)
        if spaces.error and not lexical and not spaces.queries:
            raise spaces.error
        started = perf_counter()
        retrieved, state = gather(
            query, scope=scope, facts=facts, depth=depth, lexical=lexical, spaces=spaces
        )
        timings["database"] += _milliseconds(started)
        is_known = facts.is_valid_for(state)
        facts = known = current_facts(scope, state)
        if is_known:
            break
    return replace(retrieved, facts=facts, timings=timings)


def score_additional_chunks(
    retrieved: Retrieved, chunk_ids: Sequence[int], *, query: Query, scope: Scope, depth: int
) -> Retrieved:
    """Adds chunks that no arm listed, with the scores of both arms. Chunks out of
    scope are skipped.
    """
    before, spaces = retrieved.candidates, retrieved.spaces
    known = set(before.chunk_ids.tolist())
    added = [chunk_id for chunk_id in chunk_ids if chunk_id not in known]
    if not added:
        return retrieved
    started = perf_counter()
    best = before.index_ids[before.ranks["lexical"] == 1].tolist()
    rows = _compare(
        query,
        scope=scope,
        spaces=spaces,
        candidates=added,
        best=[*best, *retrieved.nearest_ids] if spaces.queries else [],
        by="id",
    )
    columns = (
        *(before.chunk_ids, before.index_ids, before.space_ids),
        *(before.document_ids, before.collection_ids, before.media_types, before.parents),
        *(before.scores["similarity"], before.scores["likeness"]),
    )
    candidates = _candidates(
        [
            first + second if isinstance(first, list) else np.concatenate([first, second])
            for first, second in zip(columns, rows, strict=True)
        ],
        bm25=retrieved.bm25,
        near=retrieved.near,
        backgrounds=retrieved.backgrounds,
        depth=depth,
    )
    spent = retrieved.timings["database"] + _milliseconds(started)
    timings = {**retrieved.timings, "database": spent}
    return replace(retrieved, candidates=candidates, timings=timings)


def _milliseconds(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)


def gather(
    query: Query,
    *,
    scope: Scope,
    facts: ScopeFacts,
    depth: int,
    lexical: bool,
    spaces: SpaceQueries,
) -> tuple[Retrieved, ScopeState]:
    """Queries the database in one snapshot: the arms' lists, then data of the listed chunks; and
    the state of the scope. Where a vector index returned too few, vectors are scanned exactly.
    """
    may_miss = is_narrowed(query, scope, facts)
    with read_snapshot(read_connection(), spaces.settings):
        within: Ids | None = None
        near: dict[int, Ids] | None = None
        if may_miss and (narrow := exact_scan_ids(scope, query, facts, spaces=spaces, depth=depth)):
            within, near = narrow
            spaces = spaces.with_exact_scan()
        asked: dict[str, Any] = {
            "scope": scope,
            "depth": depth,
            "within": within,
        }
        to_ask = spaces if near is None else SpaceQueries()
        state, terms, found = _gather(query, lexical=lexical, spaces=to_ask, **asked)
        near = found if near is None else near
        if spaces.approximate and sum(map(len, near.values())) < depth:
            spaces = spaces.with_exact_scan()
            state, _, near = _gather(query, lexical=False, spaces=spaces, **asked)
        bm25 = terms.score()
        listed = _listed(query, bm25, scope=scope, depth=depth, within=within, may_miss=may_miss)
        all_near = [index_id for ids in near.values() for index_id in ids.tolist()]
        nearest_ids = [int(ids[0]) for ids in near.values()]
        listed_ids = listed.tolist()
        beside = set(listed_ids)
        rows = _compare(
            query,
            scope=scope,
            spaces=spaces,
            candidates=[*listed_ids, *(each for each in all_near if each not in beside)],
            best=[*listed_ids[:1], *nearest_ids] if lexical and spaces.queries else [],
            are_within=within is not None,
        )
        backgrounds: dict[int, float] = {}
        if spaces.queries and facts.is_valid_for(state):
            means = mean_vectors(scope, replace(facts, state=state), [*near])
            backgrounds = {
                space_id: float(means[space_id] @ entry.vector)
                / (float(np.linalg.norm(entry.vector)) or 1.0)
                for entry in spaces.queries
                if (space_id := entry.space.space_id) in means
            }
    candidates = _candidates(rows, bm25=bm25, near=all_near, backgrounds=backgrounds, depth=depth)
    listed_by = {name: int(np.count_nonzero(ranks)) for name, ranks in candidates.ranks.items()}
    reports = [ArmReport("lexical", "bm25", listed_by["lexical"])] if lexical else []
    if spaces.queries:
        method = "ann" if spaces.approximate else "exact"
        reports.append(ArmReport("vector", method, listed_by["vector"]))
    retrieved = Retrieved(
        candidates=candidates,
        bm25=bm25,
        spaces=spaces,
        near=all_near,
        nearest_ids=nearest_ids,
        backgrounds=backgrounds,
        arms=tuple(reports),
        has_unknown_terms=terms.has_unknown,
        languages={name: each.documents for name, each in terms.statistics.items()},
        terms=terms,
        facts=facts,
    )
    return retrieved, state


def _gather(
    query: Query,
    *,
    scope: Scope,
    depth: int,
    lexical: bool,
    spaces: SpaceQueries,
    within: Ids | None,
) -> tuple[ScopeState, Terms, dict[int, Ids]]:
    """State of the scope's facts, lexical terms, and nearest index ids by space."""
    sql, parameters = gather_statement(
        query,
        scope=scope,
        depth=depth,
        lexical=lexical,
        spaces=spaces.queries,
        within=None if within is None else within.tolist(),
    )
    prepare = within is not None or has_plain_conditions(scope, query)
    rows = fetch_rows(read_connection(), sql, parameters, prepare=prepare)
    (state,) = (
        read_state(row[6], row[7], row[9], restricted=row[5]) for row in rows if row[0] == "state"
    )
    near = {row[2]: row[9] for row in rows if row[0] == "near" and row[9] is not None}
    return state, read_terms(rows), near


def _listed(
    query: Query,
    scores: Scores,
    *,
    scope: Scope,
    depth: int,
    within: Ids | None,
    may_miss: bool,
) -> Ids:
    """Index ids of the best `depth` lexical matches in scope, best first."""
    if within is not None:
        of = scores.of(within)
        order = np.lexsort((within, -of))[:depth]
        return within[order[of[order] > 0]]
    if not may_miss:
        return scores.best(depth)[0][:depth]
    allowed: list[Ids] = []
    seen, count = 0, SCOPE_BATCH
    while sum(map(len, allowed)) < depth:
        ids, _ = scores.best(count)
        statement = in_scope_statement(query, scope=scope, index_ids=ids[seen:].tolist())
        found = fetch_rows(read_connection(), *statement)[0][0]
        allowed += [] if found is None else [found]
        if len(ids) < count:
            break
        seen, count = len(ids), count * SCOPE_BATCH_GROWTH
    return np.concatenate([*allowed, _NO_IDS])[:depth]


def _compare(
    query: Query,
    *,
    scope: Scope,
    spaces: SpaceQueries,
    candidates: Sequence[int],
    best: Sequence[int],
    are_within: bool = False,
    by: Literal["id", "index_id"] = "index_id",
) -> Columns:
    if not candidates:
        return _NO_ROWS
    sql, parameters = compare_statement(
        query,
        scope=scope,
        spaces=spaces.queries,
        candidates=candidates,
        best=best,
        are_within=are_within,
        by=by,
    )
    prepare = are_within or has_plain_conditions(scope, query)
    (row,) = fetch_rows(read_connection(), sql, parameters, prepare=prepare)
    if row[0] is None:
        return _NO_ROWS
    chunk_ids, index_ids, space_ids, documents, collections, media_types, parents, *scores = row
    lists = documents.tolist(), collections.tolist(), media_types, parents.tolist()
    return chunk_ids, index_ids, space_ids, *lists, *scores


def _candidates(
    columns: Columns,
    *,
    bm25: Scores,
    near: Sequence[int],
    backgrounds: Mapping[int, float],
    depth: int,
) -> Candidates:
    *found, similarity, likeness = columns
    chunk_ids, index_ids, space_ids, *_ = found
    lexical = bm25.of(index_ids)
    close = normalize_across_spaces(similarity, space_ids, backgrounds)
    listed = set(near)
    is_near = np.array([each in listed for each in index_ids.tolist()], bool) & ~np.isnan(close)
    scores = {
        "lexical": np.where(lexical > 0, lexical, np.nan),
        "similarity": similarity,
        "closeness": close,
        "likeness": likeness,
    }
    ranks = {
        "lexical": _ranks(lexical, lexical > 0, chunk_ids, depth),
        "vector": _ranks(close, is_near, chunk_ids, depth),
    }
    return Candidates(*[*found, scores, ranks])


def _ranks(scores: Numbers, listed: NDArray[np.bool_], chunk_ids: Ids, depth: int) -> Ids:
    """1-based ranks of the best `depth` listed ones, 0 for all others."""
    ranks = np.zeros(len(scores), np.int64)
    at = np.flatnonzero(listed)
    best = at[np.lexsort((chunk_ids[at], -scores[at]))][:depth]
    ranks[best] = np.arange(1, len(best) + 1)
    return ranks

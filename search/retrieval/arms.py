"""Running the arms: what each listed, and how it worked. Begin with `retrieve`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isnan
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from common.bm25 import Ids, Scores
from common.fusion import Numbers, normalize_across_spaces, normalized_similarity
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
    Statement,
    compare_statement,
    exact_scan_ids,
    gather_statement,
    in_scope_statement,
    is_narrowed,
    space_queries,
)

#: Facts rarely change during a search; changing repeatedly within one search would be a bug.
MAX_TRIES = 3
#: Best lexical matches checked for being in scope at once, and the growth of further batches.
SCOPE_BATCH = 1_000
SCOPE_BATCH_GROWTH = 8


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """Chunk data from the database: arrays of one length. Parent -1 is none. `similarity` to the
    query and `feedback_similarity` to the mean direction of the arms' best are NaN for chunks
    without a vector in a searched space.
    """

    chunk_ids: Ids
    index_ids: Ids
    space_ids: Ids
    document_ids: list[int]
    collection_ids: list[int]
    media_types: list[str]
    parents: list[int]
    similarity: Numbers
    feedback_similarity: Numbers

    def joined(self, other: "ChunkRows") -> "ChunkRows":
        """These rows followed by `other`."""
        both = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        joined: list[Any] = [
            first + second if isinstance(first, list) else np.concatenate([first, second])
            for first, second in both
        ]
        return ChunkRows(*joined)


_NO_IDS, _NO_SCORES = np.zeros(0, np.int64), np.zeros(0)
NO_CHUNK_ROWS = ChunkRows(_NO_IDS, _NO_IDS, _NO_IDS, [], [], [], [], _NO_SCORES, _NO_SCORES)


@dataclass(slots=True)
class Candidates:
    """Chunks that some arm listed, with the scores of all arms: arrays of one length.

    `scores`: `lexical` (BM25), `similarity` (of the chunk's own model), `closeness` (normalised
    across models), `likeness` (cosine to the mean direction of both arms' best passages),
    `graph`; NaN where missing. `ranks` are 1-based ranks in the arms' lists, 0 if not listed.
    """

    rows: ChunkRows
    scores: dict[str, Numbers]
    ranks: dict[str, Ids]

    @property
    def chunk_ids(self) -> Ids:
        return self.rows.chunk_ids

    def __len__(self) -> int:
        return len(self.rows.chunk_ids)

    def __iter__(self) -> Iterator["Candidate"]:
        return (Candidate(self, place) for place in range(len(self)))

    def with_graph(self, scores: Mapping[int, float]) -> "Candidates":
        """Adds scores and ranks of the graph arm, given by chunk id."""
        order = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))
        places = {chunk_id: rank for rank, chunk_id in enumerate(order, start=1)}
        ids = self.chunk_ids.tolist()
        graph = np.array([scores.get(chunk_id, np.nan) for chunk_id in ids], np.float64)
        ranks = np.array([places.get(chunk_id, 0) for chunk_id in ids], np.int64)
        return replace(
            self, scores={**self.scores, "graph": graph}, ranks={**self.ranks, "graph": ranks}
        )


class Candidate:
    """View of one row of `Candidates`."""

    __slots__ = ("_of", "place")

    def __init__(self, of: Candidates, place: int) -> None:
        self._of = of
        self.place = place

    @property
    def chunk_id(self) -> int:
        return int(self._of.rows.chunk_ids[self.place])

    @property
    def document_id(self) -> int:
        return self._of.rows.document_ids[self.place]

    @property
    def collection_id(self) -> int:
        return self._of.rows.collection_ids[self.place]

    @property
    def media_type(self) -> str:
        return self._of.rows.media_types[self.place]

    @property
    def parent(self) -> int | None:
        """Chunks of a document with equal parent are parts of one passage."""
        parent = self._of.rows.parents[self.place]
        return None if parent < 0 else parent

    @property
    def lexical(self) -> float | None:
        return self._score("lexical")

    @property
    def similarity(self) -> float | None:
        return self._score("similarity")

    @property
    def closeness(self) -> float | None:
        return self._score("closeness")

    @property
    def feedback_similarity(self) -> float | None:
        return self._score("likeness")

    @property
    def graph(self) -> float | None:
        return self._score("graph")

    @property
    def ranks(self) -> dict[str, int]:
        """Its 1-based ranks in the arms that listed it."""
        of = ((name, int(ranks[self.place])) for name, ranks in self._of.ranks.items())
        return {name: rank for name, rank in of if rank}

    def _score(self, name: str) -> float | None:
        scores = self._of.scores.get(name)
        score = np.nan if scores is None else float(scores[self.place])
        return None if isnan(score) else score


@dataclass(frozen=True, slots=True)
class ArmResults:
    """Output of the arms. `backgrounds`: baseline similarity by space; `near`: index ids of the
    vector arm; `nearest`: the first of each space.
    """

    spaces: SpaceQueries
    state: ScopeState
    backgrounds: dict[int, float]
    scores: Scores
    rows: ChunkRows
    near: Sequence[int]
    nearest: tuple[int, ...] = ()
    has_unknown_terms: bool = False


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Candidates in no order, and how the arms ran.

    `gathered` is the raw output, `graph` that of the graph arm. `nearest` is the best
    normalised similarity; None without vectors.
    """

    candidates: Candidates
    facts: ScopeFacts
    arms: tuple[ArmReport, ...]
    degraded: tuple[str, ...]
    timings: dict[str, float]
    gathered: ArmResults
    nearest: float | None = None
    graph: RankedGraph | None = None

    @property
    def has_unknown_terms(self) -> bool:
        """Whether a query word may occur in no chunk."""
        return self.gathered.has_unknown_terms

    def listed(self, arm: str) -> int:
        """Number of candidates this arm listed; 0 if it did not run."""
        return sum(report.candidates for report in self.arms if report.name == arm)

    def with_method(self, arm: str, method: str) -> "Retrieved":
        """A copy with another method name for this arm."""
        arms = [replace(each, method=method) if each.name == arm else each for each in self.arms]
        return replace(self, arms=tuple(arms))


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
            spaces = space_queries(query, scope, facts, depth=depth, vector=vector, vectors=vectors)
            spaces = spaces.with_index_options(ef_search=ef_search, probes=probes)
        timings["embed"] += _milliseconds(started)
        if spaces.error and not lexical and not spaces.queries:
            raise spaces.error
        started = perf_counter()
        gathered = gather(
            query, scope=scope, facts=facts, depth=depth, lexical=lexical, spaces=spaces
        )
        timings["database"] += _milliseconds(started)
        is_known = facts.is_valid_for(gathered.state)
        facts = known = current_facts(scope, gathered.state)
        if is_known:
            break
    candidates = _candidates(gathered, depth)
    return Retrieved(
        candidates=candidates,
        facts=facts,
        arms=_reports(candidates, lexical=lexical, spaces=gathered.spaces),
        degraded=("vector",) if spaces.error else (),
        timings=timings,
        gathered=gathered,
        nearest=_nearest(gathered),
    )


def score_additional_chunks(
    retrieved: Retrieved, chunk_ids: Sequence[int], *, query: Query, scope: Scope, depth: int
) -> Retrieved:
    """Adds chunks that no arm listed, with the scores of both arms. Chunks out of
    scope are skipped.
    """
    known = set(retrieved.candidates.chunk_ids.tolist())
    added = [chunk_id for chunk_id in chunk_ids if chunk_id not in known]
    if not added:
        return retrieved
    started = perf_counter()
    before = retrieved.gathered
    candidates = retrieved.candidates
    best = candidates.rows.index_ids[candidates.ranks["lexical"] == 1].tolist()
    rows = _compare(
        query,
        scope=scope,
        spaces=before.spaces,
        candidates=added,
        best=[*best, *before.nearest] if before.spaces.queries else [],
        by="id",
    )
    gathered = replace(before, rows=before.rows.joined(rows))
    spent = retrieved.timings["database"] + _milliseconds(started)
    return replace(
        retrieved,
        gathered=gathered,
        candidates=_candidates(gathered, depth),
        timings={**retrieved.timings, "database": spent},
    )


def _nearest(gathered: ArmResults) -> float | None:
    rows = gathered.rows
    known = ~np.isnan(rows.similarity)
    return max(
        (
            normalized_similarity(float(rows.similarity[of_space].max()), background)
            for space_id, background in gathered.backgrounds.items()
            if (of_space := known & (rows.space_ids == space_id)).any()
        ),
        default=None,
    )


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
) -> ArmResults:
    """Queries the database in one snapshot: the arms' lists, then data of the listed chunks. Where
    a vector index returned too few, vectors are scanned exactly.
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
            "settled": facts.state.settled,
            "within": within,
        }
        to_ask = spaces if near is None else SpaceQueries()
        state, terms, found = _gather(query, lexical=lexical, spaces=to_ask, **asked)
        near = found if near is None else near
        if spaces.approximate and sum(map(len, near.values())) < depth:
            spaces = spaces.with_exact_scan()
            state, _, near = _gather(query, lexical=False, spaces=spaces, **asked)
        scores = terms.score()
        listed = _listed(query, scores, scope=scope, depth=depth, within=within, may_miss=may_miss)
        all_near = [index_id for ids in near.values() for index_id in ids.tolist()]
        nearest = tuple(int(ids[0]) for ids in near.values())
        listed_ids = listed.tolist()
        beside = set(listed_ids)
        rows = _compare(
            query,
            scope=scope,
            spaces=spaces,
            candidates=[*listed_ids, *(each for each in all_near if each not in beside)],
            best=[*listed_ids[:1], *nearest] if lexical and spaces.queries else [],
            are_within=within is not None,
        )
        backgrounds: dict[int, float] = {}
        if spaces.queries and facts.is_valid_for(state):
            means = mean_vectors(scope, facts.counted(state), [*near])
            backgrounds = {
                space_id: float(means[space_id] @ entry.vector)
                / (float(np.linalg.norm(entry.vector)) or 1.0)
                for entry in spaces.queries
                if (space_id := entry.space.space_id) in means
            }
    return ArmResults(
        spaces=spaces,
        state=state,
        backgrounds=backgrounds,
        scores=scores,
        rows=rows,
        near=all_near,
        nearest=nearest,
        has_unknown_terms=terms.has_unknown,
    )


def _gather(
    query: Query,
    *,
    scope: Scope,
    depth: int,
    lexical: bool,
    spaces: SpaceQueries,
    settled: bool,
    within: Ids | None,
) -> tuple[ScopeState, Terms, dict[int, Ids]]:
    """State of the scope's facts, lexical terms, and nearest index ids by space."""
    statement = gather_statement(
        query,
        scope=scope,
        depth=depth,
        lexical=lexical,
        spaces=spaces.queries,
        settled=settled,
        within=None if within is None else within.tolist(),
    )
    rows = _fetch(statement)
    (state,) = (
        read_state(row[6], row[7], row[9], restricted=row[5], settled=row[1])
        for row in rows
        if row[0] == "state"
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
        found = _fetch(statement)[0][0]
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
) -> ChunkRows:
    if not candidates:
        return NO_CHUNK_ROWS
    statement = compare_statement(
        query,
        scope=scope,
        spaces=spaces.queries,
        candidates=candidates,
        best=best,
        are_within=are_within,
        by=by,
    )
    ((chunks, indexed, spaces_of, documents, collections, media_types, parents, *said),) = _fetch(
        statement
    )
    if chunks is None:
        return NO_CHUNK_ROWS
    lists = documents.tolist(), collections.tolist(), media_types, parents.tolist()
    return ChunkRows(chunks, indexed, spaces_of, *lists, *said)


def _fetch(statement: Statement) -> list[tuple[Any, ...]]:
    return fetch_rows(
        read_connection(), statement.sql, statement.parameters, prepare=statement.prepare
    )


def _candidates(gathered: ArmResults, depth: int) -> Candidates:
    rows = gathered.rows
    bm25 = gathered.scores.of(rows.index_ids)
    close = normalize_across_spaces(rows.similarity, rows.space_ids, gathered.backgrounds)
    listed = set(gathered.near)
    near = np.array([each in listed for each in rows.index_ids.tolist()], bool) & ~np.isnan(close)
    return Candidates(
        rows=rows,
        scores={
            "lexical": np.where(bm25 > 0, bm25, np.nan),
            "similarity": rows.similarity,
            "closeness": close,
            "likeness": rows.feedback_similarity,
        },
        ranks={
            "lexical": _ranks(bm25, bm25 > 0, rows.chunk_ids, depth),
            "vector": _ranks(close, near, rows.chunk_ids, depth),
        },
    )


def _ranks(scores: Numbers, listed: NDArray[np.bool_], chunk_ids: Ids, depth: int) -> Ids:
    """1-based ranks of the best `depth` listed ones, 0 for all others."""
    ranks = np.zeros(len(scores), np.int64)
    at = np.flatnonzero(listed)
    best = at[np.lexsort((chunk_ids[at], -scores[at]))][:depth]
    ranks[best] = np.arange(1, len(best) + 1)
    return ranks


def _reports(
    candidates: Candidates, *, lexical: bool, spaces: SpaceQueries
) -> tuple[ArmReport, ...]:
    def listed(name: str) -> int:
        return int(np.count_nonzero(candidates.ranks[name]))

    reports = [ArmReport("lexical", "bm25", listed("lexical"))] if lexical else []
    if spaces.queries:
        method = "ann" if spaces.approximate else "exact"
        reports.append(ArmReport("vector", method, listed("vector")))
    return tuple(reports)

"""Running the arms: what each listed, and how it worked. Begin with `retrieve`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isnan
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from common.bm25 import Ids, Scores
from common.closeness import closeness, on_one_scale
from common.fusion import Numbers
from common.postgresql.binary import fetch, snapshot
from common.replicas import read_connection
from documents.lexical_search import Terms, read_terms
from graph.retrieval import RankedGraph
from search.query import Query
from search.results import ArmReport, Mode, Scope
from search.retrieval.facts import (
    ScopeFacts,
    State,
    facts_now,
    known_facts,
    mean_vectors,
    read_state,
)
from search.retrieval.spaces import SpaceQueries, is_narrowed, narrow_ids, space_queries
from search.retrieval.statement import (
    Statement,
    compare_statement,
    gather_statement,
    in_scope_statement,
)

#: Chunks begin to move to a space that was not asked about once in a long while; twice in a row
#: within one search would be a fault.
TRIES = 3
#: So many of the best by words are looked up in a scope at once, then so many times as many.
LOOKED_UP = 1_000
GROWTH = 8


@dataclass(frozen=True, slots=True)
class Rows:
    """What the database says of chunks: arrays of one length, and lists of what is asked of one
    chunk at a time. No parent is -1; `similarity` to the question, and `likeness` to the direction
    between the best of both arms, are NaN for chunks without a vector in a space that was asked."""

    chunk_ids: Ids
    index_ids: Ids
    space_ids: Ids
    document_ids: list[int]
    collection_ids: list[int]
    media_types: list[str]
    parents: list[int]
    similarity: Numbers
    likeness: Numbers

    def joined(self, other: "Rows") -> "Rows":
        """With others after them."""
        both = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        joined: list[Any] = [
            first + second if isinstance(first, list) else np.concatenate([first, second])
            for first, second in both
        ]
        return Rows(*joined)


_NO_IDS, _NO_SCORES = np.zeros(0, np.int64), np.zeros(0)
NO_ROWS = Rows(_NO_IDS, _NO_IDS, _NO_IDS, [], [], [], [], _NO_SCORES, _NO_SCORES)


@dataclass(slots=True)
class Candidates:
    """Chunks that some arm listed, with what every arm says of them: arrays of one length.

    `scores` by name: `lexical` (BM25), `similarity` (by the chunk's own model), `closeness` (the
    same on one scale for all models), `likeness` (cosine to the direction between the best passages
    of both arms) and `graph`; NaN where an arm says nothing. `ranks` are 1-based places in the
    lists of the arms, 0 for a chunk that an arm did not list.
    """

    rows: Rows
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
        """With what the graph arm gives to chunks, by id."""
        order = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))
        places = {chunk_id: rank for rank, chunk_id in enumerate(order, start=1)}
        ids = self.chunk_ids.tolist()
        graph = np.array([scores.get(chunk_id, np.nan) for chunk_id in ids], np.float64)
        ranks = np.array([places.get(chunk_id, 0) for chunk_id in ids], np.int64)
        return replace(
            self, scores={**self.scores, "graph": graph}, ranks={**self.ranks, "graph": ranks}
        )


class Candidate:
    """One of the candidates."""

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
        """Chunks of a document with the same one are parts of one passage."""
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
    def likeness(self) -> float | None:
        return self._score("likeness")

    @property
    def graph(self) -> float | None:
        return self._score("graph")

    @property
    def ranks(self) -> dict[str, int]:
        """Its 1-based places in the lists of the arms that listed it."""
        of = ((name, int(ranks[self.place])) for name, ranks in self._of.ranks.items())
        return {name: rank for name, rank in of if rank}

    def _score(self, name: str) -> float | None:
        scores = self._of.scores.get(name)
        score = np.nan if scores is None else float(scores[self.place])
        return None if isnan(score) else score


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the arms found. `state` is that of the scope's facts, `backgrounds` the usual similarity
    in each space that was asked and holds chunks, `near` index ids that the vector arm listed and
    `nearest` the first of each space."""

    spaces: SpaceQueries
    state: State
    backgrounds: dict[int, float]
    scores: Scores
    rows: Rows
    near: Sequence[int]
    nearest: tuple[int, ...] = ()
    has_unknown_terms: bool = False


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the arms brought, in no order, and how they worked.

    `gathered` is what their statements said, `graph` what the graph arm did where it ran. `nearest`
    is how close the nearest passage is, on the scale of all models; None without one.
    """

    candidates: Candidates
    facts: ScopeFacts
    arms: tuple[ArmReport, ...]
    degraded: tuple[str, ...]
    timings: dict[str, float]
    gathered: Gathered
    nearest: float | None = None
    graph: RankedGraph | None = None

    @property
    def has_unknown_terms(self) -> bool:
        """Whether a word of the query may occur in no chunk."""
        return self.gathered.has_unknown_terms

    def listed(self, arm: str) -> int:
        """How many candidates this arm listed; 0 for one that did not run."""
        return sum(report.candidates for report in self.arms if report.name == arm)

    def with_method(self, arm: str, method: str) -> "Retrieved":
        """The same, with another word for how this arm worked."""
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
    """Run the arms of `mode`, each listing its best `depth` chunks in scope.

    `vector` is asked instead of an embedding of the query, or `vectors` by id of their space; other
    spaces are then not asked. An embedder that does not work takes
    its space out of the vector arm and leaves the lexical one; the answer says so. With mode
    `vector` and no working space there is nothing left, and the InferenceError is raised. `known`
    are the scope's facts where they have just been read. `ef_search` and `probes` go before what
    the spaces say.
    """
    timings = {"plan": 0.0, "embed": 0.0, "database": 0.0}
    lexical = mode != "vector"
    for _ in range(TRIES):
        started = perf_counter()
        facts, known = known or known_facts(scope), None
        timings["plan"] += _milliseconds(started)
        started = perf_counter()
        spaces = SpaceQueries()
        if mode != "lexical":
            spaces = space_queries(query, scope, facts, depth=depth, vector=vector, vectors=vectors)
            spaces = spaces.looking_at(ef_search=ef_search, probes=probes)
        timings["embed"] += _milliseconds(started)
        if spaces.error and not lexical and not spaces.queries:
            raise spaces.error
        started = perf_counter()
        gathered = gather(
            query, scope=scope, facts=facts, depth=depth, lexical=lexical, spaces=spaces
        )
        timings["database"] += _milliseconds(started)
        is_known = facts.are_of(gathered.state)
        facts = known = facts_now(scope, gathered.state)
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


def with_scores_of(
    retrieved: Retrieved, chunk_ids: Sequence[int], *, query: Query, scope: Scope, depth: int
) -> Retrieved:
    """With chunks that no arm listed among the candidates, and what both arms say of them. Those
    that are not in scope are passed over."""
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


def _nearest(gathered: Gathered) -> float | None:
    rows = gathered.rows
    known = ~np.isnan(rows.similarity)
    return max(
        (
            closeness(float(rows.similarity[of_space].max()), background)
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
) -> Gathered:
    """Ask the database, in one snapshot: what the arms start from, then what there is to say of
    the best. Where an index of vectors brought too few, they are compared one by one."""
    may_miss = is_narrowed(query, scope, facts)
    with snapshot(read_connection(), spaces.settings):
        within: Ids | None = None
        near: dict[int, Ids] | None = None
        if may_miss and (narrow := narrow_ids(scope, query, facts, spaces=spaces, depth=depth)):
            within, near = narrow
            spaces = spaces.exactly()
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
            spaces = spaces.exactly()
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
        if spaces.queries and facts.are_of(state):
            means = mean_vectors(scope, facts.counted(state), [*near])
            backgrounds = {
                entry.space.space_id: _mean_similarity(means[entry.space.space_id], entry.vector)
                for entry in spaces.queries
                if entry.space.space_id in means
            }
    return Gathered(
        spaces=spaces,
        state=state,
        backgrounds=backgrounds,
        scores=scores,
        rows=rows,
        near=all_near,
        nearest=nearest,
        has_unknown_terms=terms.has_unknown,
    )


def _mean_similarity(mean: Numbers, vector: NDArray[np.float32]) -> float:
    length = float(np.linalg.norm(vector))
    return float(mean @ vector) / length if length else 0.0


def _gather(
    query: Query,
    *,
    scope: Scope,
    depth: int,
    lexical: bool,
    spaces: SpaceQueries,
    settled: bool,
    within: Ids | None,
) -> tuple[State, Terms, dict[int, Ids]]:
    """The state of the scope's facts, the question's terms, and by space the nearest index ids."""
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
    """Index ids of the best `depth` by words that are in scope, best first."""
    if within is not None:
        of = scores.of(within)
        order = np.lexsort((within, -of))[:depth]
        return within[order[of[order] > 0]]
    if not may_miss:
        return scores.best(depth)[0][:depth]
    allowed: list[Ids] = []
    seen, count = 0, LOOKED_UP
    while sum(map(len, allowed)) < depth:
        ids, _ = scores.best(count)
        statement = in_scope_statement(query, scope=scope, index_ids=ids[seen:].tolist())
        found = _fetch(statement)[0][0]
        allowed += [] if found is None else [found]
        if len(ids) < count:
            break
        seen, count = len(ids), count * GROWTH
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
) -> Rows:
    if not candidates:
        return NO_ROWS
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
        return NO_ROWS
    lists = documents.tolist(), collections.tolist(), media_types, parents.tolist()
    return Rows(chunks, indexed, spaces_of, *lists, *said)


def _fetch(statement: Statement) -> list[tuple[Any, ...]]:
    return fetch(read_connection(), statement.sql, statement.parameters, prepare=statement.prepare)


def _candidates(gathered: Gathered, depth: int) -> Candidates:
    rows = gathered.rows
    bm25 = gathered.scores.of(rows.index_ids)
    close = on_one_scale(rows.similarity, rows.space_ids, gathered.backgrounds)
    listed = set(gathered.near)
    near = np.array([each in listed for each in rows.index_ids.tolist()], bool) & ~np.isnan(close)
    return Candidates(
        rows=rows,
        scores={
            "lexical": np.where(bm25 > 0, bm25, np.nan),
            "similarity": rows.similarity,
            "closeness": close,
            "likeness": rows.likeness,
        },
        ranks={
            "lexical": _ranks(bm25, bm25 > 0, rows.chunk_ids, depth),
            "vector": _ranks(close, near, rows.chunk_ids, depth),
        },
    )


def _ranks(scores: Numbers, listed: NDArray[np.bool_], chunk_ids: Ids, depth: int) -> Ids:
    """1-based places of the best `depth` of those that are listed, 0 for all others."""
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

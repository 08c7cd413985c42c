"""Running the arms: what each listed, and how it worked."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from common.closeness import closeness, on_one_scale
from common.fence import unfenced
from common.replicas import read_alias, read_connection
from graph.retrieval import RankedGraph
from search.query import Query
from search.results import ArmReport, Mode, Scope
from search.retrieval.facts import ScopeFacts, scope_facts
from search.retrieval.spaces import SpaceQueries, set_index_options, space_queries
from search.retrieval.statement import FOUND_COLUMNS, addition_statement, build_statement

#: Chunks begin to move to a space that was not asked about once in a long while; twice in a row
#: within one search would be a fault.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that some arm listed, with what every arm says of it.

    `similarity` is its own model's; `closeness` the same on one scale for all models; `likeness`
    the cosine to the direction between the best passages of both arms; `graph` what the graph arm
    gives it. `ranks` are its 1-based places in the lists of the arms that listed it. Those of a
    document with the same `parent` are parts of one passage.
    """

    chunk_id: int
    document_id: int
    collection_id: int
    media_type: str
    lexical: float | None
    similarity: float | None
    closeness: float | None
    likeness: float | None
    ranks: dict[str, int]
    parent: int | None = None
    graph: float | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What the arms brought, in no order, and how they worked.

    `found` is what their statement said, `graph` what the graph arm did where it ran. `nearest` is
    how close the nearest passage is, on the scale of all models; None without one. `strange`: a
    word of the query may stand nowhere.
    """

    candidates: tuple[Candidate, ...]
    facts: ScopeFacts
    arms: tuple[ArmReport, ...]
    degraded: tuple[str, ...]
    timings: dict[str, float]
    found: "Found"
    nearest: float | None = None
    strange: bool = False
    graph: RankedGraph | None = None

    def listed(self, arm: str) -> int:
        """How many candidates this arm listed; 0 for one that did not run."""
        return sum(report.candidates for report in self.arms if report.name == arm)

    def with_method(self, arm: str, method: str) -> "Retrieved":
        """The same, with another word for how this arm worked."""
        arms = [replace(each, method=method) if each.name == arm else each for each in self.arms]
        return replace(self, arms=tuple(arms))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the statement that stands for a chunk."""

    chunk_id: int
    lexical: float | None
    similarity: float | None
    likeness: float | None
    near: bool
    space_id: int
    document_id: int
    collection_id: int
    media_type: str
    parent: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """What the statement said: `needed` are the spaces that hold chunks of the scope,
    `backgrounds` the usual similarity in those that hold any, `left_out` whether chunks that have
    nothing but a common word were passed over, `strange` whether a word of the query may stand in
    no chunk."""

    rows: tuple[Row, ...]
    spaces: SpaceQueries
    needed: frozenset[int]
    backgrounds: dict[int, float]
    left_out: bool = False
    strange: bool = False


def retrieve(
    query: Query,
    *,
    scope: Scope,
    mode: Mode,
    depth: int,
    vector: NDArray[np.float32] | None = None,
    vectors: Mapping[int, NDArray[np.float32]] | None = None,
    known: ScopeFacts | None = None,
) -> Retrieved:
    """Run the arms of `mode`, each listing its best `depth` chunks in scope.

    `vector` is asked instead of an embedding of the query, or `vectors` by id of their space; other
    spaces are then not asked. An embedder that does not work takes
    its space out of the vector arm and leaves the lexical one; the answer says so. With mode
    `vector` and no working space there is nothing left, and the InferenceError is raised. `known`
    are the scope's facts where they have just been read.
    """
    timings = {"plan": 0.0, "embed": 0.0, "database": 0.0}
    lexical = mode != "vector"
    for _ in range(TRIES):
        started = perf_counter()
        facts, known = known or scope_facts(scope), None
        timings["plan"] += _milliseconds(started)
        started = perf_counter()
        spaces = SpaceQueries()
        if mode != "lexical":
            spaces = space_queries(query, scope, facts, depth=depth, vector=vector, vectors=vectors)
        timings["embed"] += _milliseconds(started)
        if spaces.error and not lexical and not spaces.queries:
            raise spaces.error
        started = perf_counter()
        found = _search(query, scope=scope, depth=depth, lexical=lexical, spaces=spaces)
        timings["database"] += _milliseconds(started)
        if mode == "lexical" or found.needed <= spaces.ids:
            break
    candidates = _candidates(found, depth)
    return Retrieved(
        candidates=candidates,
        facts=facts,
        arms=_reports(candidates, lexical=lexical, spaces=found.spaces),
        degraded=("vector",) if spaces.error else (),
        timings=timings,
        found=found,
        nearest=_nearest(found),
        strange=found.strange,
    )


def with_scores_of(
    retrieved: Retrieved, chunk_ids: Sequence[int], *, query: Query, scope: Scope, depth: int
) -> Retrieved:
    """With chunks that no arm listed among the candidates, and what both arms say of them. Those
    that are not in scope are passed over."""
    known = {candidate.chunk_id for candidate in retrieved.candidates}
    strangers = [chunk_id for chunk_id in chunk_ids if chunk_id not in known]
    if not strangers:
        return retrieved
    started = perf_counter()
    statement = addition_statement(
        query,
        scope=scope,
        spaces=retrieved.found.spaces.queries,
        chunk_ids=strangers,
        best_ids=_best(retrieved),
    )
    with unfenced(), read_connection().cursor() as cursor:  # as in `_run`
        cursor.execute(statement.sql, statement.parameters)
        rows = [Row(*row) for row in cursor.fetchall()]
    found = replace(retrieved.found, rows=(*retrieved.found.rows, *rows))
    spent = retrieved.timings["database"] + _milliseconds(started)
    return replace(
        retrieved,
        found=found,
        candidates=_candidates(found, depth),
        timings={**retrieved.timings, "database": spent},
    )


def _best(retrieved: Retrieved) -> list[int]:
    """The first of each arm; of vectors, of each space. By words alone nothing is likened."""
    if not retrieved.found.spaces.queries:
        return []
    best: dict[int, tuple[float, int]] = {}
    for row in retrieved.found.rows:
        if row.near and row.similarity is not None:
            best[row.space_id] = max(
                best.get(row.space_id, (-2.0, 0)), (row.similarity, -row.chunk_id)
            )
    firsts = [each.chunk_id for each in retrieved.candidates if each.ranks.get("lexical") == 1]
    return [*firsts, *(-chunk_id for _, chunk_id in best.values())]


def _nearest(found: Found) -> float | None:
    return max(
        (
            closeness(row.similarity, found.backgrounds[row.space_id])
            for row in found.rows
            if row.similarity is not None and row.space_id in found.backgrounds
        ),
        default=None,
    )


def _milliseconds(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)


def _search(
    query: Query, *, scope: Scope, depth: int, lexical: bool, spaces: SpaceQueries
) -> Found:
    """Ask, look whether enough was found, and where a shortcut cost too much, ask without it."""
    found = _run(query, scope=scope, depth=depth, lexical=lexical, spaces=spaces)
    exactly = spaces.approximate and sum(row.near for row in found.rows) < depth
    # Words that are rare in the collection may be missing from the part that this scope sees.
    any_word = found.left_out and sum(bool(row.lexical) for row in found.rows) < depth // 2
    if exactly:
        spaces = replace(spaces, queries=tuple(replace(e, exact=True) for e in spaces.queries))
    if exactly or any_word:
        return _run(
            query, scope=scope, depth=depth, lexical=lexical, spaces=spaces, any_word=any_word
        )
    return found


def _run(
    query: Query,
    *,
    scope: Scope,
    depth: int,
    lexical: bool,
    spaces: SpaceQueries,
    any_word: bool = False,
) -> Found:
    """Run it; settings of the approximate scan live only as long as the transaction."""
    statement = build_statement(
        query,
        scope=scope,
        depth=depth,
        lexical=lexical,
        spaces=spaces.queries,
        stride=spaces.stride,
        any_word=any_word,
    )
    # Without settings no transaction of its own: it would cost two round trips.
    alone = transaction.atomic(using=read_alias()) if spaces.approximate else nullcontext()
    # It names workspace, collections and access itself, and gives ids and numbers. Under a policy
    # PostgreSQL would look no word up in its index: docs/decisions/0045.
    with unfenced(), alone, read_connection().cursor() as cursor:
        if spaces.approximate:
            set_index_options(cursor, ef_search=spaces.ef_search, probes=spaces.probes)
        cursor.execute(statement.sql, statement.parameters)
        rows = cursor.fetchall()
    whole = next(row for row in rows if row[0] is None)
    needed, backgrounds, left_out, strange = whole[FOUND_COLUMNS:]
    return Found(
        rows=tuple(Row(*row[:FOUND_COLUMNS]) for row in rows if row[0] is not None),
        spaces=spaces,
        needed=frozenset(needed),
        backgrounds={
            entry.space.space_id: level
            for entry, level in zip(spaces.queries, backgrounds, strict=True)
            if level is not None
        },
        left_out=left_out,
        strange=bool(strange),
    )


def _candidates(found: Found, depth: int) -> tuple[Candidate, ...]:
    rows = found.rows
    close = on_one_scale(
        {
            row.chunk_id: (row.space_id, row.similarity)
            for row in rows
            if row.similarity is not None
        },
        found.backgrounds,
    )
    lexical = [(-row.lexical, row.chunk_id) for row in rows if row.lexical]
    near = [(-close[row.chunk_id], row.chunk_id) for row in rows if row.near]
    ranks = {"lexical": _ranks(lexical, depth), "vector": _ranks(near, depth)}
    return tuple(
        Candidate(
            chunk_id=row.chunk_id,
            document_id=row.document_id,
            collection_id=row.collection_id,
            media_type=row.media_type,
            lexical=row.lexical,
            similarity=row.similarity,
            closeness=close.get(row.chunk_id),
            likeness=row.likeness,
            ranks={name: of[row.chunk_id] for name, of in ranks.items() if row.chunk_id in of},
            parent=row.parent,
        )
        for row in rows
    )


def _ranks(order: list[tuple[float, int]], depth: int) -> dict[int, int]:
    return {chunk_id: rank for rank, (_, chunk_id) in enumerate(sorted(order)[:depth], start=1)}


def _reports(
    candidates: tuple[Candidate, ...], *, lexical: bool, spaces: SpaceQueries
) -> tuple[ArmReport, ...]:
    def listed(name: str) -> int:
        return sum(name in candidate.ranks for candidate in candidates)

    reports = [ArmReport("lexical", "bm25", listed("lexical"))] if lexical else []
    if spaces.queries:
        method = "ann" if spaces.approximate else "exact"
        reports.append(ArmReport("vector", method, listed("vector")))
    return tuple(reports)

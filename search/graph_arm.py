"""The graph as a third arm: passages that hang together with what the others found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from common.fusion import Method
from graph.ranking import SEEDS, weight
from graph.retrieval import rank_passages
from search.query import Query
from search.ranking import Ranked, RankingOptions, fused_hits
from search.results import ArmReport, Scope
from search.retrieval.arms import Candidate, Retrieved, with_scores_of
from search.retrieval.scope import scope_conditions

#: So many passages it lists.
LISTED = 100
#: Beside ranks, of which each arm's weigh alike. Beside scores it follows the question.
RANKS_WEIGHT = 1.0


def with_graph(
    query: Query,
    retrieved: Retrieved,
    weights: Mapping[str, float],
    options: RankingOptions,
    *,
    scope: Scope,
) -> tuple[Retrieved, Mapping[str, float]]:
    """With what the graph knows of the candidates, and with the passages that it adds to them:
    those get the scores of both other arms, too. And what each arm counts for now: the graph, where
    `weights` do not say, as much as the best hit stands out."""
    started = perf_counter()
    fused = fused_hits(query, retrieved, weights, options)
    best = fused[:SEEDS]
    within, parameters = scope_conditions(scope, query)
    arm = rank_passages(
        question=query.text,
        workspace_id=scope.workspace_id,
        seeds={hit.candidate.chunk_id: hit.fused.score for hit in best},
        within=within,
        parameters=parameters,
        limit=LISTED,
    )
    spent = round((perf_counter() - started) * 1000, 3)
    retrieved = with_scores_of(
        retrieved, list(arm.scores), query=query, scope=scope, depth=options.depth
    )
    order = sorted(arm.scores, key=lambda chunk_id: (-arm.scores[chunk_id], chunk_id))
    ranks = {chunk_id: rank for rank, chunk_id in enumerate(order, start=1)}
    with_paths = replace(
        retrieved,
        candidates=tuple(_scored(each, arm.scores, ranks) for each in retrieved.candidates),
        arms=(*retrieved.arms, ArmReport("graph", "paths", len(ranks))),
        timings={**retrieved.timings, "graph": spent},
        graph=arm,
    )
    return with_paths, {"graph": _weight(fused, options.method), **weights}


def _weight(fused: Sequence[Ranked], method: Method) -> float:
    if method == "rrf":
        return RANKS_WEIGHT
    return weight((hit.candidate.document_id, hit.fused.score) for hit in fused)


def _scored(
    candidate: Candidate, scores: Mapping[int, float], ranks: Mapping[int, int]
) -> Candidate:
    score = scores.get(candidate.chunk_id)
    if score is None:
        return candidate
    rank = {"graph": ranks[candidate.chunk_id]}
    return replace(candidate, graph=score, ranks={**candidate.ranks, **rank})

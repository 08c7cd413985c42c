"""The graph as a third arm: passages that hang together with what the others found."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from common.fusion_options import Method
from graph.ranking import SEEDS, weight
from graph.retrieval import rank_passages
from search.query import Query
from search.ranking import Ranked, RankingOptions, Texts, fused_hits
from search.results import ArmReport, Scope
from search.retrieval.arms import Retrieved, with_scores_of
from search.retrieval.scope import scope_conditions
from search.retrieval.statement import is_plain

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
    texts: Texts | None = None,
) -> tuple[Retrieved, Mapping[str, float]]:
    """With what the graph knows of the candidates, and with the passages that it adds to them:
    those get the scores of both other arms, too. And what each arm counts for now: the graph, where
    `weights` do not say, as much as the best hit stands out."""
    started = perf_counter()
    fused = fused_hits(query, retrieved, weights, options, texts)
    best = fused[:SEEDS]
    within, parameters = scope_conditions(scope, query)
    arm = rank_passages(
        question=query.text,
        workspace_id=scope.workspace_id,
        seeds={hit.candidate.chunk_id: hit.fused_score for hit in best},
        within=within,
        parameters=parameters,
        limit=LISTED,
        prepare=is_plain(scope, query),
    )
    spent = round((perf_counter() - started) * 1000, 3)
    retrieved = with_scores_of(
        retrieved, list(arm.scores), query=query, scope=scope, depth=options.depth
    )
    with_paths = replace(
        retrieved,
        candidates=retrieved.candidates.with_graph(arm.scores),
        arms=(*retrieved.arms, ArmReport("graph", "paths", len(arm.scores))),
        timings={**retrieved.timings, "graph": spent},
        graph=arm,
    )
    return with_paths, {"graph": _weight(fused, options.method), **weights}


def _weight(fused: Sequence[Ranked], method: Method) -> float:
    if method == "rrf":
        return RANKS_WEIGHT
    return weight((hit.candidate.document_id, hit.fused_score) for hit in fused)

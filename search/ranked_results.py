"""The ranked result list of a query, before it is cut into pages. Begin with `rank_results`."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

from django.conf import settings
from django.utils.translation import gettext

from common import features
from common.errors import EmbedderUnavailable
from common.fusion import adapted_weights
from common.fusion_options import RRF_K, FusionOptions, Method
from common.replicas import read_connection
from common.stored_messages import translated_message
from documents.languages import configuration
from documents.question_language import question_language
from graph.ranking import MAX_SEEDS, graph_weight
from graph.retrieval import rank_passages
from inference.interfaces import InferenceError
from inference.model_languages import EVERY
from search.hits import best_of_each_parent, group_by_document, make_hits
from search.query import Query, parse_query
from search.query_options import SearchQuery
from search.ranking import (
    PassageReader,
    PassageTexts,
    Ranking,
    RankingOptions,
    current_tuning,
    fused_hits,
    rank,
    require_reranker,
    tuned_weights,
)
from search.reranking import DEFAULT_RERANK_DEPTH, RERANK_DEPTH
from search.results import (
    ArmReport,
    DocumentInfo,
    Hit,
    PassageCache,
    Scope,
    load_document_info,
)
from search.retrieval.arms import Candidate, Retrieved, retrieve, score_additional_chunks
from search.retrieval.scope_facts import ScopeFacts, cached_facts
from search.retrieval.statements import has_plain_conditions, scope_conditions
from search.retrieval.suggestions import suggest

#: Most passages that the graph arm lists.
MAX_GRAPH_CANDIDATES = 100
#: Weight with RRF, where all arms are equal. With scores it adapts to the question.
GRAPH_RRF_WEIGHT = 1.0


def add_graph_candidates(
    query: Query,
    retrieved: Retrieved,
    weights: Mapping[str, float],
    options: RankingOptions,
    *,
    scope: Scope,
    texts: PassageTexts | None = None,
) -> tuple[Retrieved, Mapping[str, float]]:
    """Adds the graph arm: scores of the candidates, and passages it reaches, which get the scores
    of both other arms.

    Returns also the weights of all arms. Unless `weights` has one, the graph's weight is the
    lead of the best hit.
    """
    started = perf_counter()
    fused = fused_hits(query, retrieved, weights, options, texts)
    best = fused[:MAX_SEEDS]
    within, parameters = scope_conditions(scope, query)
    arm = rank_passages(
        question=query.text,
        workspace_id=scope.workspace_id,
        seeds={hit.chunk_id: hit.fused_score for hit in best},
        within=within,
        parameters=parameters,
        limit=MAX_GRAPH_CANDIDATES,
        vectors={each.space.space_id: each.vector for each in retrieved.spaces.queries},
        prepare=has_plain_conditions(scope, query),
    )
    spent = round((perf_counter() - started) * 1000, 3)
    retrieved = score_additional_chunks(
        retrieved, list(arm.scores), query=query, scope=scope, depth=options.depth
    )
    if options.method == "rrf":
        weight = GRAPH_RRF_WEIGHT
    else:
        lead = graph_weight((hit.document_id, hit.fused_score) for hit in fused)
        weight = lead * arm.unit
    retrieved.candidates.add_graph(arm.scores)
    with_paths = replace(
        retrieved,
        arms=(*retrieved.arms, ArmReport("graph", "paths", len(arm.scores))),
        timings={**retrieved.timings, "graph": spent},
        graph=arm,
    )
    return with_paths, {"graph": weight, **weights}


#: Candidates per arm, and the number of hits ranked at once, so that all pages come from one
#: ranking. Deeper pages double it.
DEPTH = 200
#: Depth that gives the same top hits at half the cost: for first pages without counting or
#: grouping.
SHALLOW_DEPTH = 64

#: Where a question's nearest passage is as close as usual; `fusion.adapted_weights` follows it from
#: there. Measured in docs/decisions/0016. Ranks need no such balance.
WEIGHTS: Mapping[str, float] = {"lexical": 0.26, "vector": 0.74}
RRF_WEIGHTS: Mapping[str, float] = {"lexical": 1.0, "vector": 1.0}


@dataclass(frozen=True, slots=True)
class RankedResults:
    """The ranked hits of a query, best first, with all that led to them."""

    query: SearchQuery
    scope: Scope
    parsed: Query
    retrieved: Retrieved
    fusion: Method
    weights: Mapping[str, float]
    ranking: Ranking
    hits: tuple[Candidate, ...]
    suggestion: str
    passages: PassageReader
    depth: int
    _document_info: dict[int, DocumentInfo] = field(default_factory=dict, repr=False)
    _chunk_info: dict[int, tuple[str, Mapping[str, Any]]] = field(default_factory=dict, repr=False)

    @property
    def is_cut(self) -> bool:
        """Whether an arm listed as many as it may, so that more may match."""
        return any(arm.candidates >= self.depth for arm in self.retrieved.arms)

    def document_info(self, document_ids: Iterable[int]) -> Mapping[int, DocumentInfo]:
        """Document info by id; each document is read once and then cached."""
        if missing := {*document_ids} - self._document_info.keys():
            self._document_info.update(load_document_info(missing))
        return self._document_info

    def chunk_info(self) -> Mapping[int, tuple[str, Mapping[str, Any]]]:
        """Text search configuration and metadata of the hits by chunk id, read once."""
        if self.hits and not self._chunk_info:
            with read_connection().cursor() as cursor:
                cursor.execute(
                    "SELECT id, language::text, metadata FROM documents_chunk WHERE id = ANY(%s)",
                    [[hit.chunk_id for hit in self.hits]],
                )
                self._chunk_info.update(
                    (pk, (language, json.loads(metadata)))
                    for pk, language, metadata in cursor.fetchall()
                )
        return self._chunk_info

    @property
    def arms(self) -> tuple[ArmReport, ...]:
        """Reports of the arms with their fusion weights."""
        return tuple(
            replace(arm, weight=round(self.weights[arm.name], 3)) for arm in self.retrieved.arms
        )


def rank_results(
    query: SearchQuery,
    *,
    scope: Scope,
    last: int,
    k: int,
    in_order: bool = True,
    is_counted: bool = True,
    facts: ScopeFacts | None = None,
) -> RankedResults:
    """Ranks the passages in `scope`, at least the first `last` hits, for pages of `k`.

    Without `in_order` (counting only) the top hits are not compared by text. Without
    `is_counted` a smaller depth may do. `facts` are the scope's facts if just read. Raises
    InvalidInput, SwitchedOff and EmbedderUnavailable.
    """
    if "graph" in (query.mode, query.expand):
        features.require("graph")
    rerank = True if query.min_rerank is not None else query.rerank
    if rerank:
        require_reranker(scope)
    facts = facts or cached_facts(scope)
    if query.mode == "vector" or query.vector is not None or query.min_similarity is not None:
        features.require("vectors")
        if not facts.embedded:
            for collection in facts.collections.values():
                collection.require_vectors()
    may_be_shallow = 2 * last <= SHALLOW_DEPTH and not (
        is_counted or query.group or query.diversify or query.sort != "relevance"
    )
    while True:
        wanted = fusion_options(query, facts).depth
        is_shallow = may_be_shallow and wanted is None
        depth = SHALLOW_DEPTH if is_shallow else wanted or DEPTH
        while depth < last:
            depth *= 2
        found = retrieve_corrected(query, scope=scope, depth=depth, facts=facts)
        facts = found[1].facts
        fusion = fusion_options(query, facts)
        if fusion.depth != wanted:
            continue  # a collection was changed meanwhile
        results = _rank_found(
            query,
            *found,
            scope=scope,
            fusion=fusion,
            depth=depth,
            k=k,
            rerank=rerank,
            in_order=in_order,
        )
        if is_shallow and len(results.hits) < last and results.is_cut:
            # Most candidates were merged into other hits, or are too unlike the question.
            may_be_shallow = False
            continue
        return results


def _rank_found(
    query: SearchQuery,
    parsed: Query,
    retrieved: Retrieved,
    suggestion: str,
    *,
    scope: Scope,
    fusion: FusionOptions,
    depth: int,
    k: int,
    rerank: bool | None,
    in_order: bool,
) -> RankedResults:
    method = fusion.method or "score"
    passages = PassageCache()
    texts = PassageTexts(parsed.text, passages)
    trust = trust_in_words(query, retrieved)
    weights = fusion_weights(query, fusion, retrieved, trust=trust)
    options = RankingOptions(
        method=method,
        rrf_k=fusion.rrf_k or RRF_K,
        depth=depth,
        k=k,
        evidence=fusion.weights is None,
        rerank=rerank,
        min_similarity=query.min_similarity,
        rerank_depth=query.rerank_depth or (RERANK_DEPTH if rerank else DEFAULT_RERANK_DEPTH),
        # Who asks for it waits for it; nobody else waits long.
        rerank_seconds=None if rerank else settings.RERANK_SECONDS,
        min_rerank=query.min_rerank,
        diversify=query.diversify,
        uses_trigrams=in_order and trust == 1.0,
        finds_rows=in_order,
    )
    if query.mode == "graph":
        retrieved, weights = add_graph_candidates(
            parsed, retrieved, weights, options, scope=scope, texts=texts
        )
    ranking = rank(parsed, retrieved, weights, options, texts, passages)
    hits: Sequence[Candidate] = ranking.hits
    if query.min_relevance is not None:
        relevance = ranking.relevance()
        hits = [hit for hit in hits if relevance(hit) >= query.min_relevance]
    if query.expand == "parent" and max(retrieved.candidates.parents, default=-1) >= 0:
        hits = best_of_each_parent(hits)
    if query.group:
        hits = group_by_document(hits)
    return RankedResults(
        query,
        scope,
        parsed,
        retrieved,
        method,
        weights,
        ranking,
        tuple(hits),
        suggestion,
        passages,
        depth,
    )


def fusion_options(query: SearchQuery, facts: ScopeFacts) -> FusionOptions:
    """Fusion options of the request; open ones from the collections, if all agree, else from the
    site. Depth None adapts to the question.
    """
    said = [each.fusion for each in facts.collections.values()]
    is_shared = said and all(each == said[0] for each in said)
    shared = FusionOptions(**said[0]) if is_shared else FusionOptions()
    asked = query.fusion_options.over(shared)
    chosen = asked.over(FusionOptions.of_site(settings))
    if asked.weights is None and chosen.method != "weighted":
        chosen = chosen.model_copy(update={"weights": None})
    return chosen


def retrieve_corrected(
    query: SearchQuery, *, scope: Scope, depth: int, facts: ScopeFacts
) -> tuple[Query, Retrieved, str]:
    """The parsed question, the candidates of the arms, and a suggested spelling. If no word of the
    question occurs anywhere, the candidates are those of the suggestion.
    """
    parsed = query.parsed()
    search_arms = partial(
        retrieve,
        scope=scope,
        mode=query.mode,
        depth=depth,
        vector=query.vector,
        ef_search=query.ef_search,
        probes=query.probes,
    )
    try:
        retrieved = search_arms(parsed, known=facts)
        suggestion = suggest(query.q, parsed, scope) if retrieved.has_unknown_terms else ""
        if suggestion and not retrieved.listed("lexical"):
            parsed = parse_query(suggestion)
            retrieved = search_arms(parsed, known=retrieved.facts)
            arms = [
                replace(arm, method="trigram") if arm.name == "lexical" else arm
                for arm in retrieved.arms
            ]
            retrieved = replace(retrieved, arms=tuple(arms))
    except InferenceError as error:
        raise EmbedderUnavailable(
            gettext(
                "Search by meaning does not work at the moment: {error} Search by words"
                " still works."
            ).format(error=translated_message(str(error)))
        ) from error
    return parsed, retrieved, suggestion


#: Share of passages in the question's language from which its words count as usual: there are
#: enough of them to be its answer. Below, words that happen to be the same in another language
#: decide (docs/decisions/0064).
USUAL_SHARE = 0.2


def fusion_weights(
    query: SearchQuery, fusion: FusionOptions, retrieved: Retrieved, *, trust: float
) -> Mapping[str, float]:
    """Given weights; else those learned by the collections or adapted to the question, whose words
    count by how far they can be trusted. Equal weights for RRF.
    """
    if fusion.weights is not None:
        arms = WEIGHTS if query.fusion_options.weights is None else query.arms
        return {arm: fusion.weights.get(arm, 0.0) for arm in arms}
    if fusion.method == "rrf":
        return RRF_WEIGHTS
    weights = tuned_weights(
        [
            current_tuning(each.tuning, each.space_id)
            for each in retrieved.facts.collections.values()
        ],
        retrieved.nearest,
        untuned=adapted_weights(WEIGHTS, retrieved.nearest),
    )
    lexical = weights["lexical"] * trust
    return {"lexical": lexical, "vector": sum(weights.values()) - lexical}


def trust_in_words(query: SearchQuery, retrieved: Retrieved) -> float:
    """How much (0..1) the question's words count for a model that finds passages in other languages
    by meaning: as usual where enough passages are in the question's language, or one of them holds
    the question's words; 1 where the model does not find others, or where nobody knows."""
    passages = sum(retrieved.languages.values())
    finds_others = any(EVERY in space.languages for space in retrieved.facts.spaces)
    if query.vector is not None or not passages or not finds_others:
        return 1.0
    language = question_language(query.q)
    if not language:
        return 1.0
    name = configuration(language)
    share = retrieved.languages.get(name, 0) / passages / USUAL_SHARE
    return 1.0 if share >= 1.0 else max(share, retrieved.terms.coverage(name))


def build_page(
    results: RankedResults,
    hits: Sequence[Candidate],
    *,
    first_rank: int,
    snippets: bool = True,
    rows: bool = True,
) -> tuple[Hit, ...]:
    """Some of the ranked hits with texts, snippets and rows of tables."""
    query, retrieved = results.query, results.retrieved
    by_meaning = snippets and query.vector is None and query.mode != "lexical"
    return make_hits(
        results.parsed,
        hits,
        facts=retrieved.facts,
        relevance=results.ranking.relevance(),
        first_rank=first_rank,
        snippets=snippets,
        rows=rows,
        by_meaning=by_meaning and bool(retrieved.facts.spaces) and not retrieved.degraded,
        expand=query.expand,
        scope=results.scope,
        passages=results.passages,
        graph=retrieved.graph,
    )


#: Vector search lists every passage: those below this share of the best relevance are left out.
MIN_RELEVANCE = 0.5

_SORT_KEYS: dict[str, Callable[[DocumentInfo], Any]] = {
    "newest": lambda each: [-ord(digit) for digit in each.day],
    "oldest": lambda each: each.day,
    "title": lambda each: each.title.casefold(),
}


def sort_hits(results: RankedResults) -> tuple[Candidate, ...]:
    """The hits to show in the order of the query. Ties keep their order of relevance."""
    sort = results.query.sort
    if sort == "relevance":
        return results.hits
    relevance = results.ranking.relevance()
    kept = [hit for hit in results.hits if relevance(hit) >= MIN_RELEVANCE]
    info = results.document_info(hit.document_id for hit in kept)
    present = [hit for hit in kept if hit.document_id in info]
    return tuple(sorted(present, key=lambda hit: _SORT_KEYS[sort](info[hit.document_id])))

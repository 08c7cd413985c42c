"""From a question to the list of its hits: all of a search but the page that is shown of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from common.errors import RagsiteError
from common.fusion import adapted_weights
from common.fusion_options import RRF_K, FusionOptions, Method, checked_weights
from inference.base import InferenceError
from search.asked import SearchQuery, checked_vector, parsed_query
from search.graph_arm import with_graph
from search.hits import grouped, make_hits, one_of_each_parent
from search.passages import KnownPassages
from search.query import Query, parse_query
from search.ranking import (
    Passages,
    Ranked,
    Ranking,
    RankingOptions,
    Texts,
    rank,
)
from search.reranking import require_reranker
from search.results import ArmReport, Hit, Scope
from search.retrieval.arms import Candidate, Retrieved, retrieve
from search.retrieval.facts import ScopeFacts, known_facts
from search.retrieval.spelling import suggest
from search.told import Told, told
from search.weights import current_tuning, tuned_weights

#: Every arm lists at least this many, and no more hits than this are offered: so all pages of an
#: answer come from one ranking. Whoever asks for more gets it from one of twice the depth.
DEPTH = 200
#: The best of an answer stand in the same order with less: half of a search is what is said of
#: candidates. It is enough for the first pages, where hits are neither counted nor put together.
SHALLOW = 64

#: Where a question's nearest passage is as close as usual; `fusion.adapted_weights` follows it from
#: there. Measured in docs/decisions/0016. Ranks need no such balance.
WEIGHTS: Mapping[str, float] = {"lexical": 0.26, "vector": 0.74}
RRF_WEIGHTS: Mapping[str, float] = {"lexical": 1.0, "vector": 1.0}

#: A hit, and how many further passages of its document were ranked, where hits are grouped.
Listed = tuple[Ranked, int]


class EmbedderUnavailable(RagsiteError):
    """Search by meaning was asked for, and the model does not work."""

    code = "embedder_unavailable"
    status = 503


@dataclass(frozen=True, slots=True)
class Listing:
    """What was ranked for a question, and how it came about. `hits` are those that can be shown,
    best first."""

    query: SearchQuery
    scope: Scope
    parsed: Query
    retrieved: Retrieved
    fusion: Method
    weights: Mapping[str, float]
    ranking: Ranking
    hits: tuple[Listed, ...]
    suggestion: str
    passages: Passages
    depth: int
    _told: dict[int, Told] = field(default_factory=dict, repr=False)

    @property
    def is_cut(self) -> bool:
        """Whether an arm listed as much as it may, so that more may fit than is listed."""
        return any(arm.candidates >= self.depth for arm in self.retrieved.arms)

    @property
    def found(self) -> list[Candidate]:
        """What is counted: the hits that can be shown."""
        return [hit.candidate for hit, _ in self.hits]

    def told(self, document_ids: Iterable[int]) -> Mapping[int, Told]:
        """What documents say of themselves, these among them: order, facets and page ask for much
        the same ones, and each is read once."""
        if missing := {*document_ids} - self._told.keys():
            self._told.update(told(missing))
        return self._told

    @property
    def arms(self) -> tuple[ArmReport, ...]:
        """How the arms worked, and what each of them counted for."""
        return tuple(
            replace(arm, weight=round(self.weights[arm.name], 3)) for arm in self.retrieved.arms
        )


def make_listing(
    query: SearchQuery,
    *,
    scope: Scope,
    last: int,
    k: int,
    in_order: bool = True,
    is_counted: bool = True,
    facts: ScopeFacts | None = None,
) -> Listing:
    """Rank what is in `scope`, so that the `last` hits of it are there, for pages of `k`.

    Where they need not be `in_order`, because they are only counted, the best are not compared by
    their text; where nothing but them is wanted, and what else there is is not counted
    (`is_counted`), fewer are looked at. `facts` are the scope's where they have just been read.

    Raises InvalidInput for what cannot be, and EmbedderUnavailable.
    """
    query.check()
    facts = facts or known_facts(scope)
    fusion = fusion_options(query, facts)
    wanted = fusion.depth
    needs_all = is_counted or query.group or query.diversify or query.sort != "relevance"
    rerank = True if query.min_rerank is not None else query.rerank
    if rerank:
        require_reranker(scope)
    is_shallow = wanted is None and 2 * last <= SHALLOW and not needs_all
    depth = SHALLOW if is_shallow else _depth(last, wanted or DEPTH)
    passages = KnownPassages()
    parsed, retrieved, suggestion = _retrieved(query, scope=scope, depth=depth, facts=facts)
    if retrieved.facts is not facts:
        fusion = fusion_options(query, retrieved.facts)
    if fusion.depth != wanted:  # a collection has been changed
        return make_listing(
            query,
            scope=scope,
            last=last,
            k=k,
            in_order=in_order,
            is_counted=is_counted,
            facts=retrieved.facts,
        )
    method = fusion.method or "score"
    texts = Texts(parsed.text, passages)
    weights = _weights(query, method, fusion.weights, retrieved)
    options = RankingOptions(
        method=method,
        rrf_k=fusion.rrf_k or RRF_K,
        depth=depth,
        k=k,
        evidence=fusion.weights is None,
        rerank=rerank,
        min_similarity=query.min_similarity,
        min_rerank=query.min_rerank,
        diversify=query.diversify,
        letters=in_order,
    )
    if query.mode == "graph":
        retrieved, weights = with_graph(
            parsed, retrieved, weights, options, scope=scope, texts=texts
        )
    ranking = rank(parsed, retrieved, weights, options, texts)
    ranked: Sequence[Ranked] = ranking.hits
    if query.expand == "parent" and max(retrieved.candidates.rows.parents, default=-1) >= 0:
        ranked = one_of_each_parent(ranked)
    hits = grouped(ranked) if query.group else [(hit, 0) for hit in ranked]
    listing = Listing(
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
    if is_shallow and len(hits) < last and listing.is_cut:
        # Of most that was found something else is shown, or it is too unlike the question.
        return make_listing(query, scope=scope, last=last, k=k, facts=retrieved.facts)
    return listing


def fusion_options(query: SearchQuery, facts: ScopeFacts) -> FusionOptions:
    """How to fuse: as the request says; what it leaves open as the collections do, where all say
    the same, else as the site does. Without a depth each question gets what it needs."""
    said = [each.fusion for each in facts.collections.values()]
    is_shared = said and all(each == said[0] for each in said)
    shared = FusionOptions(**said[0]) if is_shared else FusionOptions()
    site = FusionOptions(settings.FUSION, settings.RRF_K, depth=settings.SEARCH_DEPTH or None)
    chosen = query.fusion_options.over(shared).over(site)
    if chosen.method == "weighted" and chosen.weights is None:
        chosen = replace(chosen, weights=settings.FUSION_WEIGHTS)
    return chosen


def _depth(last: int, depth: int) -> int:
    while depth < last:
        depth *= 2
    return depth


def _retrieved(
    query: SearchQuery, *, scope: Scope, depth: int, facts: ScopeFacts | None
) -> tuple[Query, Retrieved, str]:
    """What the arms found, for the question or, where no word of it stands anywhere, for the one
    that is suggested."""
    parsed = parsed_query(query.text, mode=query.mode, vector=query.vector)
    asked: dict[str, Any] = {
        "scope": scope,
        "mode": query.mode,
        "depth": depth,
        "vector": checked_vector(query.vector),
        "ef_search": query.ef_search,
        "probes": query.probes,
    }
    try:
        retrieved = retrieve(parsed, **asked, known=facts)
        suggestion = suggest(query.text, parsed, scope) if retrieved.has_unknown_terms else ""
        if suggestion and not retrieved.listed("lexical"):
            parsed = parse_query(suggestion)
            retrieved = retrieve(parsed, **asked, known=retrieved.facts)
            retrieved = retrieved.with_method("lexical", "trigram")
    except InferenceError as error:
        raise EmbedderUnavailable(
            f"Search by meaning does not work just now: {error} Search by words still does."
        ) from error
    return parsed, retrieved, suggestion


def untuned_weights(nearest: float | None) -> dict[str, float]:
    """What words and meaning count for in a question whose nearest passage is `nearest` close,
    where no collection has learnt better."""
    return adapted_weights(WEIGHTS, nearest)


def _weights(
    query: SearchQuery, method: Method, given: Mapping[str, float] | None, retrieved: Retrieved
) -> Mapping[str, float]:
    """Those that were given; else those that the collections learnt from judgements, or that follow
    the question. Ranks are weighed alike."""
    if query.weights is not None:
        return checked_weights(query.weights, arms=query.arms)
    if given is not None:
        return checked_weights(given, arms=WEIGHTS)
    if method == "rrf":
        return RRF_WEIGHTS
    facts = retrieved.facts.collections.values()
    return tuned_weights(
        [current_tuning(each.tuning, each.space_id) for each in facts],
        retrieved.nearest,
        untuned=untuned_weights(retrieved.nearest),
    )


def page_of(
    listing: Listing, hits: Sequence[Listed], *, first_rank: int, snippets: bool = True
) -> tuple[Hit, ...]:
    """Some hits of a listing, with texts and snippets."""
    query, retrieved = listing.query, listing.retrieved
    by_meaning = snippets and query.vector is None and query.mode != "lexical"
    return make_hits(
        listing.parsed,
        hits,
        facts=retrieved.facts,
        relevance=listing.ranking.relevance(),
        first_rank=first_rank,
        snippets=snippets,
        by_meaning=by_meaning and not retrieved.degraded,
        expand=query.expand,
        scope=listing.scope,
        passages=listing.passages,
        graph=retrieved.graph,
    )


def to_count(query: SearchQuery) -> SearchQuery:
    """The same question where only which hits there are matters, and not their order."""
    return replace(query, rerank=False, min_rerank=None, diversify=False)

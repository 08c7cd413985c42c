"""From a question to the list of its hits: all of a search but the page that is shown of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from common.errors import InvalidInput, RagsiteError
from common.fusion import Method, adapted_weights
from inference.base import InferenceError
from search.asked import SearchQuery, checked_vector, checked_weights, parsed_query
from search.graph_arm import with_graph
from search.hits import grouped, make_hits, one_of_each_parent
from search.query import Query, parse_query
from search.ranking import NoRerankerConfigured, Ranked, Ranking, RankingOptions, rank
from search.results import ArmReport, Hit, Scope
from search.retrieval.arms import Candidate, Retrieved, retrieve
from search.retrieval.facts import ScopeFacts
from search.retrieval.spelling import suggest
from search.told import Told, told
from search.weights import current_tuning, tuned_weights

#: Every arm lists at least this many, and no more hits than this are offered: so all pages of an
#: answer come from one ranking. Whoever asks for more gets it from one of twice the depth.
DEPTH = 200

#: Where a question's nearest passage is as close as usual; `fusion.adapted_weights` follows it from
#: there. Measured in docs/decisions/0016. Ranks need no such balance.
WEIGHTS: Mapping[Method, Mapping[str, float]] = {
    "score": {"lexical": 0.26, "vector": 0.74},
    "rrf": {"lexical": 1.0, "vector": 1.0},
}


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
    weights: Mapping[str, float]
    ranking: Ranking
    hits: tuple[Listed, ...]
    suggestion: str
    _told: dict[int, Told] = field(default_factory=dict, repr=False)

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
    facts: ScopeFacts | None = None,
) -> Listing:
    """Rank what is in `scope`, so that the `last` hits of it are there, for pages of `k`.

    Where they need not be `in_order`, because they are only counted, the best are not compared by
    their letters. `facts` are the scope's where they have just been read.

    Raises InvalidInput for what cannot be, and EmbedderUnavailable.
    """
    query.check()
    arms = [*WEIGHTS[query.fusion], *(["graph"] if query.mode == "graph" else [])]
    given = None if query.weights is None else checked_weights(query.weights, arms=arms)
    depth = _depth(last)
    parsed, retrieved, suggestion = _retrieved(query, scope=scope, depth=depth, facts=facts)
    weights = given or _weights(query.fusion, retrieved)
    options = RankingOptions(
        method=query.fusion,
        depth=depth,
        k=k,
        evidence=query.weights is None,
        rerank=True if query.min_rerank is not None else query.rerank,
        min_similarity=query.min_similarity,
        min_rerank=query.min_rerank,
        diversify=query.diversify,
        letters=in_order,
    )
    if query.mode == "graph":
        retrieved, weights = with_graph(parsed, retrieved, weights, options, scope=scope)
    ranking = _ranked(parsed, retrieved, weights, options)
    ranked = one_of_each_parent(ranking.hits) if query.expand == "parent" else ranking.hits
    hits = grouped(ranked) if query.group else [(hit, 0) for hit in ranked]
    return Listing(query, scope, parsed, retrieved, weights, ranking, tuple(hits), suggestion)


def _depth(last: int) -> int:
    depth = DEPTH
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
    }
    try:
        retrieved = retrieve(parsed, **asked, known=facts)
        suggestion = suggest(query.text, parsed, scope) if retrieved.strange else ""
        if suggestion and not retrieved.listed("lexical"):
            parsed = parse_query(suggestion)
            retrieved = retrieve(parsed, **asked, known=retrieved.facts)
            retrieved = retrieved.with_method("lexical", "trigram")
    except InferenceError as error:
        raise EmbedderUnavailable(
            f"Search by meaning does not work just now: {error} Search by words still does."
        ) from error
    return parsed, retrieved, suggestion


def _ranked(
    parsed: Query, retrieved: Retrieved, weights: Mapping[str, float], options: RankingOptions
) -> Ranking:
    try:
        return rank(parsed, retrieved, weights, options)
    except NoRerankerConfigured as error:
        raise InvalidInput(
            "There is no reranker. Set RERANKER_BACKEND, name one in the collection, or search"
            " without.",
            field="rerank",
        ) from error


def untuned_weights(nearest: float | None) -> dict[str, float]:
    """What words and meaning count for in a question whose nearest passage is `nearest` close,
    where no collection has learnt better."""
    return adapted_weights(WEIGHTS["score"], nearest)


def _weights(fusion: Method, retrieved: Retrieved) -> Mapping[str, float]:
    """Those that the collections learnt from judgements; else those that follow the question.
    Ranks are weighed alike."""
    if fusion != "score":
        return WEIGHTS[fusion]
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
        told=listing.told,
        graph=retrieved.graph,
    )


def to_count(query: SearchQuery) -> SearchQuery:
    """The same question where only which hits there are matters, and not their order."""
    return replace(query, rerank=False, min_rerank=None, diversify=False)

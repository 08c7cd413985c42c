"""The search service: `search` takes a question and a scope and returns one page of hits."""

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from common.fusion_options import Method
from common.metrics import SEARCH_STAGE_SECONDS
from common.replicas import reads_from_replica
from common.text import pluralized
from search.facets import count_facets
from search.query_options import SearchQuery, check_page
from search.ranked_results import (
    RankedResults,
    build_page,
    rank_results,
    sort_hits,
)
from search.ranking import has_reranker
from search.results import Expansion, Mode, Scope, SearchResult, Sort


def search_notes(results: RankedResults, *, hit_count: int) -> tuple[str, ...]:
    """Notes for the reader of a result page with `hit_count` hits in total."""
    query, retrieved, ranking = results.parsed, results.retrieved, results.ranking
    notes = []
    if hit_count < len(results.hits):
        notes.append(
            f"Sorted by {'title' if results.query.sort == 'title' else 'date'}: the"
            f" {hit_count} best of"
            f" {pluralized(len(results.hits), 'hit')}. The others fit less than half as well as"
            " the best."
        )
    if query.named:
        notes.append(
            f"In a sentence, quotation marks only name something. To find nothing but passages that"
            f" hold it word for word, write +“{query.named[0]}”."
        )
    if "vector" in retrieved.degraded:
        partly = any(report.name == "vector" for report in retrieved.arms)
        notes.append(
            "Search by meaning reaches only some of the passages just now: a model does not answer."
            if partly
            else "Search by meaning is out of order just now: these passages were found by their"
            " words."
        )
    if "rerank" in ranking.degraded:
        notes.append(
            "The reranker does not answer just now: the order is that of words and meaning alone."
        )
    methods = {report.name: report.method for report in retrieved.arms}
    if methods.get("lexical") == "trigram":
        notes.append(f"No passage holds these words. This was searched for: {query.text}")
    elif retrieved.candidates and "lexical" in methods and not retrieved.listed("lexical"):
        notes.append("No passage holds these words: these were found by meaning.")
    return tuple(notes)


@reads_from_replica
def search(
    query: str,
    *,
    scope: Scope,
    mode: Mode = "hybrid",
    k: int = 10,
    offset: int = 0,
    sort: Sort = "relevance",
    fusion: Method | None = None,
    rrf_k: int | None = None,
    weights: Mapping[str, float] | None = None,
    depth: int | None = None,
    vector: Sequence[float] | NDArray[np.float32] | None = None,
    rerank: bool | None = None,
    min_similarity: float | None = None,
    min_rerank: float | None = None,
    diversify: bool = False,
    group: bool = False,
    expand: Expansion = "parent",
    facets: Sequence[str] = (),
    snippets: bool = True,
    ef_search: int | None = None,
    probes: int | None = None,
) -> SearchResult:
    """Ranks the passages in `scope` for `query` and returns one page.

    `vector` replaces the query's embedding; in mode `vector` the query may then be empty.
    `fusion`, `rrf_k`, `depth`: None uses those of the collections or the site. `weights` of
    `lexical` and `vector` (≥ 0) replace adapted ones. `rerank`: None uses a reranker if set up,
    True demands one, False skips it. `min_similarity` (−1..1), `min_rerank` (0..1): hits with a
    lower or missing score are dropped. `diversify` moves hits of the same document or source
    down. `group` keeps the best passage per document; `k` and `offset` then count documents.
    `expand` adds surrounding text: by default the parent passage, each parent once; `graph`
    adds related passages to the first ten hits. `sort`: by `relevance`, or of the hits at least
    half as relevant as the best the `newest`, `oldest`, or by `title`. `facets`: fields to
    count; `*` is language, origin, date and what the collections define, or else the most
    selective metadata. `snippets=False` skips highlighting. `ef_search` (1..1,000, HNSW) and
    `probes` (1..32,768, IVFFlat) override index options.

    Raises InvalidInput, and EmbedderUnavailable for mode `vector` without a working model; mode
    `hybrid` then searches lexically and says so in `degraded`.
    """
    started = perf_counter()
    asked = SearchQuery(
        query,
        mode=mode,
        fusion=fusion,
        rrf_k=rrf_k,
        weights=weights,
        depth=depth,
        vector=vector,
        rerank=rerank,
        min_similarity=min_similarity,
        min_rerank=min_rerank,
        diversify=diversify,
        group=group,
        expand=expand,
        sort=sort,
        ef_search=ef_search,
        probes=probes,
    )
    check_page(k=k, offset=offset)
    listing = rank_results(asked, scope=scope, last=offset + k, k=k, is_counted=bool(facets))
    order = sort_hits(listing, sort)
    counted = count_facets(listing, fields=facets)
    hits = build_page(
        listing,
        order[offset : offset + k],
        first_rank=offset + 1,
        snippets=snippets,
    )
    total = round((perf_counter() - started) * 1000, 3)
    retrieved, ranking = listing.retrieved, listing.ranking
    timings = {**retrieved.timings, "rerank": ranking.milliseconds, "total": total}
    for stage, milliseconds in timings.items():
        SEARCH_STAGE_SECONDS.labels(stage).observe(milliseconds / 1000)
    return SearchResult(
        query=query,
        mode=mode,
        hits=hits,
        total=len(order),
        is_cut=listing.is_cut,
        offset=offset,
        k=k,
        fusion=listing.fusion,
        arms=listing.arms,
        facets=counted,
        timings=timings,
        degraded=(*retrieved.degraded, *ranking.degraded),
        notes=search_notes(listing, hit_count=len(order)),
        filter=scope.filter,
        reranker=ranking.reranker,
        reranked=ranking.reranked,
        suggestion=listing.suggestion,
        backgrounds=retrieved.gathered.backgrounds,
        sort=sort,
        can_rerank=has_reranker(retrieved.facts),
    )

"""The one door to searching: a question and a scope in, a page of hits out."""

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from common.fusion_options import Method
from common.metrics import SEARCH_STAGE_SECONDS
from common.replicas import reads_from_replica
from search.asked import SearchQuery, check_page
from search.facets import count_facets
from search.listing import (
    DEPTH,
    WEIGHTS,
    EmbedderUnavailable,
    make_listing,
    page_of,
    untuned_weights,
)
from search.notes import notes_on
from search.reranking import has_reranker
from search.results import Expansion, Mode, Scope, SearchResult, Sort
from search.scopes import scope_for, site_scope
from search.sorting import in_order

__all__ = [
    "DEPTH",
    "WEIGHTS",
    "EmbedderUnavailable",
    "scope_for",
    "search",
    "site_scope",
    "untuned_weights",
]


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
    """Rank the passages in `scope` for `query`.

    `vector` is asked instead of an embedding of the query, which may then be empty in mode
    `vector`. `fusion`, `rrf_k` and `depth` are those of the collections or the site where they are
    None. `weights` (of `lexical` and `vector`, at least 0) take the place of those that follow the
    question. `rerank`: None reads the best hits again where a reranker is set up, True demands
    it, False does without. `min_similarity` (−1 to 1) and `min_rerank` (0 to 1) drop hits whose own
    score of that kind is lower or missing. `diversify` puts hits of the same document or source
    behind others. `group` shows the best passage of each document and how many more it has; `k`
    and `offset` then count documents. `expand` adds to each hit what stands around it. By default
    that is the larger passage which the hit is a part of, where its collection is cut into such;
    each of these is then listed once, by the best of its parts. With `graph` it is passages beside
    the first ten hits, and elsewhere in the scope, that name the same things. `sort`: by
    `relevance`, or of those hits that are at least half as relevant as the best the `newest` or
    `oldest` first, or by `title`. `facets` are fields to count the values of: `language`, `origin`,
    `dated`, any of the metadata; `*` is these three with what the collections chose, or else the
    most telling. Without `snippets` no words are highlighted, which programs that only want the
    ranking need not wait for. `ef_search` (1 to 1,000, HNSW) and `probes` (1 to 32,768, IVFFlat)
    are how much of the indexes of vectors is looked at, in place of what the spaces say; scopes
    that are compared vector by vector need neither.

    Raises InvalidInput for what cannot be, and EmbedderUnavailable for mode `vector` without a
    working model; mode `hybrid` then answers by words alone and says so in `degraded`.
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
    listing = make_listing(asked, scope=scope, last=offset + k, k=k, is_counted=bool(facets))
    order = in_order(listing, sort)
    counted = count_facets(listing, fields=facets)
    hits = page_of(
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
        notes=notes_on(listing, shown=len(order)),
        filter=scope.filter,
        reranker=ranking.reranker,
        reranked=ranking.reranked,
        suggestion=listing.suggestion,
        backgrounds=retrieved.gathered.backgrounds,
        sort=sort,
        can_rerank=has_reranker(retrieved.facts),
    )

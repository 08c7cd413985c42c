"""The one door to searching: a question and a scope in, a page of hits out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounts.models import Workspace
from accounts.services import principals
from common.errors import InvalidInput, NotFound, RagsiteError
from common.fusion import Method, adapted_weights
from documents.models import Collection
from inference.base import InferenceError
from search.asked import (
    check_choices,
    check_thresholds,
    checked_vector,
    checked_versions,
    checked_weights,
    parsed_query,
)
from search.facets import facets as count_facets
from search.filters import Node, all_of, metadata_filter, one_of, read_filter
from search.filters.fields import Field
from search.graph_arm import with_graph
from search.hits import grouped, make_hits, one_of_each_parent
from search.notes import notes_on
from search.query import parse_query
from search.ranking import NoRerankerConfigured, RankingOptions, rank
from search.results import Expansion, Mode, Scope, SearchResult, Versions
from search.retrieval.arms import Retrieved, retrieve
from search.retrieval.spelling import suggest
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


class EmbedderUnavailable(RagsiteError):
    """Search by meaning was asked for, and the model does not work."""

    code = "embedder_unavailable"
    status = 503


def scope_for(
    *,
    user: Any,
    workspace: Workspace,
    collections: Sequence[str] = (),
    filter: Mapping[str, Any] | str | None = None,
    media_types: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    versions: Versions = "current",
) -> Scope:
    """What `user` may search in `workspace`, narrowed to the named collections and by `filter`.

    `filter` is in JSON or text form; one of `media_types` and all of `metadata` must fit besides.
    `versions` is `current`, or `all` to find superseded ones too.
    Raises NotFound for a collection that is not there, or not there for this user, and FilterError
    for a filter that cannot be.
    """
    visible = Collection.objects.visible_to(user).filter(workspace=workspace)
    return Scope(
        workspace_id=workspace.id,
        collection_ids=_collection_ids(visible, collections),
        principals=tuple(principals(user)),
        filter=_narrowed(filter, media_types, metadata),
        versions=checked_versions(versions),
    )


def site_scope(
    *,
    workspace: Workspace,
    collections: Sequence[str] = (),
    filter: Mapping[str, Any] | str | None = None,
    media_types: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    versions: Versions = "current",
) -> Scope:
    """The scope of the site itself: commands and evaluation, which no access list binds."""
    return Scope(
        workspace_id=workspace.id,
        collection_ids=_collection_ids(Collection.objects.filter(workspace=workspace), collections),
        filter=_narrowed(filter, media_types, metadata),
        versions=checked_versions(versions),
    )


def _narrowed(
    filter: Mapping[str, Any] | str | None,
    media_types: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Node:
    parts = [read_filter(filter)]
    if media_types:
        parts.append(one_of(Field("media_type"), media_types))
    return all_of([*parts, metadata_filter(metadata or {})])


def _collection_ids(visible: Any, slugs: Sequence[str]) -> tuple[int, ...]:
    known = dict(visible.values_list("slug", "id"))
    unknown = [slug for slug in slugs if slug not in known]
    if unknown:
        names = ", ".join(sorted(known)[:20]) or "none yet"
        raise NotFound(f"There is no collection “{unknown[0]}”. There are: {names}.")
    return tuple(sorted(known[slug] for slug in slugs) if slugs else sorted(known.values()))


def search(
    query: str,
    *,
    scope: Scope,
    mode: Mode = "hybrid",
    k: int = 10,
    offset: int = 0,
    fusion: Method = "score",
    weights: Mapping[str, float] | None = None,
    vector: Sequence[float] | NDArray[np.float32] | None = None,
    rerank: bool | None = None,
    min_similarity: float | None = None,
    min_rerank: float | None = None,
    diversify: bool = False,
    group: bool = False,
    expand: Expansion = "parent",
    facets: Sequence[str] = (),
    snippets: bool = True,
) -> SearchResult:
    """Rank the passages in `scope` for `query`.

    `vector` is asked instead of an embedding of the query, which may then be empty in mode
    `vector`. `weights` (of `lexical` and `vector`, at least 0) take the place of those that follow
    the question. `rerank`: None reads the best hits again where a reranker is set up, True demands
    it, False does without. `min_similarity` (−1 to 1) and `min_rerank` (0 to 1) drop hits whose own
    score of that kind is lower or missing. `diversify` puts hits of the same document or source
    behind others. `group` shows the best passage of each document and how many more it has; `k`
    and `offset` then count documents. `expand` adds to each hit what stands around it. By default
    that is the larger passage which the hit is a part of, where its collection is cut into such;
    each of these is then listed once, by the best of its parts. With `graph` it is passages beside
    the first ten hits, and elsewhere in the scope, that name the same things. `facets` are fields
    of the metadata to count, `*` the most telling. Without `snippets` no words are highlighted,
    which programs that only want the ranking need not wait for.

    Raises InvalidInput for what cannot be, and EmbedderUnavailable for mode `vector` without a
    working model; mode `hybrid` then answers by words alone and says so in `degraded`.
    """
    started = perf_counter()
    check_choices(mode=mode, k=k, offset=offset, fusion=fusion, expand=expand)
    check_thresholds(mode, rerank, min_similarity, min_rerank)
    given = None if weights is None else checked_weights(weights, arms=_arms(mode, fusion))
    parsed = parsed_query(query, mode=mode, vector=vector)
    asked = checked_vector(vector)
    depth = _depth(offset + k)
    try:
        retrieved = retrieve(parsed, scope=scope, mode=mode, depth=depth, vector=asked)
        suggestion = suggest(query, parsed, scope) if retrieved.strange else ""
        if suggestion and not retrieved.listed("lexical"):
            parsed = parse_query(suggestion)
            retrieved = retrieve(parsed, scope=scope, mode=mode, depth=depth, vector=asked)
            retrieved = retrieved.with_method("lexical", "trigram")
    except InferenceError as error:
        raise EmbedderUnavailable(
            f"Search by meaning does not work just now: {error} Search by words still does."
        ) from error
    weighed = given or _weights(fusion, retrieved)
    options = RankingOptions(
        method=fusion,
        depth=depth,
        k=k,
        evidence=weights is None,
        rerank=True if min_rerank is not None else rerank,
        min_similarity=min_similarity,
        min_rerank=min_rerank,
        diversify=diversify,
    )
    if mode == "graph":
        retrieved, weighed = with_graph(parsed, retrieved, weighed, options, scope=scope)
    try:
        ranking = rank(parsed, retrieved, weighed, options)
    except NoRerankerConfigured as error:
        raise InvalidInput(
            "There is no reranker. Set RERANKER_BACKEND, name one in the collection, or search"
            " without.",
            field="rerank",
        ) from error
    ranked = one_of_each_parent(ranking.hits) if expand == "parent" else ranking.hits
    listed = grouped(ranked) if group else [(hit, 0) for hit in ranked]
    hits = make_hits(
        parsed,
        listed[offset : offset + k],
        facts=retrieved.facts,
        relevance=ranking.relevance(),
        first_rank=offset + 1,
        snippets=snippets,
        by_meaning=snippets and vector is None and mode != "lexical" and not retrieved.degraded,
        expand=expand,
        scope=scope,
        graph=retrieved.graph,
    )
    total = round((perf_counter() - started) * 1000, 3)
    return SearchResult(
        query=query,
        mode=mode,
        hits=hits,
        total=len(listed),
        offset=offset,
        k=k,
        arms=tuple(replace(arm, weight=round(weighed[arm.name], 3)) for arm in retrieved.arms),
        facets=count_facets(
            [hit.candidate for hit, _ in listed], facts=retrieved.facts, fields=facets
        ),
        timings={**retrieved.timings, "rerank": ranking.milliseconds, "total": total},
        degraded=(*retrieved.degraded, *ranking.degraded),
        notes=notes_on(parsed, retrieved, ranking),
        filter=scope.filter,
        reranker=ranking.reranker,
        reranked=ranking.reranked,
        suggestion=suggestion,
    )


def _arms(mode: Mode, fusion: Method) -> list[str]:
    return [*WEIGHTS[fusion], *(["graph"] if mode == "graph" else [])]


def _depth(last: int) -> int:
    depth = DEPTH
    while depth < last:
        depth *= 2
    return depth


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

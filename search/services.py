"""The one door to searching: a question and a scope in, a page of hits out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounts.models import Workspace
from accounts.services import principals
from common.errors import InvalidInput, NotFound, RagsiteError
from documents.models import Collection
from inference.base import InferenceError
from search.facets import facets as count_facets
from search.filters import Node, all_of, metadata_filter, one_of, read_filter
from search.filters.fields import Field
from search.fusion import METHODS, Method, adapted_weights
from search.hits import grouped, make_hits
from search.query import Query, QueryError, parse_query
from search.ranking import NoRerankerConfigured, Ranking, RankingOptions, rank
from search.results import EXPANSIONS, MODES, Expansion, Mode, Scope, SearchResult
from search.retrieval.arms import Retrieved, retrieve
from search.retrieval.spelling import suggest
from search.weights import current_tuning, tuned_weights

#: Every arm lists at least this many, and no more hits than this are offered: so all pages of an
#: answer come from one ranking. Whoever asks for more gets it from one of twice the depth.
DEPTH = 200
MAX_K = 100

#: Where a question's nearest passage is as close as usual; `fusion.adapted_weights` follows it from
#: there. Measured in docs/decisions/0016. Ranks need no such balance.
WEIGHTS: Mapping[Method, Mapping[str, float]] = {
    "score": {"lexical": 0.26, "vector": 0.74},
    "rrf": {"lexical": 1.0, "vector": 1.0},
}
MAX_OFFSET = 1000


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
) -> Scope:
    """What `user` may search in `workspace`, narrowed to the named collections and by `filter`.

    `filter` is in JSON or text form; one of `media_types` and all of `metadata` must fit besides.
    Raises NotFound for a collection that is not there, or not there for this user, and FilterError
    for a filter that cannot be.
    """
    visible = Collection.objects.visible_to(user).filter(workspace=workspace)
    return Scope(
        workspace_id=workspace.id,
        collection_ids=_collection_ids(visible, collections),
        principals=tuple(principals(user)),
        filter=_narrowed(filter, media_types, metadata),
    )


def site_scope(
    *,
    workspace: Workspace,
    collections: Sequence[str] = (),
    filter: Mapping[str, Any] | str | None = None,
    media_types: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Scope:
    """The scope of the site itself: commands and evaluation, which no access list binds."""
    return Scope(
        workspace_id=workspace.id,
        collection_ids=_collection_ids(Collection.objects.filter(workspace=workspace), collections),
        filter=_narrowed(filter, media_types, metadata),
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
    expand: Expansion = "none",
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
    and `offset` then count documents. `expand` adds to each hit what stands around it. `facets`
    are fields of the metadata to count, `*` the most telling. Without `snippets` no words are
    highlighted, which programs that only want the ranking need not wait for.

    Raises InvalidInput for what cannot be, and EmbedderUnavailable for mode `vector` without a
    working model; mode `hybrid` then answers by words alone and says so in `degraded`.
    """
    started = perf_counter()
    _check(mode=mode, k=k, offset=offset, fusion=fusion, expand=expand)
    _check_thresholds(mode, rerank, min_similarity, min_rerank)
    parsed = _parsed(query, mode=mode, vector=vector)
    asked = _checked_vector(vector)
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
    weighed = _weights(fusion, retrieved, weights)
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
    try:
        ranking = rank(parsed, retrieved, weighed, options)
    except NoRerankerConfigured as error:
        raise InvalidInput(
            "There is no reranker. Set RERANKER_BACKEND, name one in the collection, or search"
            " without.",
            field="rerank",
        ) from error
    listed = grouped(ranking.hits) if group else [(hit, 0) for hit in ranking.hits]
    hits = make_hits(
        parsed,
        listed[offset : offset + k],
        facts=retrieved.facts,
        relevance=ranking.relevance(),
        first_rank=offset + 1,
        snippets=snippets,
        by_meaning=snippets and vector is None and mode != "lexical" and not retrieved.degraded,
        expand=expand,
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
        notes=_notes(parsed, retrieved, ranking),
        filter=scope.filter,
        reranker=ranking.reranker,
        reranked=ranking.reranked,
        suggestion=suggestion,
    )


def _depth(last: int) -> int:
    depth = DEPTH
    while depth < last:
        depth *= 2
    return depth


def _check(*, mode: str, k: int, offset: int, fusion: str, expand: str) -> None:
    choices = (("mode", mode, MODES), ("fusion", fusion, METHODS), ("expand", expand, EXPANSIONS))
    for field, value, known in choices:
        if value not in known:
            raise InvalidInput(
                f"There is no {field} “{value}”. Use {', '.join(known)}.", field=field
            )
    if not 1 <= k <= MAX_K:
        raise InvalidInput(f"k may be 1 to {MAX_K}.", field="k")
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidInput(f"offset may be 0 to {MAX_OFFSET}.", field="offset")


def _check_thresholds(
    mode: Mode, rerank: bool | None, min_similarity: float | None, min_rerank: float | None
) -> None:
    if min_similarity is not None:
        if not -1 <= min_similarity <= 1:
            raise InvalidInput("min_similarity may be −1 to 1.", field="min_similarity")
        if mode == "lexical":
            raise InvalidInput(
                "Mode lexical compares no vectors, so no hit has a similarity. Use another mode or"
                " leave min_similarity out.",
                field="min_similarity",
            )
    if min_rerank is not None:
        if not 0 <= min_rerank <= 1:
            raise InvalidInput("min_rerank may be 0 to 1.", field="min_rerank")
        if rerank is False:
            raise InvalidInput(
                "Without reranking no hit has its score. Leave min_rerank out.", field="min_rerank"
            )


def _parsed(query: str, *, mode: Mode, vector: Any) -> Query:
    if vector is not None and mode == "vector" and not query.strip():
        return Query(text="")
    try:
        return parse_query(query)
    except QueryError as error:
        raise InvalidInput(str(error), field="query") from error


def _checked_vector(
    vector: Sequence[float] | NDArray[np.float32] | None,
) -> NDArray[np.float32] | None:
    if vector is None:
        return None
    try:
        asked = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput("A vector is a list of numbers.", field="vector") from error
    if asked.ndim != 1 or not np.isfinite(asked).all() or not asked.any():
        raise InvalidInput(
            "A vector is a list of finite numbers that are not all zero.", field="vector"
        )
    return asked


def _weights(
    fusion: Method, retrieved: Retrieved, given: Mapping[str, float] | None
) -> Mapping[str, float]:
    known = WEIGHTS[fusion]
    if given is None:
        return _usual_weights(known, retrieved) if fusion == "score" else known
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise InvalidInput(
            f"There is no arm “{unknown[0]}” to weigh. There are: {', '.join(known)}.",
            field="weights",
        )
    weights = {name: float(given.get(name, 0.0)) for name in known}
    if any(not isfinite(each) or each < 0 for each in weights.values()) or not any(
        weights.values()
    ):
        raise InvalidInput(
            "Weights are finite numbers of at least 0, one of them greater.", field="weights"
        )
    return weights


def _usual_weights(default: Mapping[str, float], retrieved: Retrieved) -> Mapping[str, float]:
    """Those that the collections learnt from judgements; else those that follow the question."""
    facts = retrieved.facts.collections.values()
    return tuned_weights(
        [current_tuning(each.tuning, each.space_id) for each in facts],
        retrieved.nearest,
        untuned=adapted_weights(default, retrieved.nearest),
    )


def _notes(query: Query, retrieved: Retrieved, ranking: Ranking) -> tuple[str, ...]:
    notes = []
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

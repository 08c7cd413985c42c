"""Tools that search: passages, each under the number by which an answer cites it."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import InvalidInput
from common.fusion_options import Method
from rag.context import RagContext
from rag.tools.wording import told_passages
from search.asked import arm_weights
from search.results import Hit, Mode, SearchResult
from search.services import EmbedderUnavailable, search

MAX_RESULTS = 50

Filter = Mapping[str, Any] | str | None

BY_WORDS_ONLY = "Search by meaning does not work just now: these hold the words of the query."


def similarity_search(
    *,
    scope: RagContext,
    query: str,
    top_k: int = 5,
    filter: Filter = None,
    collection: str = "",
) -> str:
    """Passages that mean what `query` means; those with its words where no model can tell."""
    where = scope.search_scope(_named(collection), filter=filter)
    options: dict[str, Any] = {
        "k": int(top_k),
        "rerank": scope.search_options.get("rerank"),
        "snippets": False,
    }
    try:
        result = search(query, scope=where, mode="vector", **options)
    except EmbedderUnavailable:
        result = search(query, scope=where, mode="lexical", **options)
        return f"{_told(scope, result)}\n\n{BY_WORDS_ONLY}"
    return _told(scope, result)


def hybrid_query(
    *,
    scope: RagContext,
    query: str,
    top_k: int = 5,
    filter: Filter = None,
    collection: str = "",
    mode: Mode = "hybrid",
    fusion: Method | None = None,
    rrf_k: int | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    depth: int | None = None,
    rerank: bool | None = None,
) -> str:
    """Passages that fit by words and by meaning, as the site's own search has them, unless `alpha`
    (of meaning) and `beta` (of words) weigh both."""
    where = scope.search_scope(_named(collection), filter=filter)
    given = {
        "fusion": fusion,
        "rrf_k": rrf_k,
        "weights": arm_weights(alpha, beta),
        "depth": depth,
        "rerank": rerank,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    options: dict[str, Any] = {**scope.search_options, **chosen}
    result = search(query, scope=where, mode=mode, k=int(top_k), snippets=False, **options)
    told = _told(scope, result)
    return f"{told}\n\n{BY_WORDS_ONLY}" if result.by_words_only else told


def search_words(
    *,
    scope: RagContext,
    query: str,
    top_k: int = 5,
    filter: Filter = None,
    collection: str = "",
) -> str:
    """Passages that hold the words of `query`, by BM25."""
    where = scope.search_scope(_named(collection), filter=filter)
    return _told(scope, search(query, scope=where, mode="lexical", k=int(top_k), snippets=False))


def search_vector(
    *,
    scope: RagContext,
    vector: Sequence[float],
    top_k: int = 5,
    filter: Filter = None,
    collection: str = "",
) -> str:
    """Passages whose vectors are nearest to one of the caller's own."""
    import numpy as np  # noqa: PLC0415  (every command would load it)

    where = scope.search_scope(_named(collection), filter=filter)
    with np.errstate(over="ignore"):  # it is infinite then
        asked = np.asarray(vector, dtype=np.float32)
    if not np.isfinite(asked).all() or not asked.any():
        raise InvalidInput("A vector has finite numbers, one of them not 0.", field="vector")
    result = search("", scope=where, mode="vector", k=int(top_k), vector=asked, snippets=False)
    return _told(scope, result)


def _named(collection: str) -> tuple[str, ...]:
    return (collection,) if collection else ()


def _told(scope: RagContext, result: SearchResult) -> str:
    passages = scope.collect(result.hits)
    return told_passages(passages, [_score(hit, result.mode) for hit in result.hits])


def _score(hit: Hit, mode: Mode) -> float:
    """What ordered the list."""
    if hit.rerank is not None:
        return hit.rerank
    own = {"vector": hit.similarity, "lexical": hit.lexical}.get(mode)
    return hit.fused if own is None else own

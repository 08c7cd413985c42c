"""The one door to searching: a question and a scope in, a page of hits out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from accounts.models import Workspace
from accounts.services import principals
from common.errors import InvalidInput, NotFound, RagsiteError
from documents.models import Collection
from inference.base import InferenceError
from search.filters import Node, all_of, metadata_filter, one_of, read_filter
from search.filters.fields import Field
from search.fusion import METHODS, Arm, Fused, Method, adapted_weights, fuse
from search.hits import Row, group_rows, load_rows, make_hits
from search.query import Query, QueryError, parse_query
from search.results import MODES, Facet, Mode, Scope, SearchResult
from search.retrieval.arms import Candidate, Retrieved, retrieve

#: Every arm lists at least this many, and no more hits than this are offered: so all pages of an
#: answer come from one ranking. Whoever asks for more gets it from one of twice the depth.
DEPTH = 200
MAX_K = 100

#: Where a question's nearest passage is as close as usual; `fusion.adapted_weights` follows it from
#: there. Measured in docs/decisions/0016. Ranks need no such balance.
WEIGHTS: Mapping[Method, Mapping[str, float]] = {
    "score": {"lexical": 0.41, "vector": 0.59},
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
    group: bool = False,
    snippets: bool = True,
) -> SearchResult:
    """Rank the passages in `scope` for `query`.

    `group` shows the best passage of each document and how many more it has; `k` and `offset`
    then count documents. Without `snippets` no words are highlighted, which programs that only
    want the ranking need not wait for. Raises InvalidInput for a query or a number that cannot
    be, and EmbedderUnavailable for mode `vector` without a working model; mode `hybrid` then
    answers by words alone and says so in `degraded`.
    """
    started = perf_counter()
    parsed = _checked(query, mode=mode, k=k, offset=offset, fusion=fusion)
    depth = _depth(offset + k)
    try:
        retrieved = retrieve(parsed, scope=scope, mode=mode, depth=depth)
    except InferenceError as error:
        raise EmbedderUnavailable(
            f"Search by meaning does not work just now: {error} Search by words still does."
        ) from error
    weights = WEIGHTS[fusion]
    if fusion == "score":
        weights = adapted_weights(weights, retrieved.nearest)
    ranked = fuse(_arms(retrieved, weights), method=fusion)[:depth]
    result = _page(parsed, ranked, retrieved, k=k, offset=offset, group=group, snippets=snippets)
    weighed = tuple(
        replace(report, weight=round(weights[report.name], 3)) for report in retrieved.arms
    )
    timings = {**retrieved.timings, "total": round((perf_counter() - started) * 1000, 3)}
    return replace(
        result, query=query, mode=mode, arms=weighed, timings=timings, filter=scope.filter
    )


def _depth(last: int) -> int:
    depth = DEPTH
    while depth < last:
        depth *= 2
    return depth


def _checked(query: str, *, mode: str, k: int, offset: int, fusion: str) -> Query:
    if mode not in MODES:
        raise InvalidInput(f"There is no mode “{mode}”. Use {', '.join(MODES)}.", field="mode")
    if fusion not in METHODS:
        raise InvalidInput(
            f"There is no fusion “{fusion}”. Use {', '.join(METHODS)}.", field="fusion"
        )
    if not 1 <= k <= MAX_K:
        raise InvalidInput(f"k may be 1 to {MAX_K}.", field="k")
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidInput(f"offset may be 0 to {MAX_OFFSET}.", field="offset")
    try:
        return parse_query(query)
    except QueryError as error:
        raise InvalidInput(str(error), field="query") from error


def _arms(retrieved: Retrieved, weights: Mapping[str, float]) -> list[Arm]:
    values: dict[str, Callable[[Candidate], float | None]] = {
        "lexical": lambda candidate: candidate.lexical,
        "vector": lambda candidate: candidate.closeness,
    }
    return [
        _arm(report.name, values[report.name], weights[report.name], retrieved.candidates)
        for report in retrieved.arms
    ]


def _arm(
    name: str,
    value: Callable[[Candidate], float | None],
    weight: float,
    candidates: Sequence[Candidate],
) -> Arm:
    known = {entry.chunk_id: value(entry) for entry in candidates}
    return Arm(
        name=name,
        ranks={entry.chunk_id: entry.ranks[name] for entry in candidates if name in entry.ranks},
        scores={chunk_id: score for chunk_id, score in known.items() if score is not None},
        weight=weight,
    )


def _page(
    query: Query,
    ranked: Sequence[Fused],
    retrieved: Retrieved,
    *,
    k: int,
    offset: int,
    group: bool,
    snippets: bool,
) -> SearchResult:
    rows = load_rows([entry.hit for entry in ranked])
    listed = (
        group_rows(ranked, rows) if group else [(entry, 0) for entry in ranked if entry.hit in rows]
    )
    candidates = {candidate.chunk_id: candidate for candidate in retrieved.candidates}
    hits = make_hits(
        query,
        listed[offset : offset + k],
        candidates=candidates,
        rows=rows,
        best=ranked[0].score if ranked else 0.0,
        first_rank=offset + 1,
        snippets=snippets,
    )
    return SearchResult(
        query=query.text,
        mode="hybrid",
        hits=hits,
        total=len(listed),
        offset=offset,
        k=k,
        arms=retrieved.arms,
        facets=_facets([rows[entry.hit] for entry, _ in listed]),
        timings=retrieved.timings,
        degraded=retrieved.degraded,
        notes=_notes(query, retrieved),
    )


def _notes(query: Query, retrieved: Retrieved) -> tuple[str, ...]:
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
    lexical = [report for report in retrieved.arms if report.name == "lexical"]
    if retrieved.candidates and lexical and not lexical[0].candidates:
        notes.append("No passage holds these words: these were found by meaning.")
    return tuple(notes)


def _facets(rows: Sequence[Row]) -> dict[str, tuple[Facet, ...]]:
    """Counts of the values that the found passages have, most frequent first."""
    collections = Counter((row.collection_slug, row.collection_name) for row in rows)
    media_types = Counter(row.media_type for row in rows)
    return {
        "collection": tuple(
            Facet(slug, name, count) for (slug, name), count in collections.most_common()
        ),
        "media_type": tuple(
            Facet(value, value, count) for value, count in media_types.most_common()
        ),
    }

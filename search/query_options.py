"""The options of a search and the scope it runs in.

Begin with `SearchQuery` (options and their limits) and `scope_for` (which documents a user may
search).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounts.models import User, Workspace
from accounts.services import principals
from common.errors import InvalidInput, NotFound
from common.fusion_options import FusionOptions, Method
from common.sql import CompiledQuery, fetch_prepared
from documents.models import Collection
from documents.spaces import check_option
from search.filters import ALL, Node, all_of, metadata_filter, one_of, read_filter
from search.filters.tree import Field
from search.query import Query, QueryError, parse_query
from search.results import (
    EXPANSIONS,
    MODES,
    SORTS,
    VERSIONS,
    Expansion,
    Mode,
    Scope,
    Sort,
    Versions,
)

MAX_K = 100
MAX_OFFSET = 1000


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A question with its search options, without scope and page.

    The fields are the parameters of `search.services.search`.
    """

    text: str
    mode: Mode = "hybrid"
    fusion: Method | None = None
    rrf_k: int | None = None
    weights: Mapping[str, float] | None = None
    depth: int | None = None
    vector: Sequence[float] | NDArray[np.float32] | None = None
    rerank: bool | None = None
    min_similarity: float | None = None
    min_rerank: float | None = None
    diversify: bool = False
    group: bool = False
    expand: Expansion = "parent"
    sort: Sort = "relevance"
    ef_search: int | None = None
    probes: int | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms that can be weighted."""
        return ("lexical", "vector", *(["graph"] if self.mode == "graph" else []))

    @property
    def fusion_options(self) -> FusionOptions:
        """The fusion options of this request; None fields are open."""
        return FusionOptions(self.fusion, self.rrf_k, self.weights, self.depth)

    def check(self) -> None:
        """Raises InvalidInput for unknown or contradictory options."""
        choices: tuple[tuple[str, str, Sequence[str]], ...] = (
            ("mode", self.mode, MODES),
            ("expand", self.expand, EXPANSIONS),
            ("sort", self.sort, SORTS),
        )
        for field, value, known in choices:
            if value not in known:
                raise InvalidInput(
                    f"There is no {field} “{value}”. Use {', '.join(known)}.", field=field
                )
        self.fusion_options.check(arms=self.arms)
        check_thresholds(self.mode, self.rerank, self.min_similarity, self.min_rerank)
        for field, number in (("ef_search", self.ef_search), ("probes", self.probes)):
            if number is None:
                continue
            check_option(field, number)
            if self.mode == "lexical":
                raise InvalidInput(
                    "Mode lexical asks no index of vectors. Use another mode or leave"
                    f" {field} out.",
                    field=field,
                )


def check_page(*, k: int, offset: int) -> None:
    """Raises InvalidInput for `k` or `offset` out of range."""
    if not 1 <= k <= MAX_K:
        raise InvalidInput(f"k may be 1 to {MAX_K}.", field="k")
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidInput(f"offset may be 0 to {MAX_OFFSET}.", field="offset")


def checked_versions(versions: str) -> Versions:
    for known in VERSIONS:
        if versions == known:
            return known
    raise InvalidInput(
        f"There are no versions “{versions}”. Use {', '.join(VERSIONS)}.", field="versions"
    )


def check_thresholds(
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


def parsed_query(query: str, *, mode: Mode, vector: Any) -> Query:
    if vector is not None and mode == "vector" and not query.strip():
        return Query(text="")
    try:
        return parse_query(query)
    except QueryError as error:
        raise InvalidInput(str(error), field="query") from error


def checked_vector(
    vector: Sequence[float] | NDArray[np.float32] | None,
) -> NDArray[np.float32] | None:
    if vector is None:
        return None
    try:
        asked = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput("A vector is a list of numbers.", field="vector") from error
    if asked.ndim != 1 or not np.isfinite(asked).all() or not asked.any():
        raise InvalidInput(
            "A vector is a list of finite numbers that are not all zero.", field="vector"
        )
    return asked


def arm_weights(alpha: float | None, beta: float | None) -> dict[str, float] | None:
    """Weights from alpha (vector) and beta (lexical); None where neither is given. A
    missing one is 1 minus the other.
    """
    if alpha is None and beta is None:
        return None
    vector = max(0.0, 1 - (beta or 0.0)) if alpha is None else alpha
    lexical = max(0.0, 1 - vector) if beta is None else beta
    return {"lexical": lexical, "vector": vector}


_SITE = "SELECT slug, id FROM documents_collection WHERE workspace_id = %s::bigint"
_VISIBLE = CompiledQuery(
    lambda: Collection.objects.visible_to(User(pk=0)).filter(workspace=0).values("slug", "id")
)


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
    """The scope that `user` may search in `workspace`, narrowed to the named collections and by
    `filter`.

    `filter` is in JSON or text form; one of `media_types` and all of `metadata` must match too.
    `versions`: `current`, or `all`. Raises NotFound for a collection that is missing or
    invisible, and FilterError.
    """
    found: list[Any] = []
    if user.is_active:
        found = fetch_prepared(
            f"SELECT slug, id FROM ({_VISIBLE.sql}) AS visible UNION ALL"  # noqa: S608 (no values)
            " SELECT NULL, group_id FROM accounts_user_groups WHERE user_id = %s",
            [user.pk, workspace.pk, user.pk],
        )
    return _scope(
        workspace,
        {slug: pk for slug, pk in found if slug is not None},
        collections,
        principals=tuple(principals(user, [pk for slug, pk in found if slug is None])),
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
    """The scope of the site itself (commands, evaluation), without access restrictions."""
    return _scope(
        workspace,
        dict(fetch_prepared(_SITE, [workspace.pk])),
        collections,
        filter=_narrowed(filter, media_types, metadata),
        versions=checked_versions(versions),
    )


def _narrowed(
    filter: Mapping[str, Any] | str | None,
    media_types: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Node:
    if not (filter or media_types or metadata):
        return ALL
    parts = [read_filter(filter)]
    if media_types:
        parts.append(one_of(Field("media_type"), media_types))
    return all_of([*parts, metadata_filter(metadata or {})])


def _scope(
    workspace: Workspace, known: Mapping[str, int], slugs: Sequence[str], **narrowed: Any
) -> Scope:
    unknown = [slug for slug in slugs if slug not in known]
    if unknown:
        names = ", ".join(sorted(known)[:20]) or "none yet"
        raise NotFound(f"There is no collection “{unknown[0]}”. There are: {names}.")
    every = tuple(sorted(known.values()))
    named = tuple(sorted(known[slug] for slug in slugs))
    return Scope(workspace.id, named or every, visible_ids=every, **narrowed)

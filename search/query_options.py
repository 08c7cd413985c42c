"""The options of a search and the scope it runs in.

Begin with `SearchQuery` (options and their limits) and `scope_for` (which documents a user may
search).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from accounts.models import User, Workspace
from accounts.services import GROUPS_OF_USER, principals
from common.errors import InvalidInput, NotFound
from common.fusion_options import FusionOptions, Method
from common.sql import CompiledQuery, fetch_prepared
from documents.models import Collection
from documents.spaces import check_option
from search.filters import ALL, Node, all_of, metadata_filter, one_of, read_filter
from search.filters.tree import Field
from search.query import Query, QueryError, parse_query
from search.reranking import MAX_RERANK_DEPTH
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

    `vector` replaces the question's embedding; in mode `vector` the text may then be empty.
    `fusion`, `rrf_k`, `depth`: None uses those of the collections or the site. `weights` of
    `lexical` and `vector` (≥ 0) replace adapted ones. `rerank`: None uses a reranker if set up
    and quick enough, True demands one, False skips it; it reads the first `rerank_depth` hits, by
    default 20 on demand and else 12. `min_similarity` (−1..1), `min_rerank` (0..1): hits with a
    lower or missing score are dropped. `diversify` moves hits of the same document or source
    down. `group` keeps the best passage per document. `expand` adds surrounding text: by default
    the parent passage, each parent once; `graph` adds related passages to the first ten hits.
    `sort`: by `relevance`, or of the hits at least half as relevant as the best the `newest`,
    `oldest`, or by `title`. `ef_search` (1..1,000, HNSW) and `probes` (1..32,768, IVFFlat)
    override index options.
    """

    text: str
    mode: Mode = "hybrid"
    fusion: Method | None = None
    rrf_k: int | None = None
    weights: Mapping[str, float] | None = None
    depth: int | None = None
    vector: Sequence[float] | NDArray[np.float32] | None = None
    rerank: bool | None = None
    rerank_depth: int | None = None
    min_similarity: float | None = None
    min_rerank: float | None = None
    diversify: bool = False
    group: bool = False
    expand: Expansion = "parent"
    sort: Sort = "relevance"
    ef_search: int | None = None
    probes: int | None = None

    @classmethod
    def read(cls, text: str, given: Mapping[str, Any], **options: Any) -> Self:
        """From the parameters of a request, a page or a command by name, `alpha` and `beta` being
        weights; other names are passed over. `options` go first.
        """
        found = {each.name: given[each.name] for each in fields(cls) if each.name in given}
        if (weights := arm_weights(given.get("alpha"), given.get("beta"))) is not None:
            found["weights"] = weights
        return cls(**{**found, "text": text, **options})

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
        _check_choice("mode", self.mode, MODES)
        _check_choice("expand", self.expand, EXPANSIONS)
        _check_choice("sort", self.sort, SORTS)
        self.fusion_options.check(arms=self.arms)
        if self.min_similarity is not None:
            if not -1 <= self.min_similarity <= 1:
                raise InvalidInput(
                    gettext("min_similarity may be −1 to 1."), field="min_similarity"
                )
            if self.mode == "lexical":
                raise InvalidInput(
                    gettext(
                        "Mode lexical compares no vectors, so no hit has a similarity. Use"
                        " another mode or leave min_similarity out."
                    ),
                    field="min_similarity",
                )
        if self.rerank_depth is not None and not 1 <= self.rerank_depth <= MAX_RERANK_DEPTH:
            raise InvalidInput(
                gettext("rerank_depth may be 1 to {limit}.").format(limit=MAX_RERANK_DEPTH),
                field="rerank_depth",
            )
        if self.min_rerank is not None:
            if not 0 <= self.min_rerank <= 1:
                raise InvalidInput(gettext("min_rerank may be 0 to 1."), field="min_rerank")
            if self.rerank is False:
                raise InvalidInput(
                    gettext("Without reranking no hit has its score. Leave min_rerank out."),
                    field="min_rerank",
                )
        for field, number in (("ef_search", self.ef_search), ("probes", self.probes)):
            if number is None:
                continue
            check_option(field, number)
            if self.mode == "lexical":
                raise InvalidInput(
                    gettext(
                        "Mode lexical asks no index of vectors. Use another mode or leave"
                        " {field} out."
                    ).format(field=field),
                    field=field,
                )

    def parsed(self) -> Query:
        """The question's words and operators. Raises InvalidInput."""
        if self.vector is not None and self.mode == "vector" and not self.text.strip():
            return Query(text="")
        try:
            return parse_query(self.text)
        except QueryError as error:
            raise InvalidInput(str(error), field="query") from error

    def checked_vector(self) -> NDArray[np.float32] | None:
        """The vector as an array. Raises InvalidInput."""
        if self.vector is None:
            return None
        try:
            vector = np.asarray(self.vector, dtype=np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(gettext("A vector is a list of numbers."), field="vector") from error
        if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
            raise InvalidInput(
                gettext("A vector is a list of finite numbers that are not all zero."),
                field="vector",
            )
        return vector


def _check_choice(field: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidInput(
            gettext("There is no {field} “{value}”. Use {names}.").format(
                field=field, value=value, names=", ".join(known)
            ),
            field=field,
        )


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
    `filter`. None is the site itself (commands, evaluation), without access restrictions.

    `filter` is in JSON or text form; one of `media_types` and all of `metadata` must match too.
    `versions`: `current`, or `all`. Raises NotFound for a collection that is missing or
    invisible, and FilterError.
    """
    found: list[Any] = []
    if user is None:
        found = fetch_prepared(_SITE, [workspace.pk])
    elif user.is_active:
        found = fetch_prepared(
            f"SELECT slug, id FROM ({_VISIBLE.sql}) AS visible UNION ALL"  # noqa: S608 (no values)
            f" SELECT NULL, group_id FROM ({GROUPS_OF_USER}) AS own",
            [user.pk, workspace.pk, user.pk, user.pk],
        )
    known = {slug: pk for slug, pk in found if slug is not None}
    groups = [pk for slug, pk in found if slug is None]
    narrowed: Node = ALL
    if filter or media_types or metadata:
        parts = [read_filter(filter)]
        if media_types:
            parts.append(one_of(Field("media_type"), media_types))
        narrowed = all_of([*parts, metadata_filter(metadata or {})])
    if versions not in VERSIONS:
        raise InvalidInput(
            gettext("There are no versions “{versions}”. Use {names}.").format(
                versions=versions, names=", ".join(VERSIONS)
            ),
            field="versions",
        )
    if unknown := [slug for slug in collections if slug not in known]:
        names = ", ".join(sorted(known)[:20]) or "none yet"
        raise NotFound(
            gettext("There is no collection “{unknown}”. There are: {names}.").format(
                unknown=unknown[0], names=names
            )
        )
    every = tuple(sorted(known.values()))
    return Scope(
        workspace.id,
        tuple(sorted(known[slug] for slug in collections)) or every,
        principals=None if user is None else tuple(principals(user, groups)),
        filter=narrowed,
        versions=versions,
        visible_ids=every,
    )


#: The scope of the site itself: everything of a workspace.
site_scope = partial(scope_for, user=None)

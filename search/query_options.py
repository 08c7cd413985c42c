"""The options of a search and the scope it runs in.

Begin with `SearchQuery` (options and their limits) and `scope_for` (which documents a user may
search).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray
from pydantic import Field, PlainValidator, SkipValidation, model_validator

from accounts.models import User, Workspace
from accounts.services import GROUPS_OF_USER, principals
from common.errors import InvalidInput, NotFound
from common.fusion_options import FusionMethod, FusionOptions
from common.options import INTERNAL, Options
from common.sql import CompiledQuery, fetch_prepared
from documents.models import Collection
from documents.spaces import OPTION_BOUNDS
from search.filters import ALL, Node, all_of, metadata_filter, one_of, read_filter
from search.filters.tree import MAX_PATH_CHARACTERS
from search.filters.tree import Field as FilteredField
from search.query import MAX_QUERY_CHARACTERS, Query, QueryError, parse_query
from search.reranking import DEFAULT_RERANK_DEPTH, MAX_RERANK_DEPTH, RERANK_DEPTH
from search.results import VERSIONS, Expansion, Mode, Scope, Sort, Versions

MAX_K = 100
MAX_OFFSET = 1000
MAX_FACETS = 10


def _checked_vector(given: Any) -> NDArray[np.float32] | None:
    if given is None:
        return None
    try:
        vector = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(gettext("A vector is a list of numbers."), field="vector") from error
    if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
        raise InvalidInput(
            gettext("A vector is a list of finite numbers that are not all zero."),
            field="vector",
        )
    return vector


class RetrievalOptions(FusionOptions):
    """How passages are found, as whoever asks may set it: searches, answers, tools, pipelines."""

    method: FusionMethod = Field(default=None, alias="fusion")
    alpha: float | None = Field(
        default=None,
        ge=0,
        description="What words (BM25) count for, such as 0.4. Default: what `beta` leaves to 1.",
    )
    beta: float | None = Field(
        default=None,
        ge=0,
        description="What meaning (cosine) counts for, such as 0.6. Default: what `alpha` leaves to"
        " 1.",
    )
    lexical_weight: float | None = Field(default=None, ge=0, description="Another name of `alpha`.")
    vector_weight: float | None = Field(default=None, ge=0, description="Another name of `beta`.")
    rerank: bool | None = Field(
        default=None,
        description="Whether a model reads the best hits again, whose scores are fused with those"
        " of the arms. Default: where one is set up, as far as it answers in time. `true` demands"
        " and waits for it.",
    )

    @property
    def fusion_options(self) -> FusionOptions:
        """The fusion options of this request; None fields are open."""
        weights = self.weights
        lexical = self.lexical_weight if self.alpha is None else self.alpha
        vector = self.vector_weight if self.beta is None else self.beta
        if lexical is not None or vector is not None:
            weights = {
                "lexical": max(0.0, 1 - (vector or 0.0)) if lexical is None else lexical,
                "vector": max(0.0, 1 - (lexical or 0.0)) if vector is None else vector,
            }
        own = {name: getattr(self, name) for name in FusionOptions.model_fields}
        return FusionOptions.model_construct(**{**own, "weights": weights})

    @model_validator(mode="after")
    def _check_arm_weights(self) -> Self:
        lexical, vector = ("alpha", "lexical_weight"), ("beta", "vector_weight")
        given = self.model_fields_set & {
            name for name in (*lexical, *vector, "weights") if getattr(self, name) is not None
        }
        if given >= {*lexical} or given >= {*vector} or ("weights" in given and len(given) > 1):
            raise InvalidInput(
                gettext("{names} say the same twice. Leave one of them out.").format(
                    names=", ".join(sorted(given))
                ),
                field=max(given),
            )
        weights = self.fusion_options.weights
        if given and weights and not any(weights.values()):
            raise InvalidInput(
                gettext("Weights are finite numbers of at least 0, one of them greater."),
                field=max(given),
            )
        return self


class SearchQuery(RetrievalOptions):
    """A question with its search options, without scope and page.

    `vector` replaces the question's embedding; in mode `vector` `q` may then be empty. `rerank`
    reads the first `rerank_depth` hits, by default 20 on demand and else 12. Hits with a lower or
    missing score than `min_similarity` or `min_rerank` are dropped. `ef_search` (HNSW) and
    `probes` (IVFFlat) override index options. Contradictory options raise InvalidInput.
    """

    q: str = Field(
        max_length=MAX_QUERY_CHARACTERS,
        description="Words or a question. `“a phrase”` must and `-word` must not stand in a hit;"
        " `word*` finds words that begin so.",
    )
    mode: Mode = Field(
        default="hybrid",
        description="`lexical` finds by words, `vector` by meaning, `hybrid` by both. `graph`"
        " besides adds passages that name what the best of those name: for questions whose answer"
        " lies in several documents.",
    )
    sort: Sort = Field(
        default="relevance",
        description="`newest`, `oldest` and `title` order the hits that are at least half as"
        " relevant as the best one, by the document's own date (`dated`) or its title. The others"
        " are left out.",
    )
    vector: Annotated[Any, PlainValidator(_checked_vector)] = Field(
        default=None, json_schema_extra=INTERNAL
    )
    rerank_depth: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RERANK_DEPTH,
        description=f"How many of the best hits it reads. Default: {RERANK_DEPTH} with"
        f" `rerank=true`, else {DEFAULT_RERANK_DEPTH}.",
    )
    min_similarity: float | None = Field(
        default=None, ge=-1, le=1, description="Only hits with at least this similarity of vectors."
    )
    min_rerank: float | None = Field(
        default=None, ge=0, le=1, description="Only hits that the reranker scores at least so high."
    )
    min_relevance: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Only hits with at least this share of the best one's score (`relevance`).",
    )
    diversify: bool = Field(
        default=False, description="Further hits of one document or source come later."
    )
    group: bool = Field(default=False, description="Only the best passage of each document.")
    ef_search: int | None = Field(
        default=None,
        ge=OPTION_BOUNDS["ef_search"][0],
        le=OPTION_BOUNDS["ef_search"][1],
        description="Candidates that an HNSW index of vectors looks at. Default: what the embedding"
        " space says, or else what suits the size of its index.",
    )
    probes: int | None = Field(
        default=None,
        ge=OPTION_BOUNDS["probes"][0],
        le=OPTION_BOUNDS["probes"][1],
        description="The same of an IVFFlat index: lists that are looked at.",
    )
    expand: Expansion = Field(
        default="parent",
        description="Text around each hit: of its `siblings`, the passages before and behind it, of"
        " its whole `section`, or `none`. `parent`: of the larger passage that it is a part of, in"
        " collections with the chunker `parent_child`, where each such passage is then listed"
        " once, by the best of its parts; elsewhere nothing. `graph`: up to three `related`"
        " passages for each of the first ten hits, from beside it or naming the same.",
    )

    @property
    def arms(self) -> tuple[str, ...]:
        return (*super().arms, *(["graph"] if self.mode == "graph" else []))

    @model_validator(mode="after")
    def _check_contradictions(self) -> Self:
        if self.min_similarity is not None and self.mode == "lexical":
            raise InvalidInput(
                gettext(
                    "Mode lexical compares no vectors, so no hit has a similarity. Use"
                    " another mode or leave min_similarity out."
                ),
                field="min_similarity",
            )
        if self.min_rerank is not None and self.rerank is False:
            raise InvalidInput(
                gettext("Without reranking no hit has its score. Leave min_rerank out."),
                field="min_rerank",
            )
        for field, number in (("ef_search", self.ef_search), ("probes", self.probes)):
            if number is not None and self.mode == "lexical":
                raise InvalidInput(
                    gettext(
                        "Mode lexical asks no index of vectors. Use another mode or leave"
                        " {field} out."
                    ).format(field=field),
                    field=field,
                )
        return self

    def parsed(self) -> Query:
        """The question's words and operators. Raises InvalidInput."""
        if self.vector is not None and self.mode == "vector" and not self.q.strip():
            return Query(text="")
        try:
            return parse_query(self.q)
        except QueryError as error:
            raise InvalidInput(str(error), field="q") from error


class ScopeOptions(Options):
    """Which documents are searched."""

    collections: tuple[str, ...] = Field(
        default=(),
        alias="collection",
        max_length=100,
        description="Slugs of collections. Default: all that you may see.",
    )
    types: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(),
        alias="type",
        max_length=100,
        description="Media types, such as `application/pdf`. Default: all.",
    )
    #: The parser of filters has its own errors.
    filter: SkipValidation[str | Mapping[str, Any] | None] = Field(
        default=None,
        description="What hits must be like, as JSON or as text:"
        ' `{"year": {"$gte": 2020}, "language": "de"}` or `year>=2020; lang=de`.',
    )
    versions: Versions = Field(
        default="current", description="`all` finds superseded versions of documents too."
    )

    def scope(self, *, user: Any, workspace: Workspace) -> Scope:
        """What `user` may see of it. Raises NotFound and FilterError."""
        return scope_for(
            user=user,
            workspace=workspace,
            collections=self.collections,
            filter=self.filter,
            media_types=self.types,
            versions=self.versions,
        )


class PageOptions(Options):
    """Which hits of a search are listed, and with what."""

    k: int = Field(default=10, ge=1, le=MAX_K, description="Hits a page, at most.")
    offset: int = Field(default=0, ge=0, le=MAX_OFFSET, description="Hits to pass over.")
    facets: tuple[Annotated[str, Field(min_length=1, max_length=MAX_PATH_CHARACTERS)], ...] = Field(
        default=(),
        alias="facet",
        max_length=MAX_FACETS,
        description="Fields whose values to count: `collection`, `media_type`, `language`, `origin`"
        " (site or folder), `dated` (by year), any of the metadata. `*`: all of these, of the"
        " metadata those that the collections chose, or else the most telling. What the filter"
        " picks of such a field (`author=knuth`, `lang=de,fr`) does not hide its other values.",
    )


class SimilarOptions(Options):
    """How many similar documents or passages are listed."""

    k: int = Field(default=10, ge=1, le=50, description="As many, at most.")


class FacetOptions(Options):
    """Which values of a facet are listed, and counted in which hits."""

    facet: str = Field(
        max_length=MAX_PATH_CHARACTERS,
        description="`collection`, `media_type`, `language`, `origin`, `dated`, or any field of the"
        " metadata.",
    )
    prefix: str = Field(
        default="",
        max_length=100,
        description="How a word of the value begins, whatever the case and the accents.",
    )
    q: str = Field(
        default="",
        max_length=MAX_QUERY_CHARACTERS,
        description="The question whose hits are counted. Without one, documents are.",
    )
    mode: Mode = Field(default="hybrid", description="How the question is searched.")
    group: bool = Field(default=False, description="Count documents instead of passages.")
    limit: int = Field(default=20, ge=1, le=100, description="Values, at most.")


class SimilarRequest(ScopeOptions, SimilarOptions):
    """All options of a request for what is similar."""


class FacetRequest(ScopeOptions, FacetOptions):
    """All options of a request for values of a facet."""


class SearchRequest(PageOptions, ScopeOptions, SearchQuery):
    """All options of a request for hits."""


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
            parts.append(one_of(FilteredField("media_type"), media_types))
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

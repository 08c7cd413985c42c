"""Vector-store interface to a collection: items with ids, texts, vectors and metadata
of the caller. Begin with `Store`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from django.db import transaction
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from accounts.services import current_workspace, require_editor
from common.errors import EmbedderUnavailable, InvalidInput, NotFound
from common.fusion_options import Method
from common.options import Options
from common.replicas import read_alias, read_connection, reads_from_replica
from common.stored_messages import translated_message
from common.translation import gettext
from documents import services as documents
from documents.embedders import embed_question
from documents.ingestion.items import Item, check_vector
from documents.ingestion.vector_indexes import IndexState
from documents.models import Collection, EmbeddingSpace
from documents.services import StoredItem, StoreResult
from documents.spaces import BINARY_OVERSAMPLING, MIN_BINARY_CANDIDATES, resolve_metric
from inference.interfaces import InferenceError
from search.query import MAX_QUERY_CHARACTERS
from search.query_options import RetrievalOptions, SearchQuery, scope_for
from search.results import Mode, Scope, SearchResult
from search.retrieval.statements import (
    MAX_EF_SEARCH,
    index_settings,
    is_large,
    scope_conditions,
    usable_indexes,
)
from search.services import search


@dataclass(frozen=True, slots=True)
class Match:
    """An item, represented by its best passage. Matches are ordered by `score`, higher is better.

    `score` is the fused score of a search, times what a reranker makes of it; the similarity in
    mode vector if not reranked; or that of the metric of a similarity search. `similarity` and
    `lexical` are None where that arm did not list it.
    """

    id: str
    score: Annotated[
        float,
        "Higher is better. In mode `vector` the similarity in the metric, else of the arms"
        " together.",
    ]
    text: Annotated[str, "The passage."]
    metadata: Mapping[str, Any]
    title: str
    similarity: float | None
    lexical: Annotated[float | None, "BM25, 0 or more."]
    document_id: int
    chunk_id: int
    snippet: Annotated[str | None, "Its best part. Null without a query, or if not requested."] = (
        None
    )


class Matches(tuple[Match, ...]):
    """Matches, best first. `degraded` names what failed."""

    degraded: tuple[str, ...]

    def __new__(cls, found: Iterable[Match], degraded: tuple[str, ...] = ()) -> Self:
        matches = super().__new__(cls, found)
        matches.degraded = degraded
        return matches

    @classmethod
    def of(cls, result: SearchResult, *, snippets: bool) -> "Matches":
        """Matches of a search result grouped by document."""
        found = []
        for hit in result.hits:
            by_meaning = None
            if result.mode == "vector" and not result.reranked:
                by_meaning = hit.similarity
            found.append(
                Match(
                    id=hit.document_key,
                    score=hit.score if by_meaning is None else by_meaning,
                    text=hit.text,
                    metadata=hit.metadata,
                    title=hit.title,
                    similarity=hit.similarity,
                    lexical=hit.lexical,
                    document_id=hit.document_id,
                    chunk_id=hit.chunk_id,
                    snippet=hit.snippet.text if snippets else None,
                )
            )
        return cls(found, result.degraded)


def make_items(
    given: Iterable[Any], *, ids: Sequence[str] | None, id_prefix: str | None
) -> list[Item]:
    """Items from items, mappings, texts or vectors. Those without an id need `ids` or
    `id_prefix`.
    """
    entries = list(given)
    if ids is not None and len(ids) != len(entries):
        raise InvalidInput(
            gettext("Items: {items}; ids: {ids}. Give one id for each item.").format(
                items=len(entries), ids=len(ids)
            ),
            field="ids",
        )
    items = []
    for number, entry in enumerate(entries):
        if isinstance(entry, Item):
            items.append(entry)
            continue
        fields: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
        if not isinstance(entry, Mapping):
            fields = {"text" if isinstance(entry, str) else "vector": entry}
        if unknown := sorted(set(fields) - set(Item.__slots__)):
            raise InvalidInput(
                gettext("An item has no field “{name}”. Its fields are {names}.").format(
                    name=unknown[0], names=", ".join(Item.__slots__)
                ),
                field="items",
            )
        if "id" not in fields and ids is None and id_prefix is None:
            raise InvalidInput(
                gettext("Give each item an id, or set `ids` or `id_prefix`."), field="id"
            )
        name = f"{id_prefix}:{number}" if ids is None else ids[number]
        items.append(Item(**{"id": name, **fields}))
    return items


#: An item may have several passages among the nearest: more are taken than items are wanted.
OVERSAMPLING = 4
MIN_PASSAGES = 200
#: From pgvector's distances to similarities: 1 − d, −d, and `<#>` is the negative inner product.
#: `-(0)` would be a negative zero, and be shown as “-0.0”.
SIMILARITIES = {"cosine": "1 - ({})", "l2": "0 - ({})", "ip": "0 - ({})"}

_NEAREST_SQL = """
    WITH passage AS MATERIALIZED (
        SELECT chunk.id, chunk.document_id, {distance} AS distance
        FROM {chunks}
    ), item AS (
        SELECT DISTINCT ON (document_id) id, document_id, distance
        FROM passage ORDER BY document_id, distance, id
    ), nearest AS (
        SELECT * FROM item ORDER BY distance, document_id LIMIT %(k)s
    )
    SELECT document.key, {similarity}, chunk.text, chunk.metadata, document.title,
           nearest.document_id, nearest.id
    FROM nearest
    JOIN documents_chunk AS chunk ON chunk.id = nearest.id
    JOIN documents_document AS document ON document.id = nearest.document_id
    ORDER BY nearest.distance, nearest.document_id
"""


@reads_from_replica
def nearest_items(
    vector: NDArray[np.float32], *, space: EmbeddingSpace, scope: Scope, k: int, metric: str
) -> tuple[Match, ...]:
    """The `k` items in `scope` whose best passage is nearest to `vector`; exactly k if there are
    as many.

    Above `EXACT_SCAN_CHUNKS` the index is used, if the metric is the space's own.
    """
    index = usable_indexes([space]).get(space.pk) if metric == space.metric else None
    if index is not None and is_large(scope):
        found = _nearest(vector, space=space, scope=scope, k=k, metric=metric, index=index)
        if len(found) == k:
            return found
    return _nearest(vector, space=space, scope=scope, k=k, metric=metric, index=None)


def _nearest(
    vector: NDArray[np.float32],
    *,
    space: EmbeddingSpace,
    scope: Scope,
    k: int,
    metric: str,
    index: IndexState | None,
) -> tuple[Match, ...]:
    conditions, parameters = scope_conditions(scope)
    chunks = (
        f"documents_chunk AS chunk WHERE {space.sql.predicate}"
        f" AND chunk.embedding IS NOT NULL AND {conditions}"
    )
    if index is not None:
        chunks = (
            f"(SELECT chunk.id, chunk.document_id, embedding FROM {chunks}"  # noqa: S608 - fixed pieces, values are parameters
            f" ORDER BY {space.sql.indexed_distance('%(vector)s')} LIMIT %(passages)s) AS chunk"
        )
    sql = _NEAREST_SQL.format(
        distance=replace(space.sql, metric=metric).distance("%(vector)s"),
        chunks=chunks,
        similarity=SIMILARITIES[metric].format("nearest.distance"),
    )
    # Binary vectors are coarse: more passages are taken from the index.
    passages = max(OVERSAMPLING * k, MIN_PASSAGES)
    if space.precision == EmbeddingSpace.Precision.BINARY:
        passages = max(OVERSAMPLING * BINARY_OVERSAMPLING * k, MIN_BINARY_CANDIDATES)
    asked: dict[str, Any] = {**parameters, "vector": vector, "k": k, "passages": passages}
    with transaction.atomic(using=read_alias()), read_connection().cursor() as cursor:
        if index is not None:
            probes = space.sql.probes(index.rows)
            ef_search = space.index_options.get("ef_search") or min(passages, MAX_EF_SEARCH)
            cursor.execute(index_settings(ef_search=ef_search, probes=probes))
        cursor.execute(sql, asked)
        return tuple(
            Match(
                id=key,
                score=similarity,
                text=text,
                metadata=json.loads(metadata),  # Django leaves jsonb as text
                title=title,
                similarity=similarity,
                lexical=None,
                document_id=document_id,
                chunk_id=chunk_id,
            )
            for key, similarity, text, metadata, title, document_id, chunk_id in cursor.fetchall()
        )


Filter = Mapping[str, Any] | str | None

#: Default weights of `hybrid`.
WEIGHTS: Mapping[str, float] = {"lexical": 0.4, "vector": 0.6}


class NearestOptions(Options):
    """How many items a search of a store lists."""

    k: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Matches, at most: 100, or 1,000 in mode `vector` with a vector.",
    )


class StoreWeights(Options):
    """Fusion weight of each arm."""

    lexical: float = Field(default=0.0, ge=0)
    vector: float = Field(default=0.0, ge=0)


class StoreQuery(NearestOptions, RetrievalOptions):
    """A query, a vector, or both, with the options of a search."""

    query: str | None = Field(
        default=None,
        max_length=MAX_QUERY_CHARACTERS,
        description="Words or a question, with the operators of a search.",
    )
    text: str | None = Field(
        default=None,
        max_length=MAX_QUERY_CHARACTERS,
        description="Of mode `hybrid`: its meaning is looked for, and the words of `query`.",
    )
    mode: Mode | None = Field(
        default=None, description="Default: `hybrid` with a query, `vector` without."
    )
    snippets: bool = Field(
        default=True, description="Return a snippet of each text, where there is a query."
    )


def open_store(*, user: Any, collection: str, workspace: str = "") -> "Store":
    """The store of a collection that `user` may see, by slugs; raises NotFound."""
    where = current_workspace(user=user, slug=workspace)
    return Store(documents.get_collection(workspace=where, slug=collection), user=user)


@dataclass(frozen=True, slots=True)
class Store:
    """Items by id in `collection`, read and written as `user` may; None is the site itself.

    An item is a document whose key is the id: uploads and items can be searched and removed in
    the same way. Writing raises Forbidden for users who may only read.
    """

    collection: Collection
    user: Any = None

    # --- what is there ---------------------------------------------------------------------------

    def dimension(self) -> int:
        """Number of components of its vectors."""
        return self.space().dimensions

    def space(self) -> EmbeddingSpace:
        """The collection's current embedding space."""
        return self._current().space

    def count(self) -> int:
        """Number of documents that the user may see."""
        return documents.count_items(collection=self.collection, user=self.user)

    def get(self, key: str) -> StoredItem | None:
        """The item; None if there is none."""
        return documents.get_item(collection=self.collection, key=key, user=self.user)

    def get_many(self, keys: Sequence[str]) -> dict[str, StoredItem]:
        """Items by id; missing ones are absent."""
        return documents.get_items(collection=self.collection, keys=keys, user=self.user)

    # --- writing ---------------------------------------------------------------------------------

    def index(
        self,
        key: str,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        title: str = "",
        language: str = "",
        access: Sequence[str] | None = None,
    ) -> None:
        """Stores a text, embedded by the collection's model, replacing an item of this id. `access`
        is who alone may see it."""
        self._put([Item(key, text, None, metadata or {}, title, language, access)])

    def index_many(
        self,
        items: Iterable[Item | Mapping[str, Any] | str | ArrayLike],
        *,
        ids: Sequence[str] | None = None,
        id_prefix: str | None = None,
        concurrency: int = 4,
    ) -> StoreResult:
        """Stores a batch, all or nothing: items, mappings of their fields, or bare texts.

        Bare texts get ids from `ids` or `{id_prefix}:0`, … Of several items with one id the
        last counts. `concurrency` batches are embedded in parallel.
        """
        return self._put(make_items(items, ids=ids, id_prefix=id_prefix), concurrency=concurrency)

    def upsert_vector(
        self,
        key: str,
        vector: ArrayLike,
        metadata: Mapping[str, Any] | None = None,
        text: str = "",
        access: Sequence[str] | None = None,
    ) -> None:
        """Stores a vector, with or without text."""
        self._put([Item(key, text, vector, metadata or {}, access=access)])

    #: Like `index_many`, with bare vectors instead of texts.
    upsert_vectors = index_many

    def remove(self, key: str) -> bool:
        """Removes the item; whether there was one."""
        return self.delete([key]) > 0

    def delete(self, keys: Iterable[str]) -> int:
        """Removes existing items in one transaction; returns how many."""
        self._require_editor()
        return documents.delete_items(collection=self.collection, keys=keys, user=self.user)

    # --- searching -------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int = 10,
        filter: Filter = None,
        *,
        mode: Mode = "hybrid",
        snippets: bool = False,
        **options: Any,
    ) -> Matches:
        """Items that match `query` best, as the site's search ranks them: `rerank`, `fusion` and
        other options of `SearchQuery`.
        """
        asked = SearchQuery(q=query, mode=mode, group=True, **options)
        result = search(asked, scope=self._scope(filter), k=limit, snippets=snippets)
        return Matches.of(result, snippets=snippets)

    def similarity_search(
        self, vector: ArrayLike, k: int = 10, filter: Filter = None, *, metric: str = ""
    ) -> Matches:
        """The `k` items nearest to `vector`, fewer if there are fewer.

        Score: 1 − d for `cosine`, −d for `l2`, inner product for `ip`; default: the space's
        metric. Items not re-embedded yet cannot be compared and are left out.
        """
        self._current().require_vectors()
        space = self.space()
        metric = resolve_metric(metric) if metric else space.metric
        k = NearestOptions(k=k).k
        asked = check_vector(vector, space)
        return Matches(
            nearest_items(asked, space=space, scope=self._scope(filter), k=k, metric=metric)
        )

    def hybrid(
        self,
        query: str,
        *,
        text: str = "",
        vector: ArrayLike | None = None,
        k: int = 10,
        filter: Filter = None,
        weights: Mapping[str, float] | None = None,
        fusion: Method | None = None,
        snippets: bool = False,
        **options: Any,
    ) -> Matches:
        """Lexical search for `query` fused with vector search for `text` or `vector`; `options` are
        others of `SearchQuery`.

        With neither, the query is embedded. Default weights are `WEIGHTS`, unless `options` weigh
        the arms, or a `fusion` is set here or on the collection.
        """
        if text and vector is not None:
            raise InvalidInput(gettext("Give a text or a vector, not both."), field="vector")
        asked = None if vector is None else check_vector(vector, self.space())
        given = weights or RetrievalOptions.pick(options).fusion_options.weights
        if given is None and not fusion and not self._current().fusion:
            weights = WEIGHTS
        return self.search(
            query,
            k,
            filter,
            vector=self.embed(text) if text else asked,
            weights=weights,
            fusion=fusion,
            rerank=False,
            snippets=snippets,
            **options,
        )

    def embed(self, text: str) -> NDArray[np.float32]:
        """The query embedding of a text. Raises SwitchedOff without vectors."""
        self._current().require_vectors()
        try:
            return embed_question(self.space(), text)
        except InferenceError as error:
            raise _embedding_unavailable(error) from error

    # --- within ----------------------------------------------------------------------------------

    def _put(self, items: list[Item], *, concurrency: int = 4) -> StoreResult:
        self._require_editor()
        try:
            return documents.store_items(
                collection=self.collection, items=items, user=self.user, concurrency=concurrency
            )
        except InferenceError as error:
            raise _embedding_unavailable(error) from error

    def _require_editor(self) -> None:
        if self.user is not None:
            require_editor(user=self.user, workspace=self.collection.workspace)

    def _current(self) -> Collection:
        current = (
            Collection.objects.select_related("space", "workspace")
            .filter(pk=self.collection.pk)
            .first()
        )
        if current is None:
            raise NotFound(
                gettext("The collection “{slug}” no longer exists.").format(
                    slug=self.collection.slug
                )
            )
        return current

    def _scope(self, filter: Filter) -> Scope:
        return scope_for(
            user=self.user,
            workspace=self.collection.workspace,
            collections=(self.collection.slug,),
            filter=filter,
        )


def _embedding_unavailable(error: InferenceError) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        gettext(
            "The text cannot be embedded at the moment: {error} Give its vector, or try"
            " again later."
        ).format(error=translated_message(str(error)))
    )

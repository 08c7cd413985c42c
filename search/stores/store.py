"""A store: one collection, and who asks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accounts.services import current_workspace, require_editor
from common.errors import InvalidInput, NotFound, RagsiteError
from common.fusion_options import Method
from documents import services as documents
from documents.embedders import embed_question
from documents.ingestion.items import Item, check_vector
from documents.models import Collection, EmbeddingSpace
from documents.services import Stored, StoredItem
from documents.spaces import metric_named
from inference.base import InferenceError
from search.results import Mode, Scope
from search.services import scope_for, search, site_scope
from search.stores.batches import named_items
from search.stores.matches import Matches
from search.stores.similarity import nearest_items

Filter = Mapping[str, Any] | str | None

#: What `hybrid` gives each arm unless told otherwise.
WEIGHTS: Mapping[str, float] = {"lexical": 0.4, "vector": 0.6}
#: How many matches a similarity search may be asked for.
MAX_NEAREST = 1000


class EmbeddingUnavailable(RagsiteError):
    """A text came without its vector, and the model that would make it does not work."""

    code = "embedder_unavailable"
    status = 503


def open_store(*, user: Any, collection: str, workspace: str = "") -> "Store":
    """The store of a collection that `user` may see, by slugs; raises NotFound."""
    where = current_workspace(user=user, slug=workspace)
    return Store(documents.get_collection(workspace=where, slug=collection), user=user)


@dataclass(frozen=True, slots=True)
class Store:
    """Items by id in `collection`, read and written as `user` may; None is the site itself.

    An item is a document whose key is the id, in the same tables and under the same rules as one
    that was uploaded: either way of bringing it, searching it and removing it works for both.
    Writing raises Forbidden for those who may only read.
    """

    collection: Collection
    user: Any = None

    # --- what is there ---------------------------------------------------------------------------

    def dimension(self) -> int:
        """How long vectors must be."""
        return self.space().dimensions

    def space(self) -> EmbeddingSpace:
        """Whose vectors these are, as of now."""
        return self._current().space

    def count(self) -> int:
        """Documents that the user may see."""
        return documents.count_items(collection=self.collection, user=self.user)

    def get(self, key: str) -> StoredItem | None:
        """The item, or None where there is none."""
        return documents.get_item(collection=self.collection, key=key, user=self.user)

    def get_many(self, keys: Sequence[str]) -> dict[str, StoredItem]:
        """Those of the items that there are."""
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
    ) -> None:
        """Store a text, embedded by the collection's model, in place of what had this id."""
        self._put([Item(key, text, None, metadata or {}, title, language)])

    def index_many(
        self,
        items: Iterable[Item | Mapping[str, Any] | str],
        *,
        ids: Sequence[str] | None = None,
        id_prefix: str | None = None,
        concurrency: int = 4,
    ) -> Stored:
        """Store a batch, all or nothing: items, mappings of their fields, or bare texts.

        Bare texts are named by `ids`, or `{id_prefix}:0`, `{id_prefix}:1`, … Of several items with
        one id the last counts. So many batches of texts are embedded at a time.
        """
        return self._put(named_items(items, ids=ids, id_prefix=id_prefix), concurrency=concurrency)

    def upsert_vector(
        self,
        key: str,
        vector: ArrayLike,
        metadata: Mapping[str, Any] | None = None,
        text: str = "",
    ) -> None:
        """Store a vector, with the text it stands for or without."""
        self._put([Item(key, text, vector, metadata or {})])

    def upsert_vectors(
        self,
        items: Iterable[Item | Mapping[str, Any] | ArrayLike],
        *,
        ids: Sequence[str] | None = None,
        id_prefix: str | None = None,
        concurrency: int = 4,
    ) -> Stored:
        """The same as `index_many`, with bare vectors in place of bare texts."""
        return self._put(named_items(items, ids=ids, id_prefix=id_prefix), concurrency=concurrency)

    def remove(self, key: str) -> bool:
        """Remove the item; whether there was one."""
        return self.delete([key]) > 0

    def delete(self, keys: Iterable[str]) -> int:
        """Remove those of the items that there are, together; how many there were."""
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
        rerank: bool | None = None,
        fusion: Method | None = None,
        rrf_k: int | None = None,
        depth: int | None = None,
        snippets: bool = False,
    ) -> Matches:
        """The items that answer `query` best, as the site's own search has them; with `snippets`,
        the telling part of each."""
        scope = self._scope(filter)
        result = search(
            query,
            scope=scope,
            mode=mode,
            k=limit,
            rerank=rerank,
            fusion=fusion,
            rrf_k=rrf_k,
            depth=depth,
            group=True,
            snippets=snippets,
        )
        return Matches.of(result, snippets=snippets)

    def similarity_search(
        self, vector: ArrayLike, k: int = 10, filter: Filter = None, *, metric: str = ""
    ) -> Matches:
        """The `k` items nearest to `vector`, or all where there are fewer.

        The score is 1 − d for `cosine`, −d for `l2` and the inner product for `ip`. Without
        `metric` it is the space's. Items of a former model, which a re-embedding has not reached,
        cannot be compared and are left out.
        """
        space = self.space()
        metric = metric_named(metric) if metric else space.metric
        if not 1 <= k <= MAX_NEAREST:
            raise InvalidInput(f"k may be 1 to {MAX_NEAREST:,}.", field="k")
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
        rrf_k: int | None = None,
        depth: int | None = None,
        snippets: bool = False,
    ) -> Matches:
        """Words of `query` together with the meaning of `text`, or with `vector`.

        With neither, the query is embedded. `weights` are those of `lexical` and `vector`; with
        neither these nor a `fusion`, here or of the collection, they are `WEIGHTS`.
        """
        if text and vector is not None:
            raise InvalidInput("Give text or a vector, not both.", field="vector")
        asked = None if vector is None else check_vector(vector, self.space())
        result = search(
            query,
            scope=self._scope(filter),
            mode="hybrid",
            k=k,
            vector=self.embed(text) if text else asked,
            weights=self._weights(fusion) if weights is None else weights,
            fusion=fusion,
            rrf_k=rrf_k,
            depth=depth,
            rerank=False,
            group=True,
            snippets=snippets,
        )
        return Matches.of(result, snippets=snippets)

    def embed(self, text: str) -> NDArray[np.float32]:
        """The vector of a question, as a search would ask it."""
        try:
            return embed_question(self.space(), text)
        except InferenceError as error:
            raise _unavailable(error) from error

    # --- within ----------------------------------------------------------------------------------

    def _put(self, items: list[Item], *, concurrency: int = 4) -> Stored:
        self._require_editor()
        try:
            return documents.store_items(
                collection=self.collection, items=items, user=self.user, concurrency=concurrency
            )
        except InferenceError as error:
            raise _unavailable(error) from error

    def _weights(self, fusion: Method | None) -> Mapping[str, float] | None:
        return None if fusion or self._current().fusion else WEIGHTS

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
            raise NotFound(f"The collection “{self.collection.slug}” is gone.")
        return current

    def _scope(self, filter: Filter) -> Scope:
        where: dict[str, Any] = {
            "workspace": self.collection.workspace,
            "collections": (self.collection.slug,),
            "filter": filter,
        }
        return site_scope(**where) if self.user is None else scope_for(user=self.user, **where)


def _unavailable(error: InferenceError) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(
        f"The text cannot be embedded just now: {error} Give its vector, or try again later."
    )

"""Stores: each request is handed to a `Store` of its user."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView, once
from common.api import ErrorSerializer
from common.errors import NotFound
from documents.models import Document
from documents.services import get_collection
from search.api.stores import examples, inputs, serializers
from search.api.stores.parsers import VectorsJSONParser
from search.stores import InvalidItems, Item, Matches, Store, Stored


class StoreView(WorkspaceView):
    """A view of one collection's store."""

    parser_classes = [VectorsJSONParser]

    def store(self, slug: str) -> Store:
        """Raises NotFound that names the collections there are."""
        collection = get_collection(workspace=self.workspace, slug=slug)
        return Store(collection, user=self.request.user)

    def body(self, input_class: type[Any]) -> dict[str, Any]:
        """The request's body, checked."""
        body = input_class(data=self.request.data)
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values

    def put_items(self, store: Store, items: Sequence[Item], *, at: str = "") -> Stored:
        """Store them. Faults are told by their place in the body."""
        try:
            return store.index_many(items)
        except InvalidItems as error:
            raise _as_validation_error(error, at=at) from error

    def shown(self, items: Any, **kwargs: Any) -> Any:
        """Items as JSON, with vectors where the request asks for them."""
        context = {"vectors": self.parameters.get("vectors", False)}
        return serializers.StoreItemSerializer(items, context=context, **kwargs).data


def _as_validation_error(error: InvalidItems, *, at: str) -> exceptions.ValidationError:
    if not at:
        return exceptions.ValidationError(
            {problem.field: [str(problem)] for problem in error.problems}, code="invalid"
        )
    places: Any = {problem.index: {problem.field: [str(problem)]} for problem in error.problems}
    return exceptions.ValidationError({at: places}, code="invalid")


@extend_schema(tags=["store"], responses=serializers.StoreSerializer)
class StoreDetailView(StoreView):
    """A collection as a store of items with ids of your own."""

    is_thing = True

    @extend_schema(operation_id="store", summary="Read what a store expects and holds")
    def get(self, request: Request, slug: str) -> Response:
        store = self.store(slug)
        space = store.space()
        answer = {
            "collection": slug,
            "count": store.count(),
            "dimension": space.dimensions,
            "metric": space.metric,
            "model": space.model_name,
        }
        return Response(serializers.StoreSerializer(answer).data)


@extend_schema(tags=["store"])
class StoreItemsView(StoreView):
    """Many items at a time."""

    action_parameters = {"get": inputs.ItemsReading}

    @property
    def asks_model(self) -> bool:  # type: ignore[override]  # known with the request
        """Texts that come without a vector are embedded."""
        return self.request.method == "POST"

    @extend_schema(
        operation_id="store_items",
        summary="Read items by id",
        description="For ids that cannot stand in an address, such as `..`, and for several.",
        responses=serializers.StoreItemsSerializer,
    )
    def get(self, request: Request, slug: str) -> Response:
        asked = list(dict.fromkeys(self.parameters["id"]))
        found = self.store(slug).get_many(asked)
        answer = {
            "items": self.shown([found[key] for key in asked if key in found], many=True),
            "missing": [key for key in asked if key not in found],
        }
        return Response(answer)

    @extend_schema(
        operation_id="store_items_upsert",
        summary="Store items",
        description=(
            "At most 1,000 and 64 MB at a time, all of them or none: they are found when this"
            " answers. A fault is told by its place, `items.3.vector`, and the item's id."
        ),
        request=inputs.BatchInput,
        responses={
            200: serializers.StoredSerializer,
            409: ErrorSerializer,
            503: ErrorSerializer,
        },
        examples=[examples.BATCH],
    )
    @once
    def post(self, request: Request, slug: str) -> Response:
        store = self.store(slug)
        self.require_editor(self.workspace)
        items = inputs.batch_of(self.body(inputs.BatchInput))
        done = self.put_items(store, items, at="items")
        answer = {
            "ids": list(dict.fromkeys(item.id for item in items)),
            "stored": len(done.ids),
            "unchanged": done.unchanged,
        }
        return Response(serializers.StoredSerializer(answer).data)


@extend_schema(tags=["store"])
class StoreItemView(StoreView):
    """One item."""

    action_parameters = {"get": inputs.ItemReading}
    is_thing = True
    # Read or not, it changes with `updated_at`.
    unguarded_fields = frozenset({"vector"})

    def locked_rows(self) -> QuerySet[Document]:
        collection = self.store(self.kwargs["slug"]).collection
        return Document.objects.filter(collection=collection, key=self.kwargs["item_id"])

    @extend_schema(
        operation_id="store_item", summary="Read an item", responses=serializers.StoreItemSerializer
    )
    def get(self, request: Request, slug: str, item_id: str) -> Response:
        item = self.store(slug).get(item_id)
        if item is None:
            raise _no_item()
        return Response(self.shown(item))

    @extend_schema(
        operation_id="store_item_upsert",
        summary="Store an item, in place of what had this id",
        request=inputs.ItemBody,
        responses={
            200: serializers.StoreItemSerializer,
            409: ErrorSerializer,
            503: ErrorSerializer,
        },
        examples=[examples.ITEM],
    )
    def put(self, request: Request, slug: str, item_id: str) -> Response:
        store = self.store(slug)
        self.require_editor(self.workspace)
        self.put_items(store, [Item(id=item_id, **self.body(inputs.ItemBody))])
        return Response(self.shown(store.get(item_id)))

    @extend_schema(
        operation_id="store_item_delete", summary="Delete an item", responses={204: None}
    )
    def delete(self, request: Request, slug: str, item_id: str) -> Response:
        if not self.store(slug).remove(item_id):
            raise _no_item()
        return Response(status=204)


def _no_item() -> NotFound:
    return NotFound("There is no item with this id, or you may not see it.")


@extend_schema(tags=["store"])
class StoreDeleteView(StoreView):
    """Removal of many."""

    @extend_schema(
        operation_id="store_delete",
        summary="Delete items by id",
        request=inputs.IdsInput,
        responses=serializers.DeletedSerializer,
        examples=[examples.IDS],
    )
    def post(self, request: Request, slug: str) -> Response:
        store = self.store(slug)
        self.require_editor(self.workspace)
        return Response({"deleted": store.delete(self.body(inputs.IdsInput)["ids"])})


@extend_schema(tags=["store"])
class StoreSearchView(StoreView):
    """Items that answer a question, best first."""

    required_scope = "read"

    @extend_schema(
        operation_id="store_search",
        summary="Search a store",
        description=(
            "By a query, a vector, or both. Mode `vector` always brings `k` items, or all that fit"
            " the filter."
        ),
        request=inputs.StoreSearchInput,
        responses={200: serializers.MatchesSerializer, 503: ErrorSerializer},
        examples=[examples.HYBRID, examples.NEAREST],
    )
    def post(self, request: Request, slug: str) -> Response:
        store = self.store(slug)
        asked = self.body(inputs.StoreSearchInput)
        metric = None
        if asked["mode"] == "vector" and asked.get("vector") is not None:
            metric = asked.get("metric") or store.space().metric
        answer = {"mode": asked["mode"], "metric": metric, **_shown(_found(store, asked))}
        return Response(serializers.MatchesSerializer(answer).data)


def _shown(matches: Matches) -> dict[str, Any]:
    return {"matches": matches.found, "degraded": matches.degraded}


def _found(store: Store, asked: dict[str, Any]) -> Matches:
    query, vector = asked.get("query", ""), asked.get("vector")
    k, filter = asked["k"], asked.get("filter")
    if asked["mode"] == "vector" and vector is not None:
        return store.similarity_search(vector, k, filter, metric=asked.get("metric", ""))
    options: dict[str, Any] = {
        name: asked.get(name) for name in ("fusion", "rrf_k", "depth", "snippets")
    }
    own = {name: asked[name] for name in ("text", "vector", "weights") if asked.get(name)}
    if asked["mode"] == "hybrid" and own:
        return store.hybrid(query, k=k, filter=filter, **own, **options)
    return store.search(query, k, filter, mode=asked["mode"], **options)

"""API of stores, below `collections/<slug>/store/`: inputs, serializers, views,
addresses. Begin with `StoreView`.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django.db.models import QuerySet
from django.urls import path
from django.utils.translation import gettext
from rest_framework import exceptions, serializers

from accounts.api import WorkspaceParameters, WorkspaceView, operation
from common.errors import InvalidInput, NotFound
from common.options import nested_options
from common.options.drf import OptionsSerializer
from common.serializers import MetadataField, ResultSerializer, StrictSerializer, TextField
from documents.api.serializers import AccessField
from documents.ingestion.items import InvalidItems, Item
from documents.models import Document, EmbeddingSpace
from documents.services import MAX_BATCH, StoredItem, StoreResult, get_collection
from documents.spaces import resolve_metric
from search.api.inputs import FilterField, VectorField, VectorsJSONParser
from search.query import QueryError, parse_query
from search.query_options import RetrievalOptions
from search.results import MODES
from search.stores import Match, Store, StoreQuery, StoreWeights

#: Options of a hybrid search.
FUSION_OPTIONS = nested_options(RetrievalOptions, skip={"rerank"})


class ItemParameters(WorkspaceParameters):
    """Query string of one item."""

    vectors = serializers.BooleanField(default=False, help_text="Show the items' vectors too.")


class ItemsParameters(ItemParameters):
    """Query string of several items."""

    id = serializers.ListField(
        child=TextField(max_length=1024),
        min_length=1,
        max_length=100,
        help_text="Id of an item; may be repeated.",
    )


class StoreItemBodySerializer(StrictSerializer):
    """A text, a vector, or a text with its vector."""

    text = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Embedded by the collection's model unless it comes with a vector.",
    )
    vector = VectorField(
        required=False,
        allow_null=True,
        help_text="As long as the store's `dimension`. Its text then stays one passage.",
    )
    metadata = MetadataField(
        required=False, help_text="JSON object of your own, found again with every match."
    )
    title = serializers.CharField(required=False, allow_blank=True, max_length=500)
    language = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=20,
        help_text="ISO code, such as `de`. Empty: the text's is detected.",
    )
    access = AccessField(
        help_text="Who alone may see it, you among them: members of the workspace by `user:7`, user"
        " name or email address, groups by `group:3` or name. Left out: everybody, or as it was.",
    )


class StoreItemInputSerializer(StoreItemBodySerializer):
    """An item with its id."""

    id = serializers.CharField(
        required=False,
        max_length=1024,
        trim_whitespace=False,
        help_text="Your own id: the same again replaces the item. Default: a new one.",
    )


class StoreBatchSerializer(StrictSerializer):
    """Items that are stored together or not at all."""

    items = serializers.ListField(
        child=StoreItemInputSerializer(),
        min_length=1,
        max_length=MAX_BATCH,
        help_text="Of two with one id the last counts.",
    )


class StoreIdsSerializer(StrictSerializer):
    """Ids of the items to delete."""

    ids = serializers.ListField(
        child=TextField(max_length=1024),
        min_length=1,
        max_length=MAX_BATCH,
        help_text="Ids that are not there are passed over.",
    )


class StoreWeightsSerializer(OptionsSerializer):
    """Fusion weight of each arm."""

    options = StoreWeights


class MetricField(serializers.ChoiceField):
    """A distance metric, also by the names that other systems use."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return resolve_metric(str(data))
        except InvalidInput as error:
            raise serializers.ValidationError(str(error)) from error


class StoreSearchSerializer(OptionsSerializer):
    """A query, a vector, or both, with the search options."""

    options = StoreQuery
    skip = frozenset({"rerank"})

    vector = VectorField(
        required=False, allow_null=True, help_text="Asked instead of an embedding of the query."
    )
    filter = FilterField(
        required=False, help_text="What matches must be like, as JSON or as text: `year>=2020`."
    )
    metric = MetricField(
        choices=EmbeddingSpace.Metric.choices,
        required=False,
        help_text="Of mode `vector` with a vector: `score` is 1 − d, −d or the inner product."
        " Default: the store's own. Other systems' names will do, such as `euclidean`, `DOT`.",
    )
    weights = StoreWeightsSerializer(
        required=False, help_text="Of mode `hybrid`. Default with a vector: 0.4 and 0.6."
    )

    def validate_query(self, value: str) -> str:
        """Words or a question that can be looked for, if any."""
        if value.strip():
            try:
                parse_query(value)
            except QueryError as error:
                raise serializers.ValidationError(str(error)) from error
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        has_query, has_vector = (
            bool(attrs.get("query", "").strip()),
            attrs.get("vector") is not None,
        )
        mode = attrs.setdefault("mode", "hybrid" if has_query else "vector")
        problems = [
            (not (has_query or has_vector), "query", "Give a query, a vector, or both."),
            (mode != "vector" and not has_query, "query", f"Mode {mode} needs a query."),
            (mode == "lexical" and has_vector, "vector", "Mode lexical compares no vectors."),
            (
                mode == "vector" and has_query and has_vector,
                "vector",
                "Mode vector asks one question. Give the query or the vector.",
            ),
            (
                mode == "graph" and has_vector,
                "vector",
                "Mode graph embeds the query itself. Give no vector, or use mode hybrid.",
            ),
            (
                "metric" in attrs and (mode != "vector" or not has_vector),
                "metric",
                "A metric belongs to mode vector with a vector of your own.",
            ),
            *(
                (
                    mode != "hybrid" and bool(attrs.get(name)),
                    name,
                    f"{name.capitalize()} belongs to mode hybrid.",
                )
                for name in ("text", *FUSION_OPTIONS)
            ),
            (bool(attrs.get("text")) and has_vector, "text", "Give text or a vector, not both."),
        ]
        for applies, field, problem in problems:
            if applies:
                raise serializers.ValidationError({field: problem})
        return attrs


class StoreSerializer(serializers.Serializer[Any]):
    """What a store accepts and contains."""

    collection = serializers.CharField()
    count = serializers.IntegerField(help_text="Items that you may see.")
    dimension = serializers.IntegerField(help_text="How many numbers a vector has.")
    metric = serializers.ChoiceField(
        choices=EmbeddingSpace.Metric.choices,
        help_text="By which vectors are compared unless a search names another.",
    )
    model = serializers.CharField(help_text="The model that embeds texts without vector.")


class StoreItemSerializer(ResultSerializer):
    """A stored item: a document whose key is the id."""

    result = StoredItem

    vector = serializers.ListField(
        child=serializers.FloatField(),
        allow_null=True,
        required=False,
        help_text="Only with `vectors=true`; null where the text takes several passages.",
    )
    document = serializers.IntegerField(source="document_id", help_text="Its id as a document.")

    def to_representation(self, instance: StoredItem) -> Any:
        shown = super().to_representation(instance)
        if not self.context["vectors"]:
            del shown["vector"]
        return shown


class StoreItemsSerializer(serializers.Serializer[Any]):
    """The items found, and the ids that were not."""

    items = StoreItemSerializer(many=True)
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Ids under which there is nothing."
    )


class StoredSerializer(serializers.Serializer[Any]):
    """How many items of a batch were written."""

    ids = serializers.ListField(
        child=serializers.CharField(), help_text="Of all items, in the order given, each once."
    )
    stored = serializers.IntegerField(help_text="Items that were written.")
    unchanged = serializers.IntegerField(help_text="Items that were unchanged.")


class DeletedSerializer(serializers.Serializer[Any]):
    """How many items were deleted."""

    deleted = serializers.IntegerField(help_text="Items that there were.")


class MatchSerializer(ResultSerializer):
    """An item, represented by its best passage."""

    result = Match

    document = serializers.IntegerField(source="document_id")
    chunk = serializers.IntegerField(source="chunk_id")


class MatchesSerializer(serializers.Serializer[Any]):
    """Matching items, best first, and what did not work."""

    mode = serializers.ChoiceField(choices=MODES)
    metric = serializers.ChoiceField(
        choices=EmbeddingSpace.Metric.choices,
        allow_null=True,
        help_text="Of mode `vector` with a vector; else null.",
    )
    matches = MatchSerializer(many=True)
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="What should have worked and did not: `vector` when the embedder is down.",
    )


class StoreView(WorkspaceView):
    """Base of the views of one collection's store, which handlers get first."""

    tag = "store"
    for_limited_keys = True
    parser_classes = [VectorsJSONParser]
    editors_only = True

    def operation_arguments(self, kwargs: dict[str, Any]) -> list[Any]:
        store = self.store(kwargs.pop("slug"))
        return [store, *super().operation_arguments(kwargs)]

    def store(self, slug: str) -> Store:
        """Raises NotFound that names the collections there are."""
        collection = get_collection(workspace=self.workspace, slug=slug)
        return Store(collection, user=self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        # Whether items are shown with their vectors.
        return {**super().get_serializer_context(), "vectors": self.parameters.get("vectors")}

    def put_items(self, store: Store, items: Sequence[Item], *, at: str = "") -> StoreResult:
        """Stores items. Errors name the item's place in the body."""
        try:
            return store.index_many(items)
        except InvalidItems as error:
            problems: Any = {item.field: [str(item)] for item in error.problems}
            if at:
                named = {item.index: {item.field: [str(item)]} for item in error.problems}
                problems = {at: named}
            raise exceptions.ValidationError(problems, code="invalid") from error


class StoreDetailView(StoreView):
    """A collection as a store of items with caller-defined ids."""

    is_detail = True

    @operation(gives=StoreSerializer, operation_id="store")
    def get(self, store: Store) -> Any:
        """Read what a store expects and holds."""
        space = store.space()
        return {
            "collection": store.collection.slug,
            "count": store.count(),
            "dimension": space.dimensions,
            "metric": space.metric,
            "model": space.model_name,
        }


class StoreItemsView(StoreView):
    """Read or write several items."""

    action_parameters = {"get": ItemsParameters}

    @property
    def asks_model(self) -> bool:  # type: ignore[override]  # known with the request
        """Texts that come without a vector are embedded."""
        return self.request.method == "POST"

    @operation(gives=StoreItemsSerializer, operation_id="store_items")
    def get(self, store: Store) -> Any:
        """Read items by id.

        For ids that cannot stand in an address, such as `..`, and for several.
        """
        asked = list(dict.fromkeys(self.parameters["id"]))
        found = store.get_many(asked)
        return {
            "items": [found[key] for key in asked if key in found],
            "missing": [key for key in asked if key not in found],
        }

    @operation(
        takes=StoreBatchSerializer,
        gives=StoredSerializer,
        errors=(409,),
        once=True,
        operation_id="store_items_upsert",
    )
    def post(self, store: Store, *, items: list[dict[str, Any]]) -> Any:
        """Store items.

        At most 1,000 and 64 MB at a time, all of them or none: they are found when this answers. A
        fault is told by its place, `items.3.vector`, and the item's id.
        """
        given = [Item(**{"id": str(uuid4()), **item}) for item in items]
        done = self.put_items(store, given, at="items")
        return {
            "ids": list(dict.fromkeys(item.id for item in given)),
            "stored": len(done.ids),
            "unchanged": done.unchanged,
        }


class StoreItemView(StoreView):
    """One item of a store, by its id."""

    action_parameters = {"get": ItemParameters}
    is_detail = True
    # Read or not, it changes with `updated_at`.
    etag_excluded_fields = frozenset({"vector"})
    serializer_class = StoreItemSerializer

    def locked_rows(self) -> QuerySet[Document]:
        collection = self.store(self.kwargs["slug"]).collection
        return Document.objects.filter(collection=collection, key=self.kwargs["item_id"])

    @operation(operation_id="store_item")
    def get(self, store: Store, *, item_id: str) -> StoredItem:
        """Read an item."""
        item = store.get(item_id)
        if item is None:
            raise _no_item()
        return item

    @operation(takes=StoreItemBodySerializer, errors=(409,), operation_id="store_item_upsert")
    def put(self, store: Store, *, item_id: str, **values: Any) -> StoredItem | None:
        """Store an item, in place of what had this id."""
        self.put_items(store, [Item(id=item_id, **values)])
        return store.get(item_id)

    @operation(operation_id="store_item_delete")
    def delete(self, store: Store, *, item_id: str) -> None:
        """Delete an item."""
        if not store.remove(item_id):
            raise _no_item()


def _no_item() -> NotFound:
    return NotFound(gettext("There is no item with this id, or you may not see it."))


class StoreDeleteView(StoreView):
    """Deletion of several items by id."""

    @operation(takes=StoreIdsSerializer, gives=DeletedSerializer, operation_id="store_delete")
    def post(self, store: Store, *, ids: list[str]) -> Any:
        """Delete items by id."""
        return {"deleted": store.delete(ids)}


class StoreSearchView(StoreView):
    """Items that match a query or vector, best first."""

    required_scope = "read"
    editors_only = False

    @operation(takes=StoreSearchSerializer, gives=MatchesSerializer, operation_id="store_search")
    def post(self, store: Store, **asked: Any) -> Any:
        """Search a store.

        By a query, a vector, or both. Mode `vector` always brings `k` items, or all that fit the
        filter.
        """
        metric = None
        if asked["mode"] == "vector" and asked.get("vector") is not None:
            metric = asked.get("metric") or store.space().metric
        query, vector = asked.get("query", ""), asked.get("vector")
        k, filter = asked["k"], asked.get("filter")
        own = {name: asked[name] for name in ("text", "vector", "weights") if asked.get(name)}
        options: dict[str, Any] = {
            name: asked[name] for name in FUSION_OPTIONS if name in asked and name not in own
        }
        options["snippets"] = asked["snippets"]
        if vector is not None and metric:
            matches = store.similarity_search(vector, k, filter, metric=metric)
        elif asked["mode"] == "hybrid" and own:
            matches = store.hybrid(query, k=k, filter=filter, **own, **options)
        else:
            matches = store.search(query, k, filter, mode=asked["mode"], **options)
        return {
            "mode": asked["mode"],
            "metric": metric,
            "matches": matches,
            "degraded": matches.degraded,
        }


STORE_PATH = "collections/<slug:slug>/store"

urlpatterns = [
    path(f"{STORE_PATH}/", StoreDetailView.as_view(), name="store"),
    path(f"{STORE_PATH}/items/", StoreItemsView.as_view(), name="store-items"),
    # A path, because an id may hold slashes.
    path(f"{STORE_PATH}/items/<path:item_id>/", StoreItemView.as_view(), name="store-item"),
    path(f"{STORE_PATH}/delete/", StoreDeleteView.as_view(), name="store-delete"),
    path(f"{STORE_PATH}/search/", StoreSearchView.as_view(), name="store-search"),
]

"""What requests to a store may say."""

from typing import Any
from uuid import uuid4

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.errors import InvalidInput
from common.serializers import MetadataField, StrictSerializer, TextField
from documents.models import EmbeddingSpace
from documents.services import MAX_BATCH
from documents.spaces import metric_named
from search.api.inputs import FilterField, FusionInput
from search.query import MAX_QUERY_CHARACTERS
from search.results import MODES
from search.stores import Item
from search.stores.store import MAX_NEAREST

MAX_DIMENSIONS = 16_000  # pgvector's own limit


@extend_schema_field(
    {
        "type": "array",
        "items": {"type": "number", "format": "double"},
        "maxItems": MAX_DIMENSIONS,
        "example": [0.12, -0.07, 0.33],
    }
)
class VectorField(serializers.Field[Any, Any, Any, Any]):
    """A list of numbers. Whether it fits the space is told with the item's id."""

    def to_internal_value(self, data: Any) -> list[float]:
        if not isinstance(data, list) or not set(map(type, data)) <= {int, float}:
            raise serializers.ValidationError("A vector is a list of numbers.")
        if len(data) > MAX_DIMENSIONS:
            raise serializers.ValidationError(f"A vector may have {MAX_DIMENSIONS:,} numbers.")
        return data


class ItemReading(WorkspaceParameters):
    """How an item is shown."""

    vectors = serializers.BooleanField(default=False, help_text="Show the items' vectors too.")


class ItemsReading(ItemReading):
    """Which items."""

    id = serializers.ListField(
        child=TextField(max_length=1024),
        min_length=1,
        max_length=100,
        help_text="Id of an item; may be repeated.",
    )


@extend_schema_serializer(component_name="StoreItemBody")
class ItemBody(StrictSerializer):
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


@extend_schema_serializer(component_name="StoreItemInput")
class ItemInput(ItemBody):
    """The same with its id."""

    id = serializers.CharField(
        required=False,
        max_length=1024,
        trim_whitespace=False,
        help_text="Your own id: the same again replaces the item. Default: a new one.",
    )


@extend_schema_serializer(component_name="StoreBatch")
class BatchInput(StrictSerializer):
    """Items that are stored together or not at all."""

    items = serializers.ListField(
        child=ItemInput(),
        min_length=1,
        max_length=MAX_BATCH,
        help_text="Of two with one id the last counts.",
    )


def batch_of(values: dict[str, Any]) -> list[Item]:
    """The items of a checked batch, each with an id."""
    return [Item(**{"id": str(uuid4()), **item}) for item in values["items"]]


@extend_schema_serializer(component_name="StoreIds")
class IdsInput(StrictSerializer):
    """Items by id."""

    ids = serializers.ListField(
        child=TextField(max_length=1024),
        min_length=1,
        max_length=MAX_BATCH,
        help_text="Ids that are not there are passed over.",
    )


@extend_schema_serializer(component_name="StoreWeights")
class WeightsInput(StrictSerializer):
    """How much each arm counts."""

    lexical = serializers.FloatField(min_value=0, default=0.0)
    vector = serializers.FloatField(min_value=0, default=0.0)


class MetricField(serializers.ChoiceField):
    """A metric, by whatever it is called elsewhere."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return metric_named(str(data))
        except InvalidInput as error:
            raise serializers.ValidationError(str(error)) from error


@extend_schema_serializer(component_name="StoreSearch")
class StoreSearchInput(FusionInput):
    """A question in words, as a vector, or both."""

    query = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="Words or a question, with the operators of a search.",
    )
    text = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="Of mode `hybrid`: its meaning is looked for, and the words of `query`.",
    )
    vector = VectorField(
        required=False, allow_null=True, help_text="Asked instead of an embedding of the query."
    )
    mode = serializers.ChoiceField(
        choices=MODES,
        required=False,
        help_text="Default: `hybrid` with a query, `vector` without.",
    )
    k = serializers.IntegerField(
        min_value=1,
        max_value=MAX_NEAREST,
        default=10,
        help_text="Matches, at most: 100, or 1,000 in mode `vector` with a vector.",
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
    weights = WeightsInput(
        required=False, help_text="Of mode `hybrid`. Default with a vector: 0.4 and 0.6."
    )
    snippets = serializers.BooleanField(
        default=True, help_text="Show the telling part of each text, where there is a query."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        query, vector = attrs.get("query", ""), attrs.get("vector")
        if not query.strip() and vector is None:
            raise serializers.ValidationError({"query": "Give a query, a vector, or both."})
        attrs.setdefault("mode", "hybrid" if query.strip() else "vector")
        mode = attrs["mode"]
        if mode != "vector" and not query.strip():
            raise serializers.ValidationError({"query": f"Mode {mode} needs a query."})
        if mode == "lexical" and vector is not None:
            raise serializers.ValidationError({"vector": "Mode lexical compares no vectors."})
        if mode == "vector" and query.strip() and vector is not None:
            problem = "Mode vector asks one question. Give the query or the vector."
            raise serializers.ValidationError({"vector": problem})
        if mode == "graph" and vector is not None:
            problem = "Mode graph embeds the query itself. Give no vector, or use mode hybrid."
            raise serializers.ValidationError({"vector": problem})
        if "metric" in attrs and (mode != "vector" or vector is None):
            problem = "A metric belongs to mode vector with a vector of your own."
            raise serializers.ValidationError({"metric": problem})
        for name in ("text", "weights", "fusion", "rrf_k", "depth"):
            if mode != "hybrid" and attrs.get(name):
                problem = f"{name.capitalize()} belongs to mode hybrid."
                raise serializers.ValidationError({name: problem})
        if attrs.get("text") and vector is not None:
            raise serializers.ValidationError({"text": "Give text or a vector, not both."})
        return attrs

"""What the API says of a store, its items and their matches."""

from typing import Any

from rest_framework import serializers

from documents.models import EmbeddingSpace
from search.results import MODES
from search.stores import StoredItem


class StoreSerializer(serializers.Serializer[Any]):
    """What a store expects and holds."""

    collection = serializers.CharField()
    count = serializers.IntegerField(help_text="Items that you may see.")
    dimension = serializers.IntegerField(help_text="How many numbers a vector has.")
    metric = serializers.ChoiceField(
        choices=EmbeddingSpace.Metric.choices,
        help_text="By which vectors are compared unless a search names another.",
    )
    model = serializers.CharField(help_text="The model that embeds texts without vector.")


class StoreItemSerializer(serializers.Serializer[StoredItem]):
    """An item as it is stored: a document whose key is the id."""

    id = serializers.CharField()
    text = serializers.CharField(help_text="Empty for a vector without text.")
    vector = serializers.ListField(
        child=serializers.FloatField(),
        allow_null=True,
        required=False,
        help_text="Only with `vectors=true`; null where the text takes several passages.",
    )
    metadata = serializers.DictField()
    title = serializers.CharField()
    language = serializers.CharField(help_text="ISO code, or empty.")
    chunks = serializers.IntegerField(help_text="How many passages it has.")
    document = serializers.IntegerField(source="document_id", help_text="Its id as a document.")
    updated_at = serializers.DateTimeField()

    def to_representation(self, instance: StoredItem) -> Any:
        shown = super().to_representation(instance)
        if self.context["vectors"]:
            vector = instance.vector
            shown["vector"] = None if vector is None else vector.tolist()
        else:
            del shown["vector"]
        return shown


class StoreItemsSerializer(serializers.Serializer[Any]):
    """Those of the items that there are."""

    items = StoreItemSerializer(many=True)
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Ids under which there is nothing."
    )


class StoredSerializer(serializers.Serializer[Any]):
    """What became of a batch."""

    ids = serializers.ListField(
        child=serializers.CharField(), help_text="Of all items, in the order given, each once."
    )
    stored = serializers.IntegerField(help_text="Items that were written.")
    unchanged = serializers.IntegerField(help_text="Items that were there just so.")


class DeletedSerializer(serializers.Serializer[Any]):
    """What was removed."""

    deleted = serializers.IntegerField(help_text="Items that there were.")


class MatchSerializer(serializers.Serializer[Any]):
    """An item, by its best passage."""

    id = serializers.CharField()
    score = serializers.FloatField(
        help_text="Higher is better. In mode `vector` the similarity in the metric, else of the"
        " arms together."
    )
    similarity = serializers.FloatField(allow_null=True)
    lexical = serializers.FloatField(allow_null=True, help_text="BM25, 0 or more.")
    text = serializers.CharField(help_text="The passage.")
    snippet = serializers.CharField(
        allow_null=True, help_text="Its telling part. Null without a query, or where not wanted."
    )
    title = serializers.CharField()
    metadata = serializers.DictField()
    document = serializers.IntegerField(source="document_id")
    chunk = serializers.IntegerField(source="chunk_id")


class MatchesSerializer(serializers.Serializer[Any]):
    """Matches, best first."""

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

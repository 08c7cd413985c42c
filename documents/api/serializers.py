"""What the API says of collections, documents, chunks and runs."""

from typing import Any

from rest_framework import serializers

from common.fusion_options import DEPTHS, METHODS, RRF_KS
from common.serializers import StrictSerializer
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
)
from documents.watching import COUNTERS


class SpaceSerializer(serializers.ModelSerializer[EmbeddingSpace]):
    """Which model's vectors a collection has."""

    model = serializers.CharField(source="model_name")

    class Meta:
        model = EmbeddingSpace
        fields = ["name", "model", "dimensions", "metric"]
        read_only_fields = fields


class FusionSerializer(StrictSerializer):
    """How searches join words and meaning; what is left out is as the site has it."""

    method = serializers.ChoiceField(
        choices=METHODS,
        required=False,
        help_text="`score` adds scaled scores by weights that follow the question; `weighted` by"
        " fixed weights; `rrf` adds reciprocal ranks.",
    )
    rrf_k = serializers.IntegerField(
        required=False,
        min_value=RRF_KS[0],
        max_value=RRF_KS[-1],
        help_text="The constant of `rrf`.",
    )
    weights = serializers.DictField(
        child=serializers.FloatField(min_value=0),
        required=False,
        help_text="What `vector` (α) and `lexical` (β) count for.",
    )
    depth = serializers.IntegerField(
        required=False,
        min_value=DEPTHS[0],
        max_value=DEPTHS[-1],
        help_text="How many candidates words and meaning list each.",
    )


class CollectionSerializer(serializers.ModelSerializer[Collection]):
    """Documents that are cut, embedded and searched alike."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:collection-detail", lookup_field="slug", help_text="Its address in the API."
    )
    language = serializers.CharField(
        source="default_language",
        help_text="ISO code given to its documents; empty: each one's is detected.",
    )
    chunker_options = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="The options that were given; the others have the chunker's defaults.",
    )
    space = SpaceSerializer()
    fusion = FusionSerializer()
    document_count = serializers.IntegerField(help_text="Current documents that you may see.")

    class Meta:
        model = Collection
        fields = [
            "slug",
            "url",
            "name",
            "description",
            "language",
            "chunker",
            "chunker_options",
            "graph",
            "space",
            "reranker",
            "rerank_instruction",
            "fusion",
            "facets",
            "document_count",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class FailureSerializer(serializers.Serializer[Any]):
    """Why a document or item could not be ingested; null where nothing went wrong."""

    code = serializers.CharField(source="error_code", help_text="Stable and machine-readable.")
    message = serializers.CharField(source="error", help_text="What is wrong and the cure.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, source="*", allow_null=True, read_only=True, **kwargs)

    def to_representation(self, instance: Any) -> Any:
        return super().to_representation(instance) if instance.error_code else None


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """One thing a person brought. Its text is in its chunks."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:document-detail", help_text="Its address in the API."
    )
    collection = serializers.SlugRelatedField[Collection](slug_field="slug", read_only=True)
    source_url = serializers.CharField(source="url", help_text="Where it came from on the web.")
    metadata = serializers.DictField()
    duplicate_of = serializers.PrimaryKeyRelatedField[Document](
        read_only=True,
        allow_null=True,
        help_text="The first document of the collection with the same bytes. Without chunks of its"
        " own, it is stored there only.",
    )
    error = FailureSerializer(
        help_text="Why its newest ingestion failed. Text of an earlier one stays searchable."
    )

    class Meta:
        model = Document
        fields = [
            "id",
            "url",
            "collection",
            "key",
            "title",
            "source",
            "source_url",
            "media_type",
            "language",
            "metadata",
            "size",
            "source_sha256",
            "version",
            "is_current",
            "duplicate_of",
            "status",
            "error",
            "is_searchable",
            "chunk_count",
            "token_count",
            "created_at",
            "updated_at",
            "indexed_at",
        ]
        read_only_fields = fields


class ChunkSerializer(serializers.ModelSerializer[Chunk]):
    """A passage of a document. `start` and `end` are character offsets into the whole text."""

    heading_path = serializers.ListField(child=serializers.CharField())
    metadata = serializers.DictField()

    class Meta:
        model = Chunk
        fields = [
            "id",
            "key",
            "ordinal",
            "text",
            "context",
            "heading_path",
            "summary",
            "start",
            "end",
            "page",
            "parent",
            "token_count",
            "language",
            "metadata",
        ]
        read_only_fields = fields
        extra_kwargs = {
            "context": {"help_text": "Title and headings, indexed together with the text."},
            "language": {"help_text": "Its text search configuration in PostgreSQL."},
        }


class ItemSerializer(serializers.ModelSerializer[IngestionItem]):
    """One file of a run, and what became of it."""

    document = serializers.PrimaryKeyRelatedField[Document](read_only=True, allow_null=True)
    error = FailureSerializer()

    class Meta:
        model = IngestionItem
        fields = ["id", "name", "size", "state", "error", "document"]
        read_only_fields = fields


class RunSerializer(serializers.ModelSerializer[IngestionRun]):
    """One upload, command or request, and how far it is."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:run-detail", help_text="Its address in the API: ask again for progress."
    )
    items_url = serializers.HyperlinkedIdentityField(
        view_name="api:run-items", help_text="Pages of everything in it."
    )
    events_url = serializers.HyperlinkedIdentityField(
        view_name="api:run-events", help_text="Its progress as server-sent events."
    )
    retry_of = serializers.PrimaryKeyRelatedField[IngestionRun](
        read_only=True, allow_null=True, help_text="The run whose failed files it tries again."
    )
    collection = serializers.SlugRelatedField[Collection](slug_field="slug", read_only=True)
    timings = serializers.DictField(
        child=serializers.FloatField(), help_text="Seconds spent in each stage."
    )
    settled = serializers.IntegerField(help_text="Files whose fate is known.")
    is_finished = serializers.BooleanField(help_text="Whether nothing more will happen.")

    class Meta:
        model = IngestionRun
        fields = [
            "id",
            "url",
            "items_url",
            "events_url",
            "retry_of",
            "collection",
            "source",
            "policy",
            "state",
            "is_finished",
            *COUNTERS,
            "timings",
            "started_at",
            "finished_at",
        ]
        read_only_fields = fields


class RetrySerializer(RunSerializer):
    """The run of a retry."""

    left_out = serializers.SerializerMethodField(
        help_text="Names of failed files that are not stored here: bring them again. At most 200."
    )

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "left_out"]
        read_only_fields = fields

    def get_left_out(self, run: IngestionRun) -> list[str]:
        return list(self.context["left_out"])


class RunDetailSerializer(RunSerializer):
    """A run with its files."""

    items = ItemSerializer(
        source="first_items",
        many=True,
        help_text="The first 200 files, failed ones first; `items_url` pages through all.",
    )

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "items"]
        read_only_fields = fields

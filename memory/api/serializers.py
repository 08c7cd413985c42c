"""What the API says of a user's memory."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from memory.models import Context, Fact, Pruning
from memory.retrieval.finding import MODES

NOBODY = "Whose memory it was; null for nobody, of whom nothing is kept."


class AnswerSerializer(serializers.Serializer[Any]):
    """An answer that says whose memory it is about."""

    user_id = serializers.CharField(allow_null=True, help_text=NOBODY)


@extend_schema_serializer(component_name="MemoryContext")
class ContextSerializer(serializers.ModelSerializer[Context]):
    """What a user said, and what was answered."""

    embedded = serializers.SerializerMethodField(
        help_text="Whether it is found by its meaning too, or by its words only as yet."
    )

    class Meta:
        model = Context
        fields = [
            "id",
            "conversation",
            "user_message",
            "assistant_response",
            "origin",
            "created_at",
            "embedded",
        ]
        read_only_fields = fields
        extra_kwargs = {
            "conversation": {"help_text": "Your name for where it was said, or empty."},
            "created_at": {"help_text": "When it was said last."},
        }

    def get_embedded(self, context: Context) -> bool:
        return context.space_id is not None


@extend_schema_serializer(component_name="MemoryContextAnswer")
class ContextAnswerSerializer(AnswerSerializer):
    """A context of a user."""

    context = ContextSerializer()  # type: ignore[assignment]  # DRF's metaclass takes it out


@extend_schema_serializer(component_name="MemoryScores")
class ScoresSerializer(serializers.Serializer[Any]):
    """How a context came to its place: all from 0 to 1, and higher is better."""

    score = serializers.FloatField(
        help_text="Orders the hits: how strong it is beside the strongest, × `recency`."
    )
    relevance = serializers.FloatField(
        help_text="How much it has to do with the question, the same for every question and at any"
        " age. `threshold` is on it."
    )
    recency = serializers.FloatField(help_text="How fresh it is.")
    parts = serializers.DictField(
        child=serializers.FloatField(),
        help_text="What each piece of evidence added to its strength.",
    )


@extend_schema_serializer(component_name="MemoryHit")
class HitSerializer(serializers.Serializer[Any]):
    """A context that has to do with the question."""

    context = ContextSerializer()  # type: ignore[assignment]  # DRF's metaclass takes it out
    scores = ScoresSerializer(source="ranked")


@extend_schema_serializer(component_name="MemorySearchAnswer")
class SearchAnswerSerializer(AnswerSerializer):
    """Contexts that have to do with the question, the best first."""

    query = serializers.CharField()
    mode = serializers.ChoiceField(choices=MODES)
    hits = HitSerializer(many=True)
    below = serializers.IntegerField(
        help_text="How many were left out, because their relevance is below the threshold."
    )
    searched = serializers.IntegerField(help_text="How many contexts the user has.")
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="What should have worked and did not: `vector` when the embedder is down.",
    )
    milliseconds = serializers.FloatField()


@extend_schema_serializer(component_name="MemoryArchived")
class ArchivedSerializer(AnswerSerializer):
    """What became of a turn."""

    context = ContextSerializer(  # type: ignore[assignment]
        allow_null=True, help_text="Null where nothing was kept."
    )
    is_new = serializers.BooleanField(help_text="False where it was only said again.")


@extend_schema_serializer(component_name="MemoryRemoved")
class RemovedSerializer(AnswerSerializer):
    """How much was forgotten."""

    removed = serializers.IntegerField()


@extend_schema_serializer(component_name="MemoryFact")
class FactSerializer(serializers.ModelSerializer[Fact]):
    """What is, or was, true of a user."""

    is_current = serializers.SerializerMethodField(help_text="Whether it still holds.")

    class Meta:
        model = Fact
        fields = [
            "key",
            "value",
            "valid_from",
            "valid_to",
            "confirmed_at",
            "is_current",
            "origin",
            "source",
        ]
        read_only_fields = fields
        extra_kwargs = {
            "key": {"help_text": "In snake_case."},
            "valid_to": {"help_text": "Null while it holds."},
            "source": {"help_text": "Id of the context that it was learnt from."},
        }

    def get_is_current(self, fact: Fact) -> bool:
        return fact.valid_to is None


@extend_schema_serializer(component_name="MemoryFactAnswer")
class FactAnswerSerializer(AnswerSerializer):
    """A fact of a user."""

    fact = FactSerializer()


@extend_schema_serializer(component_name="MemoryFactChange")
class FactChangeSerializer(AnswerSerializer):
    """What became of a fact."""

    fact = FactSerializer(allow_null=True, help_text="Null where nothing was kept.")
    changed = serializers.BooleanField(help_text="False where it was known already.")
    superseded = FactSerializer(allow_null=True, help_text="What it took the place of.")


@extend_schema_serializer(component_name="MemoryFactCleared")
class ClearedSerializer(AnswerSerializer):
    """Whether a fact ended."""

    cleared = serializers.BooleanField(help_text="False where there was none.")


@extend_schema_serializer(component_name="MemoryErased")
class ErasedSerializer(AnswerSerializer):
    """How many rows of each kind were removed."""

    contexts = serializers.IntegerField()
    facts = serializers.IntegerField(help_text="Their history included.")
    conversations = serializers.IntegerField(help_text="Of the queue of extraction.")
    prunings = serializers.IntegerField(help_text="Notes of what a quota removed.")


@extend_schema_serializer(component_name="MemoryPruning")
class PruningSerializer(serializers.ModelSerializer[Pruning]):
    """Contexts that were removed, the oldest ones, because a quota was used up."""

    class Meta:
        model = Pruning
        fields = ["created_at", "reason", "rows", "bytes", "until"]
        read_only_fields = fields


@extend_schema_serializer(component_name="MemoryUsage")
class UsageSerializer(AnswerSerializer):
    """How much is kept, and of how much that may be; a limit of null is none."""

    rows = serializers.IntegerField(help_text="Contexts.")
    bytes = serializers.IntegerField(help_text="Of their texts.")
    facts = serializers.IntegerField(help_text="Their history included.")
    max_rows = serializers.IntegerField(
        allow_null=True, help_text="Beyond it the oldest contexts are removed."
    )
    max_bytes = serializers.IntegerField(allow_null=True, help_text="Likewise.")
    max_facts = serializers.IntegerField(
        allow_null=True, help_text="Beyond it facts are refused: none is ever removed."
    )
    prunings = PruningSerializer(many=True, help_text="What was removed, the latest ten.")

"""What the API says of conversations: before a chat model, and in the queue to learn from."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from memory.api.messages import MessageField
from memory.api.serializers import AnswerSerializer
from memory.models import ExtractionItem


@extend_schema_serializer(component_name="MemoryInjectedFact")
class InjectedFactSerializer(serializers.Serializer[Any]):
    """A fact that was added."""

    key = serializers.CharField()
    value = serializers.CharField()


@extend_schema_serializer(component_name="MemoryInjectedTurn")
class InjectedTurnSerializer(serializers.Serializer[Any]):
    """A context that was added, shortened where it is long."""

    said_on = serializers.DateField(help_text="The day, in the site's time zone.")
    user_message = serializers.CharField()
    assistant_response = serializers.CharField()


@extend_schema_serializer(component_name="MemoryInjected")
class InjectionSerializer(AnswerSerializer):
    """Messages for a chat model, and what was added, the most relevant first."""

    messages = serializers.ListField(child=MessageField())
    facts = InjectedFactSerializer(many=True)
    context = InjectedTurnSerializer(many=True)  # type: ignore[assignment]
    tokens = serializers.IntegerField(help_text="Of all that was added, roughly.")
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="What should have worked and did not: `vector` when the embedder is down.",
    )


@extend_schema_serializer(component_name="MemoryConversation")
class ConversationSerializer(serializers.ModelSerializer[ExtractionItem]):
    """A conversation, and how far it has been read."""

    conversation = serializers.CharField(source="key", help_text="Your name for it.")
    waiting = serializers.IntegerField(help_text="Messages of the user that wait to be read.")

    class Meta:
        model = ExtractionItem
        fields = [
            "id",
            "conversation",
            "state",
            "seen",
            "waiting",
            "attempts",
            "error",
            "due_at",
            "last_message_at",
            "extracted_at",
            "extractor",
            "facts",
            "contexts",
        ]
        read_only_fields = fields
        extra_kwargs = {
            "attempts": {"help_text": "To read what waits."},
            "error": {"help_text": "Why the last attempt failed, or empty."},
            "due_at": {"help_text": "When it is read next; null where nothing is due."},
            "extracted_at": {"help_text": "When it was read last."},
        }


@extend_schema_serializer(component_name="MemoryConversationAnswer")
class ConversationAnswerSerializer(AnswerSerializer):
    """A conversation of a user."""

    conversation = ConversationSerializer()


@extend_schema_serializer(component_name="MemoryRecorded")
class RecordedSerializer(AnswerSerializer):
    """What became of messages."""

    conversation = ConversationSerializer(
        allow_null=True, help_text="Null where the user said nothing, or nothing is kept."
    )
    new = serializers.IntegerField(help_text="How many were not known before.")

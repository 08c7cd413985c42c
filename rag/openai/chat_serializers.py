"""A chat completion, as the description has it."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers


@extend_schema_serializer(component_name="OpenAIMessage")
class MessageSerializer(serializers.Serializer[Any]):
    """What the assistant says."""

    role = serializers.ChoiceField(choices=["assistant"])
    content = serializers.CharField(allow_null=True)
    refusal = serializers.CharField(allow_null=True)
    tool_calls = serializers.ListField(child=serializers.DictField(), required=False)
    citations = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="Not OpenAI's. Of an answer out of documents: the sources of `[1]`, `[2]`, … as"
        " in the events `citation` of a chat.",
    )


@extend_schema_serializer(component_name="OpenAIChoice")
class ChoiceSerializer(serializers.Serializer[Any]):
    """The answer."""

    index = serializers.IntegerField()
    message = MessageSerializer()
    logprobs = serializers.DictField(allow_null=True)
    finish_reason = serializers.ChoiceField(choices=["stop", "length", "tool_calls"])


@extend_schema_serializer(component_name="OpenAIUsage")
class UsageSerializer(serializers.Serializer[Any]):
    """Tokens as the model's server counts them, 0 where it does not."""

    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    total_tokens = serializers.IntegerField()


@extend_schema_serializer(component_name="OpenAIChatCompletion")
class CompletionSerializer(serializers.Serializer[Any]):
    """A chat completion."""

    id = serializers.CharField()
    object = serializers.CharField(help_text="`chat.completion`.")
    created = serializers.IntegerField(help_text="Seconds since 1970.")
    model = serializers.CharField()
    system_fingerprint = serializers.CharField(allow_null=True)
    choices = ChoiceSerializer(many=True)
    usage = UsageSerializer()
    ragsite = serializers.DictField(help_text="Not OpenAI's: how the answer came about.")

"""Request and response of a message, and reading a conversation. Validated requests have the field
names of OpenAI's, which `rag.openai.chat.answer_chat` takes."""

from typing import Any

from django.utils.translation import gettext
from rest_framework import serializers

from common.errors import InvalidInput
from common.serializers import SlugsField
from inference.interfaces import ChatMessage
from rag.openai.chat_schema import (
    MAX_ANSWER_TOKENS,
    MAX_MESSAGES,
    ROLES,
    MessageField,
    OpenAIExtrasSerializer,
    StopField,
    read_text,
)
from rag.openai.protocol import AnyField, NullMeansLeftOut

#: A turn's role; `system` is taken there, too, as some clients send it.
_ROLES = ("user", "assistant", "system")
#: What a model thought is no part of the conversation.
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
#: Fields that change an answer and that no answer here heeds.
_UNSUPPORTED = ("tools", "mcp_servers", "container", "output_format")


class AnthropicMetadataSerializer(NullMeansLeftOut):
    """Who asks."""

    user_id = serializers.CharField(
        source="user",
        required=False,
        max_length=255,
        allow_blank=True,
        help_text="Whose memory is used: a user of yours.",
    )


class AnthropicConversationSerializer(NullMeansLeftOut):
    """A conversation, and who is to continue it."""

    model = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=300,
        help_text="A chat model of `/v1/models`, `extractive`, or `pipeline/ID`. Default: the"
        " site's.",
    )
    messages = serializers.ListField(
        child=MessageField(),
        min_length=1,
        max_length=MAX_MESSAGES,
        help_text="Of `user` and `assistant`, whose `content` is text or blocks of type `text`.",
    )
    system = AnyField(required=False, help_text="Instructions: text, or blocks of type `text`.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Reject fields that would silently be ignored."""
        given = {name for name in _UNSUPPORTED if self.initial_data.get(name)}
        config = self.initial_data.get("output_config")
        if isinstance(config, dict) and config.get("format"):
            given.add("output_config")
        if given:
            refusal = gettext(
                "This is not supported here. Leave it out; your tools are called at"
                " /v1/chat/completions."
            )
            raise serializers.ValidationError(dict.fromkeys(sorted(given), refusal))
        return attrs


class AnthropicMessageRequestSerializer(AnthropicConversationSerializer):
    """A conversation to be continued by a message."""

    max_tokens = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ANSWER_TOKENS,
        help_text="Default: what the model writes.",
    )
    stream = serializers.BooleanField(default=False)
    temperature = serializers.FloatField(required=False, min_value=0, max_value=1)
    top_p = serializers.FloatField(required=False, min_value=0, max_value=1)
    stop_sequences = StopField(
        source="stop", required=False, help_text="Texts before which the answer ends."
    )
    metadata = AnthropicMetadataSerializer(source="*", required=False)
    collections = SlugsField(
        required=False,
        help_text="Not Anthropic's: slugs of collections. The answer is then made out of these,"
        " and cites them.",
    )
    ragsite = OpenAIExtrasSerializer(
        required=False, help_text="Not Anthropic's: more of that kind."
    )


def read_conversation(body: dict[str, Any]) -> list[ChatMessage]:
    """The system prompt and the messages. Raises InvalidInput with the path of what is invalid."""
    messages = []
    if system := read_text(body.get("system"), "system"):
        messages.append(ChatMessage("system", system))
    for at, each in enumerate(body["messages"]):
        role = each.get("role") if isinstance(each, dict) else None
        if role not in _ROLES:
            raise InvalidInput(
                gettext("A message is an object whose role is one of: {roles}.").format(
                    roles=", ".join(_ROLES)
                ),
                field=f"messages.{at}",
            )
        text = read_text(each.get("content"), f"messages.{at}.content", passed_over=_THOUGHTS)
        messages.append(ChatMessage(ROLES[role], text))
    return messages


class AnthropicBlockSerializer(serializers.Serializer[Any]):
    """A part of a message: what the model thought, or the answer."""

    type = serializers.ChoiceField(choices=["text", "thinking"])
    text = serializers.CharField(required=False)
    citations = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="Of an answer out of documents: the sources, as Anthropic's"
        " `search_result_location`, in the order of their marks in the text.",
    )
    thinking = serializers.CharField(required=False)
    signature = serializers.CharField(required=False, help_text="Always empty.")


class AnthropicUsageSerializer(serializers.Serializer[Any]):
    """Tokens as the model's server counts them, 0 if it does not."""

    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()


class AnthropicMessageSerializer(serializers.Serializer[Any]):
    """A message in Anthropic's format."""

    id = serializers.CharField()
    type = serializers.CharField(help_text="`message`.")
    role = serializers.CharField(help_text="`assistant`.")
    model = serializers.CharField()
    content = AnthropicBlockSerializer(many=True)
    stop_reason = serializers.ChoiceField(choices=["end_turn", "max_tokens"])
    stop_sequence = serializers.CharField(allow_null=True, help_text="Always null.")
    usage = AnthropicUsageSerializer()
    citations = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="Not Anthropic's. Of an answer out of documents: the sources of `[1]`, `[2]`, …"
        " as in the events `citation` of a chat.",
    )
    ragsite = serializers.DictField(help_text="Not Anthropic's: how the answer came about.")


class AnthropicTokensSerializer(serializers.Serializer[Any]):
    """How long a conversation is."""

    input_tokens = serializers.IntegerField(help_text="Estimated; rather too many.")

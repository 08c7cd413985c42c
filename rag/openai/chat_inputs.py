"""What a request for a chat completion may say."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from rag.openai.texts import AnyField
from rag.services.asked import GenerationOptions
from rag.services.chatting import SEARCH_OPTIONS
from search.api.inputs import FilterField, FusionWeightsInput

MAX_MESSAGES = 2_000
MAX_TOOLS = 128
MAX_STOPS = 16
#: More than any model writes at once.
MAX_ANSWER_TOKENS = 200_000

ASK_DOCUMENTS = OpenApiExample(
    "A question to documents",
    value={
        "model": "extractive",
        "messages": [{"role": "user", "content": "Where do I report a lost key card?"}],
        "collections": ["handbook"],
    },
    request_only=True,
)


@extend_schema_field({"type": "object", "additionalProperties": {}})
class MessageField(AnyField):
    """`role`, `content` and what else OpenAI has for a message."""


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ToolField(AnyField):
    """A `function` with its `name`, `description` and `parameters`."""


class StopField(AnyField):
    """One text before which the answer ends, or several."""

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        stops = [data] if isinstance(data, str) else data
        if (
            not isinstance(stops, list)
            or len(stops) > MAX_STOPS
            or not all(isinstance(stop, str) and stop for stop in stops)
        ):
            raise serializers.ValidationError(f"Send a text, or a list of up to {MAX_STOPS}.")
        return tuple(stops)


def _optional(**options: Any) -> dict[str, Any]:
    """Clients send null for what they leave open."""
    return {"required": False, "allow_null": True, **options}


@extend_schema_serializer(component_name="OpenAIExtras")
class ExtrasInput(FusionWeightsInput):
    """What OpenAI's API has no word for, so that no client of theirs sends more of it."""

    collections = serializers.ListField(
        child=serializers.SlugField(max_length=63),
        **_optional(max_length=100, help_text="Slugs: the answer is made out of these."),
    )
    filter = FilterField(**_optional(help_text="What passages must be like, as in searches."))
    rerank = serializers.BooleanField(
        **_optional(
            help_text="Whether a model reads the best passages again. Default: where one is set up."
        )
    )
    memory = serializers.BooleanField(
        **_optional(
            help_text="Put what is remembered before the model, and remember the question: yours,"
            " or of the `user` that the request names. Default: the site's setting.",
        )
    )
    whole = serializers.BooleanField(
        **_optional(help_text="Put all of the collections before the model: for few documents.")
    )
    pipeline = serializers.SlugField(
        **_optional(max_length=63, help_text="The same as the model `pipeline/ID`.")
    )


@extend_schema_serializer(component_name="OpenAIStreamOptions")
class StreamOptionsInput(serializers.Serializer[Any]):
    """How a stream is told."""

    include_usage = serializers.BooleanField(**_optional(default=False))


@extend_schema_serializer(component_name="OpenAIChatRequest")
class CompletionInput(serializers.Serializer[Any]):
    """A conversation that wants its next message."""

    model = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=300,
        help_text="A chat model of `/v1/models`, `extractive`, or `pipeline/ID`. Default: the"
        " site's.",
    )
    messages = serializers.ListField(
        child=MessageField(), min_length=1, max_length=MAX_MESSAGES, help_text="As OpenAI has them."
    )
    stream = serializers.BooleanField(**_optional(default=False))
    stream_options = StreamOptionsInput(**_optional())
    temperature = serializers.FloatField(**_optional(min_value=0, max_value=2))
    top_p = serializers.FloatField(**_optional(min_value=0, max_value=1))
    max_tokens = serializers.IntegerField(**_optional(min_value=1, max_value=MAX_ANSWER_TOKENS))
    max_completion_tokens = serializers.IntegerField(
        **_optional(min_value=1, max_value=MAX_ANSWER_TOKENS, help_text="Goes before `max_tokens`.")
    )
    stop = StopField(**_optional(help_text="A text, or several, before which the answer ends."))
    n = serializers.IntegerField(
        **_optional(min_value=1, max_value=1, help_text="One answer is given.")
    )
    tools = serializers.ListField(
        child=ToolField(),
        **_optional(
            max_length=MAX_TOOLS,
            help_text="Functions of your program that the model may want called.",
        ),
    )
    tool_choice = AnyField(**_optional(help_text="`auto`, `none`, `required`, or one of `tools`."))
    response_format = AnyField(**_optional(help_text="Only `text`."))
    user = serializers.CharField(
        **_optional(
            max_length=255, allow_blank=True, help_text="Whose memory is used: a user of yours."
        )
    )
    collections = serializers.ListField(
        child=serializers.SlugField(max_length=63),
        **_optional(
            max_length=100,
            help_text="Not OpenAI's: slugs of collections. The answer is then made out of these,"
            " and cites them.",
        ),
    )
    ragsite = ExtrasInput(**_optional(help_text="Not OpenAI's: more of that kind."))

    def validate_response_format(self, value: Any) -> Any:
        """Nothing else can be promised for every model."""
        kind = value.get("type") if isinstance(value, dict) else value
        if kind not in (None, "text"):
            raise serializers.ValidationError(
                "Only “text” is given. Ask for JSON in words, or through a tool's parameters."
            )
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse what would silently be something else."""
        if self.initial_data.get("functions"):
            raise serializers.ValidationError({"functions": "These are called `tools` now."})
        if outside := [name for name in SEARCH_OPTIONS if name in self.initial_data]:
            detail = "Send it within `ragsite`: {“ragsite”: {“" + outside[0] + "”: …}}."
            raise serializers.ValidationError(dict.fromkeys(outside, detail))
        return attrs


def options_of(asked: dict[str, Any], *, instructions: str = "") -> GenerationOptions:
    """How the model is to answer."""
    return GenerationOptions(
        temperature=asked.get("temperature"),
        max_tokens=asked.get("max_completion_tokens") or asked.get("max_tokens"),
        top_p=asked.get("top_p"),
        stop=asked.get("stop") or (),
        instructions=instructions,
    )

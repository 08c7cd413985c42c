"""Request and response of a chat completion, and reading its messages and tools."""

import re
from collections.abc import Container, Mapping
from typing import Any, Literal

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.errors import InvalidInput
from common.options.drf import OptionsSerializer
from common.serializers import SlugsField
from inference.interfaces import ChatMessage, ToolCall
from rag.openai.protocol import AnyField, NullMeansLeftOut
from rag.services.chat import SEARCH_OPTIONS
from search.api.inputs import FilterField
from search.query_options import RetrievalOptions

MAX_MESSAGES = 2_000
MAX_TOOLS = 128
MAX_STOP_TEXTS = 16
#: More than any model generates at once.
MAX_ANSWER_TOKENS = 200_000


@extend_schema_field({"type": "object", "additionalProperties": {}})
class MessageField(AnyField):
    """A message with `role`, `content` and OpenAI's other fields."""


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ToolField(AnyField):
    """A `function` with its `name`, `description` and `parameters`."""


class StopField(AnyField):
    """One stop text, or several."""

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        stops = [data] if isinstance(data, str) else data
        if (
            not isinstance(stops, list)
            or len(stops) > MAX_STOP_TEXTS
            or not all(isinstance(stop, str) and stop for stop in stops)
        ):
            raise serializers.ValidationError(
                gettext("Send a text, or a list of up to {limit}.").format(limit=MAX_STOP_TEXTS)
            )
        return tuple(stops)


class OpenAIExtrasSerializer(NullMeansLeftOut, OptionsSerializer):
    """Options that OpenAI's API does not have; unknown ones are an error."""

    options = RetrievalOptions

    collections = SlugsField(
        required=False,
        help_text="Slugs: the answer is made out of these.",
    )
    filter = FilterField(required=False, help_text="What passages must be like, as in searches.")
    memory = serializers.BooleanField(
        required=False,
        help_text="Put what is remembered before the model, and remember the question: yours,"
        " or of the `user` that the request names. Default: the site's setting.",
    )
    whole = serializers.BooleanField(
        required=False, help_text="Put all of the collections before the model: for few documents."
    )
    pipeline = serializers.SlugField(
        required=False, max_length=63, help_text="The same as the model `pipeline/ID`."
    )


class OpenAIStreamOptionsSerializer(NullMeansLeftOut):
    """Options that only a stream has."""

    include_usage = serializers.BooleanField(default=False)


class OpenAIChatRequestSerializer(NullMeansLeftOut):
    """A conversation to be continued by a message."""

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
    stream = serializers.BooleanField(default=False)
    stream_options = OpenAIStreamOptionsSerializer(required=False)
    temperature = serializers.FloatField(required=False, min_value=0, max_value=2)
    top_p = serializers.FloatField(required=False, min_value=0, max_value=1)
    max_tokens = serializers.IntegerField(required=False, min_value=1, max_value=MAX_ANSWER_TOKENS)
    max_completion_tokens = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ANSWER_TOKENS,
        help_text="Goes before `max_tokens`.",
    )
    stop = StopField(required=False, help_text="A text, or several, before which the answer ends.")
    n = serializers.IntegerField(
        required=False, min_value=1, max_value=1, help_text="One answer is given."
    )
    tools = serializers.ListField(
        child=ToolField(),
        required=False,
        max_length=MAX_TOOLS,
        help_text="Functions of your program that the model may want called.",
    )
    tool_choice = AnyField(
        required=False, help_text="`auto`, `none`, `required`, or one of `tools`."
    )
    response_format = AnyField(required=False, help_text="Only `text`.")
    user = serializers.CharField(
        required=False,
        max_length=255,
        allow_blank=True,
        help_text="Whose memory is used: a user of yours.",
    )
    collections = SlugsField(
        required=False,
        help_text="Not OpenAI's: slugs of collections. The answer is then made out of these,"
        " and cites them.",
    )
    ragsite = OpenAIExtrasSerializer(required=False, help_text="Not OpenAI's: more of that kind.")

    def validate_response_format(self, value: Any) -> Any:
        """Only text: JSON cannot be guaranteed for every model."""
        kind = value.get("type") if isinstance(value, dict) else value
        if kind not in (None, "text"):
            raise serializers.ValidationError(
                gettext(
                    "Only “text” is supported. Ask for JSON in the prompt, or through the"
                    " parameters of a tool."
                )
            )
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Reject fields that would silently be ignored."""
        if self.initial_data.get("functions"):
            raise serializers.ValidationError({"functions": "These are called `tools` now."})
        given = self.initial_data
        if outside := [name for name in SEARCH_OPTIONS if given.get(name) is not None]:
            detail = "Send it within `ragsite`: {“ragsite”: {“" + outside[0] + "”: …}}."
            raise serializers.ValidationError(dict.fromkeys(outside, detail))
        return attrs


def model_options(body: dict[str, Any]) -> dict[str, Any]:
    """The options of a chat model in a request body."""
    return {
        "temperature": body.get("temperature"),
        "max_tokens": body.get("max_completion_tokens") or body.get("max_tokens"),
        "top_p": body.get("top_p"),
        "stop": body.get("stop") or (),
    }


ToolSchema = Mapping[str, object]
ROLES: Mapping[str, Literal["system", "user", "assistant", "tool"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
TOOL_CHOICES = ("auto", "none", "required")
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NO_PARAMETERS: Mapping[str, object] = {"type": "object", "properties": {}}


def read_messages(given: list[Any]) -> list[ChatMessage]:
    """Parse messages. Raises InvalidInput with the path of what is invalid."""
    messages = []
    for at, each in enumerate(given):
        place = f"messages.{at}"
        role = ROLES.get(str(each.get("role"))) if isinstance(each, dict) else None
        if role is None:
            raise InvalidInput(
                gettext("A message is an object whose role is one of: {roles}.").format(
                    roles=", ".join(ROLES)
                ),
                field=place,
            )
        calls = _calls(each.get("tool_calls") or [], f"{place}.tool_calls")
        content = read_text(each.get("content"), f"{place}.content")
        call_id = each.get("tool_call_id") if role == "tool" else None
        if role == "tool" and not isinstance(call_id, str):
            raise InvalidInput(
                gettext("A tool message needs the id of the call it answers."),
                field=f"{place}.tool_call_id",
            )
        calls = calls if role == "assistant" else ()
        messages.append(ChatMessage(role, content, tool_calls=calls, tool_call_id=call_id))
    return messages


def read_tools(given: list[Any]) -> list[ToolSchema]:
    """Functions as {"name", "description", "parameters"}. Raises InvalidInput."""
    tools: list[ToolSchema] = []
    for at, each in enumerate(given):
        place = f"tools.{at}"
        function = each.get("function") if isinstance(each, dict) else None
        if not isinstance(function, dict) or each.get("type", "function") != "function":
            raise InvalidInput(
                gettext("A tool is {“type”: “function”, “function”: {“name”: …, “parameters”: …}."),
                field=place,
            )
        name, parameters = function.get("name"), function.get("parameters")
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            raise InvalidInput(
                gettext("A name has up to 64 letters, digits, hyphens and underscores."),
                field=f"{place}.function.name",
            )
        if parameters is not None and not isinstance(parameters, dict):
            raise InvalidInput(
                gettext("This must be a JSON schema."), field=f"{place}.function.parameters"
            )
        description = str(function.get("description") or "")
        parameters = parameters or NO_PARAMETERS
        tools.append({"name": name, "description": description, "parameters": parameters})
    return tools


def read_tool_choice(given: Any, tools: list[ToolSchema]) -> str | None:
    """ "auto", "none", "required", the name of one of `tools`, or None. Raises InvalidInput."""
    if given is None or given in TOOL_CHOICES:
        return given if tools else None
    function = given.get("function") if isinstance(given, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if name not in [tool["name"] for tool in tools]:
        raise InvalidInput(
            gettext(
                "Choose {choices}, or one of `tools` as {{“type”: “function”, “function”:"
                " {{“name”: …}}}}."
            ).format(choices=", ".join(TOOL_CHOICES)),
            field="tool_choice",
        )
    return str(name)


def document_question(messages: list[ChatMessage]) -> tuple[str, list[ChatMessage], str]:
    """A question to documents: the last message, the turns before it, and the caller's
    instructions. Raises InvalidInput if the last message is not the user's. Tool messages are left
    out of the history: the answer is based on documents."""
    instructions = "\n\n".join(each.content for each in messages if each.role == "system")
    turns = [each for each in messages if each.role in ("user", "assistant") and each.content]
    if not messages or messages[-1].role != "user" or not messages[-1].content.strip():
        raise InvalidInput(
            gettext(
                "For answers from documents, the last message must be the user's and contain text."
            ),
            field="messages",
        )
    return turns[-1].content, turns[:-1], instructions


def read_text(content: Any, place: str, *, passed_over: Container[str] = ()) -> str:
    """Text of a string or of text parts; "" for none, as with tool calls. Parts of the types
    `passed_over` are left out. Raises InvalidInput, which names the type of any other part."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise InvalidInput(gettext("The content must be text or a list of parts."), field=place)
    texts = []
    for at, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in passed_over:
            continue
        text = part.get(kind) if kind in ("text", "refusal") else None
        if not isinstance(text, str):
            raise InvalidInput(
                gettext(
                    "Only parts of type “text” are supported, not “{kind}”. Leave out"
                    " images, sound and files."
                ).format(kind=str(kind)[:40]),
                field=f"{place}.{at}",
            )
        texts.append(text)
    return "\n".join(texts)


def _calls(given: Any, place: str) -> tuple[ToolCall, ...]:
    if not isinstance(given, list):
        raise InvalidInput(gettext("This must be a list of calls."), field=place)
    calls = []
    for at, each in enumerate(given):
        function = each.get("function") if isinstance(each, dict) else None
        fields = function if isinstance(function, dict) else {}
        parts = (each.get("id") if function else None, fields.get("name"), fields.get("arguments"))
        if not all(isinstance(part, str) for part in parts):
            raise InvalidInput(
                gettext("A call has an `id`, and a `function` with `name` and `arguments`."),
                field=f"{place}.{at}",
            )
        calls.append(ToolCall(*map(str, parts)))
    return tuple(calls)


class OpenAIMessageSerializer(serializers.Serializer[Any]):
    """The assistant's message, with citations if documents were used."""

    role = serializers.ChoiceField(choices=["assistant"])
    content = serializers.CharField(allow_null=True)
    refusal = serializers.CharField(allow_null=True)
    reasoning_content = serializers.CharField(
        required=False,
        help_text="What a reasoning model thought before it answered, as DeepSeek names it.",
    )
    tool_calls = serializers.ListField(child=serializers.DictField(), required=False)
    citations = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="Not OpenAI's. Of an answer out of documents: the sources of `[1]`, `[2]`, … as"
        " in the events `citation` of a chat.",
    )


class OpenAIChoiceSerializer(serializers.Serializer[Any]):
    """One answer; there is always exactly one."""

    index = serializers.IntegerField()
    message = OpenAIMessageSerializer()
    logprobs = serializers.DictField(allow_null=True)
    finish_reason = serializers.ChoiceField(choices=["stop", "length", "tool_calls"])


class OpenAIUsageSerializer(serializers.Serializer[Any]):
    """Tokens as the model's server counts them, 0 if it does not."""

    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    total_tokens = serializers.IntegerField()


class OpenAIChatCompletionSerializer(serializers.Serializer[Any]):
    """A chat completion in OpenAI's format."""

    id = serializers.CharField()
    object = serializers.CharField(help_text="`chat.completion`.")
    created = serializers.IntegerField(help_text="Seconds since 1970.")
    model = serializers.CharField()
    system_fingerprint = serializers.CharField(allow_null=True)
    choices = OpenAIChoiceSerializer(many=True)
    usage = OpenAIUsageSerializer()
    ragsite = serializers.DictField(help_text="Not OpenAI's: how the answer came about.")

"""What a question to the chat may say."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from common.serializers import StrictSerializer, TextField
from rag.pipelines.limits import MAX_PROMPT_CHARACTERS
from rag.services.answering import MAX_QUESTION_CHARACTERS
from rag.services.asked import GenerationOptions
from rag.services.chatting import SEARCH_OPTIONS, Question
from rag.services.history import as_history
from search.api.inputs import FilterField, FusionWeightsInput
from search.results import MODES

MAX_TURNS = 200
MAX_TURN_CHARACTERS = 100_000
#: More than any model writes at once.
MAX_ANSWER_TOKENS = 200_000
#: What belongs to an answer by passages; the nodes of a pipeline say it for themselves.
OWN = ("mode", "temperature", "top_p", "max_tokens", "memory", "whole")


@extend_schema_serializer(component_name="ChatTurn")
class TurnInput(StrictSerializer):
    """Something that was said before."""

    role = serializers.ChoiceField(choices=["user", "assistant"])
    content = TextField(max_length=MAX_TURN_CHARACTERS)


@extend_schema_serializer(component_name="Chat")
class ChatInput(FusionWeightsInput):
    """A question, where to look for its answer, and who is to give it."""

    message = TextField(max_length=MAX_QUESTION_CHARACTERS, help_text="The question.")
    collections = serializers.ListField(
        child=serializers.SlugField(max_length=63),
        required=False,
        max_length=100,
        help_text="Slugs of collections. Default: those of the conversation, or all that you may"
        " see.",
    )
    filter = FilterField(
        required=False, help_text="What passages must be like, in the language of searches."
    )
    conversation = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The conversation that the question continues. Default: a new one, whose id"
        " `metadata` tells. Null: nothing is kept.",
    )
    replaces = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The last answer of the conversation, whose place this one takes.",
    )
    history = serializers.ListField(
        child=TurnInput(),
        required=False,
        max_length=MAX_TURNS,
        help_text="What was said before, oldest first, where your program keeps it itself; nothing"
        " is kept then. The last 20 are read.",
    )
    pipeline = serializers.SlugField(
        required=False,
        allow_null=True,
        max_length=63,
        help_text="The pipeline or template that answers. Default: none.",
    )
    pipeline_id = serializers.SlugField(
        required=False, allow_null=True, max_length=63, help_text="The same as `pipeline`."
    )
    model = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="A chat model of `GET /models/`; `extractive` quotes sentences. Default: the"
        " site's. For a pipeline, of nodes that name none.",
    )
    memory = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Put what is remembered of you before the model, and remember the question."
        " Default: the site's setting.",
    )
    whole = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Put all of the collections before the chat model, in place of the passages that"
        " are found: for few documents. Default: where they have no more tokens than the site's"
        " setting.",
    )
    mode = serializers.ChoiceField(
        choices=MODES, default="hybrid", help_text="How passages are found, as in searches."
    )
    rerank = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Whether a model reads the best passages again. Default: where one is set up.",
    )
    system_prompt = TextField(
        required=False,
        max_length=MAX_PROMPT_CHARACTERS,
        help_text="What you demand of the answer, behind the site's own rules.",
    )
    language = TextField(
        required=False,
        max_length=40,
        help_text="What the answer is written in, such as `German` or `de`. Default: as the"
        " question.",
    )
    temperature = serializers.FloatField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=2,
        help_text="How freely the model chooses its words.",
    )
    top_p = serializers.FloatField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=1,
        help_text="From how much of the likely words it chooses.",
    )
    max_tokens = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_ANSWER_TOKENS,
        help_text="Tokens of the answer, at most.",
    )
    stream = serializers.BooleanField(
        default=True, help_text="Events as they come; false: one JSON object at the end."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse what contradicts itself."""
        slugs = {attrs.get(name) for name in ("pipeline", "pipeline_id")} - {None}
        if len(slugs) > 1:
            raise serializers.ValidationError(
                {"pipeline_id": "This names another pipeline than “pipeline”. Send one of both."}
            )
        attrs["pipeline"] = next(iter(slugs), "")
        if "history" in attrs and attrs.get("conversation") is not None:
            raise serializers.ValidationError(
                {"history": "A conversation has a history of its own. Send one of both."}
            )
        if "replaces" in attrs and attrs.get("conversation") is None:
            raise serializers.ValidationError(
                {"replaces": "Name the conversation that the answer stands in."}
            )
        if attrs["pipeline"]:
            self._refuse_own()
        return attrs

    def _refuse_own(self) -> None:
        given = [name for name in OWN if self.initial_data.get(name) is not None]
        if given:
            detail = (
                "The nodes of a pipeline say this for themselves. Leave it out, or change them."
            )
            raise serializers.ValidationError(dict.fromkeys(given, detail))


def question_of(asked: dict[str, Any]) -> Question:
    """The question that a checked request asks."""
    return Question(
        message=asked["message"],
        history=as_history(asked.get("history", ())),
        pipeline=asked["pipeline"],
        model=asked.get("model", ""),
        memory=asked["memory"],
        whole=asked["whole"],
        mode=asked["mode"],
        search_options={name: asked[name] for name in SEARCH_OPTIONS if name in asked},
        options=GenerationOptions(
            temperature=asked.get("temperature"),
            top_p=asked.get("top_p"),
            max_tokens=asked.get("max_tokens"),
            instructions=asked.get("system_prompt", ""),
            language=asked.get("language", ""),
        ),
    )


def is_kept(asked: dict[str, Any]) -> bool:
    """Whether question and answer are kept in a conversation."""
    return "history" not in asked and asked.get("conversation", 0) is not None

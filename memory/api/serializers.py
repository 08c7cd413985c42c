"""Serializers of the memory API: query parameters, request bodies, answers."""

from collections.abc import Mapping
from typing import Any, Self

from django.http import QueryDict
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.options.drf import OptionsSerializer
from common.serializers import (
    PageParameters,
    ReadOnlyModelSerializer,
    ResultSerializer,
    StrictSerializer,
    TextField,
)
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.options import MAX_QUERY_CHARACTERS, InjectionOptions, MemoryQuery
from memory.ranking import Ranked
from memory.retrieval import MODES
from memory.scopes import MAX_USER_ID_CHARACTERS
from memory.services.memories import ErasureResult, Usage
from memory.services.search import InjectionResult, MemoryHit, MemoryResult
from memory.store import MAX_TEXT_BYTES


class UserIdField(TextField):
    """The user whose memory it is. Blank means an unknown user, of whom nothing is kept."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            allow_blank=True,
            max_length=MAX_USER_ID_CHARACTERS,
            validators=[check_utf8],
            help_text="The id of a user of your program, for editors. Case-sensitive. Default: your"
            " own memory. For `unknown` or an empty id nothing is stored or found, and answers are"
            " null.",
        )


def check_utf8(text: str) -> None:
    """Raise ValidationError for broken UTF-8, which would split one user into two."""
    if "\ufffd" in text:
        raise serializers.ValidationError(gettext("This is not UTF-8. Percent-encode it as UTF-8."))


_PARTS_SCHEMA = {"type": "array", "items": {"type": "object", "additionalProperties": {}}}
MESSAGE_SCHEMA = {
    "type": "object",
    "properties": {
        "role": {"type": "string", "description": "`user`, `assistant`, `system` or another."},
        "content": {
            "nullable": True,
            "oneOf": [{"type": "string"}, _PARTS_SCHEMA],
            "description": "A text, or a list of parts of which `text` parts are read.",
        },
    },
    "required": ["role"],
    "additionalProperties": {},
}


@extend_schema_field(MESSAGE_SCHEMA)
class MessageField(serializers.Field[Any, Any, Any, Any]):
    """A message in the form of OpenAI's API; other fields are returned unchanged."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or not isinstance(data.get("role"), str):
            raise serializers.ValidationError(
                gettext("A message is an object with a “role” and a “content”.")
            )
        content = data.get("content")
        if not (
            content is None
            or isinstance(content, str)
            or (isinstance(content, list) and all(isinstance(part, dict) for part in content))
        ):
            raise serializers.ValidationError(
                gettext("The content must be text or a list of parts.")
            )
        return data

    def to_representation(self, value: Mapping[str, Any]) -> Any:
        return value


@extend_schema_field(
    {
        **MESSAGE_SCHEMA,
        "properties": {
            **MESSAGE_SCHEMA["properties"],  # type: ignore[dict-item]
            "at": {"type": "string", "format": "date-time", "description": "When it was said."},
        },
    }
)
class DatedMessageField(MessageField):
    """A message with an optional time, `at`."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        message = super().to_internal_value(data)
        if message.get("at") is None:
            return message
        return {**message, "at": serializers.DateTimeField().run_validation(message["at"])}


#: A key of 200 letters, each of which takes nine characters in an address and twelve in base 64.
MAX_FACT_CURSOR = 4000
#: Beyond the JSON value limit, so that errors are not repeated ten thousand times.
MAX_MESSAGES = 10_000


class MemoryParameters(WorkspaceParameters):
    """The user whose memory a request works on: always in the query string, never in a body."""

    user_id = UserIdField()

    @classmethod
    def from_query(cls, query: QueryDict) -> Self:
        """An empty user id counts as given, or an unknown user's memory would be kept as the
        caller's own; two are an error.
        """
        asked = super().from_query(query)
        if given := query.getlist("user_id"):
            asked.initial_data["user_id"] = given[0] if len(given) == 1 else given
        return asked


def _as_of() -> serializers.DateTimeField:
    return serializers.DateTimeField(required=False, help_text="Values at that time. Default: now.")


class ContextFilter(PageParameters, MemoryParameters):
    """Query parameters that select contexts."""

    conversation = serializers.CharField(
        required=False, max_length=255, trim_whitespace=False, help_text="Your name for it."
    )


class FactFilter(PageParameters, MemoryParameters):
    """Query parameters that select facts."""

    cursor = serializers.CharField(
        required=False,
        max_length=MAX_FACT_CURSOR,
        help_text="Where the page begins: taken from `next` or `previous` of another page.",
    )
    as_of = _as_of()


class FactReading(MemoryParameters):
    """Query parameters of one fact: the time of interest."""

    as_of = _as_of()


class HistoryFilter(PageParameters, MemoryParameters):
    """Query parameters of a fact's history."""


class Erasure(MemoryParameters):
    """Confirmation that everything is to be erased."""

    confirm = serializers.CharField(
        required=False,
        trim_whitespace=False,
        help_text="The user id again; for your own memory it is the one in `usage/`.",
    )


class ConversationFilter(PageParameters, MemoryParameters):
    """Query parameters that select conversations by state."""

    state = serializers.ChoiceField(
        choices=ExtractionItem.State.choices, required=False, help_text="How far it is."
    )


@extend_schema_serializer(deprecate_fields=["query", "max_results"])
class MemorySearchSerializer(OptionsSerializer):
    """A search in a user's memory."""

    options = MemoryQuery

    q = TextField(max_length=MAX_QUERY_CHARACTERS)
    query = TextField(required=False, help_text="Former name of `q`.")
    max_results = serializers.IntegerField(required=False, help_text="Former name of `k`.")
    former_names = {"query": "q", "max_results": "k"}


class SearchParameters(MemorySearchSerializer, MemoryParameters):
    """The query string of a search."""


def _text(meaning: str, **options: bool) -> TextField:
    return TextField(help_text=f"{meaning} At most {MAX_TEXT_BYTES:,} bytes.", **options)


class MemoryTurnSerializer(StrictSerializer):
    """A turn of a conversation: message, answer, time."""

    user_message = _text("What the user said.", allow_blank=True)
    assistant_response = _text("What was answered.", required=False, allow_blank=True)
    conversation = TextField(
        required=False, allow_blank=True, max_length=255, help_text="Your name for where."
    )
    at = serializers.DateTimeField(required=False, help_text="When it was said. Default: now.")


class MemoryQuestionSerializer(StrictSerializer):
    """The exact text of a user message."""

    question = _text("What the user said, to the letter.")


class MemoryFactValueSerializer(StrictSerializer):
    """The value of a fact, and since when it holds."""

    value = _text("In words.")
    at = serializers.DateTimeField(
        required=False,
        help_text="Since when. Default, and latest possible time: now. A value older than"
        " the current one goes into the history.",
    )


class MemoryInjectionSerializer(OptionsSerializer):
    """Messages for a chat model, and limits of what is added."""

    options = InjectionOptions

    messages = serializers.ListField(
        child=MessageField(),
        min_length=1,
        max_length=MAX_MESSAGES,
        help_text="The conversation; its last question counts.",
    )


class MemoryConversationInputSerializer(StrictSerializer):
    """All messages of a conversation from its beginning."""

    conversation = TextField(max_length=255, help_text="Your name for it: the same each time.")
    messages = serializers.ListField(
        child=DatedMessageField(),
        min_length=1,
        max_length=MAX_MESSAGES,
        help_text="All of them: those of the user are read.",
    )
    at = serializers.DateTimeField(
        required=False, help_text="When new messages without a time were said. Default: now."
    )


USER_ID_HELP = "The user id of the memory; null without a user, for whom nothing is stored."


class AnswerSerializer(serializers.Serializer[Any]):
    """An answer with the id of the user whose memory it is."""

    user_id = serializers.CharField(allow_null=True, help_text=USER_ID_HELP)


class MemoryContextSerializer(ReadOnlyModelSerializer[Context]):
    """A turn: what the user said, and the answer."""

    embedded = serializers.SerializerMethodField(
        help_text="Whether it is found by meaning too; until then only by its words."
    )

    class Meta:
        model = Context
        fields = ["id", "conversation", "user_message", "assistant_response", "origin"]
        fields += ["created_at", "outdated_at", "embedded"]
        extra_kwargs = {
            "conversation": {"help_text": "Your name for where it was said, or empty."},
            "created_at": {"help_text": "When it was said last."},
            "outdated_at": {
                "help_text": "When a fact that it states ended. It is not found any more."
            },
        }

    def get_embedded(self, context: Context) -> bool:
        return context.space_id is not None


class MemoryContextAnswerSerializer(AnswerSerializer):
    """A context, with the user id."""

    context = MemoryContextSerializer()  # type: ignore[assignment]  # DRF's metaclass takes it out


class MemoryScoresSerializer(ResultSerializer):
    """Scores of a context: all from 0 to 1, higher is better."""

    result = Ranked
    skip = frozenset({"id"})


class MemoryHitSerializer(ResultSerializer):
    """A relevant context with its scores."""

    result = MemoryHit

    context = MemoryContextSerializer()  # type: ignore[assignment]  # DRF's metaclass takes it out
    scores = MemoryScoresSerializer(source="ranked")


class MemorySearchAnswerSerializer(AnswerSerializer, ResultSerializer):
    """Relevant contexts, the best first."""

    result = MemoryResult

    query = serializers.CharField()
    mode = serializers.ChoiceField(choices=MODES)


class MemoryArchivedSerializer(AnswerSerializer):
    """The archived context, and whether it is new."""

    context = MemoryContextSerializer(  # type: ignore[assignment]
        allow_null=True, help_text="Null if nothing was stored."
    )
    is_new = serializers.BooleanField(help_text="False if it was only repeated.")


class MemoryRemovedSerializer(AnswerSerializer):
    """Number of deleted rows, with the user id."""

    removed = serializers.IntegerField()


class MemoryFactSerializer(ReadOnlyModelSerializer[Fact]):
    """A fact that holds, or held."""

    is_current = serializers.SerializerMethodField(help_text="Whether it still holds.")
    state = serializers.ChoiceField(
        choices=Fact.State.choices,
        read_only=True,
        help_text="`superseded` if another value replaced it, `ended` if none did.",
    )

    class Meta:
        model = Fact
        fields = ["key", "value", "valid_from", "valid_to", "confirmed_at", "is_current", "state"]
        fields += ["origin", "source"]
        extra_kwargs = {
            "key": {"help_text": "In snake_case."},
            "valid_to": {"help_text": "Null while it holds."},
            "source": {"help_text": "Id of the context that it was learnt from."},
        }

    def get_is_current(self, fact: Fact) -> bool:
        return fact.valid_to is None


class MemoryFactAnswerSerializer(AnswerSerializer):
    """A fact, with the user id."""

    fact = MemoryFactSerializer()


class MemoryFactChangeSerializer(AnswerSerializer):
    """The fact after a change, and the one it superseded."""

    fact = MemoryFactSerializer(allow_null=True, help_text="Null if nothing was stored.")
    changed = serializers.BooleanField(help_text="False if it was known already.")
    superseded = MemoryFactSerializer(allow_null=True, help_text="The value that it replaced.")


class MemoryFactClearedSerializer(AnswerSerializer):
    """Whether a current fact was ended."""

    cleared = serializers.BooleanField(help_text="False if there was none.")


class MemoryErasedSerializer(AnswerSerializer, ResultSerializer):
    """Number of deleted rows of each kind."""

    result = ErasureResult


class MemoryPruningSerializer(ReadOnlyModelSerializer[Pruning]):
    """The oldest contexts, deleted because a quota was exceeded."""

    class Meta:
        model = Pruning
        fields = ["created_at", "reason", "rows", "bytes", "until"]


class MemoryUsageSerializer(AnswerSerializer, ResultSerializer):
    """How much is kept, and the limits; null is no limit."""

    result = Usage

    prunings = MemoryPruningSerializer(many=True, help_text="What was removed, the latest ten.")


class MemoryInjectedFactSerializer(serializers.Serializer[Any]):
    """A fact that was put before the chat model."""

    key = serializers.CharField()
    value = serializers.CharField()


class MemoryInjectedTurnSerializer(serializers.Serializer[Any]):
    """A context that was put before the chat model, shortened where it is long."""

    said_on = serializers.DateField(help_text="The day, in the site's time zone.")
    user_message = serializers.CharField(source="question")
    assistant_response = serializers.CharField(source="answer")


class MemoryInjectedSerializer(AnswerSerializer, ResultSerializer):
    """Messages for a chat model, and what was added to them, the most relevant first."""

    result = InjectionResult

    messages = serializers.ListField(child=MessageField())
    facts = MemoryInjectedFactSerializer(many=True)
    context = MemoryInjectedTurnSerializer(many=True)  # type: ignore[assignment]


class MemoryConversationSerializer(ReadOnlyModelSerializer[ExtractionItem]):
    """A conversation and the progress of its extraction."""

    conversation = serializers.CharField(source="key", help_text="Your name for it.")
    waiting = serializers.IntegerField(help_text="Messages of the user that wait to be read.")

    class Meta:
        model = ExtractionItem
        fields = ["id", "conversation", "state", "seen", "waiting", "attempts", "error", "due_at"]
        fields += ["last_message_at", "extracted_at", "extractor", "facts", "contexts"]
        extra_kwargs = {
            "attempts": {"help_text": "To read what waits."},
            "error": {"help_text": "Why the last attempt failed, or empty."},
            "due_at": {"help_text": "When it is read next; null where nothing is due."},
            "extracted_at": {"help_text": "When it was read last."},
        }


class MemoryConversationAnswerSerializer(AnswerSerializer):
    """A conversation, with the user id."""

    conversation = MemoryConversationSerializer()


class MemoryRecordedSerializer(AnswerSerializer):
    """How many messages were new, and the state of the conversation."""

    conversation = MemoryConversationSerializer(
        allow_null=True, help_text="Null if the user said nothing, or nothing is stored."
    )
    new = serializers.IntegerField(help_text="How many were not known before.")

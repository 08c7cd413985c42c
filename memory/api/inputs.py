"""What requests about memory may say."""

from typing import Self

from django.http import QueryDict
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from accounts.api import WorkspaceParameters
from common.serializers import PageParameters, StrictSerializer, TextField
from memory.api.fields import UserIdField
from memory.api.messages import MessageField, SaidField
from memory.models import ExtractionItem
from memory.retrieval.finding import MODES
from memory.services.injecting import MAX_CONTEXT, MAX_FACTS
from memory.services.searching import MAX_QUERY_CHARACTERS, MAX_RESULTS
from memory.texts import MAX_TEXT_BYTES

#: A key of 200 letters, each of which takes nine characters in an address and twelve in base 64.
MAX_FACT_CURSOR = 4000
#: More than any model reads.
MAX_INJECTED_TOKENS = 100_000
#: More than the values of a body are enough for: what is no message is not told ten thousand times.
MAX_MESSAGES = 10_000


class MemoryParameters(WorkspaceParameters):
    """Whose memory a request works on: in every address, never in a body."""

    user_id = UserIdField()

    @classmethod
    def from_query(cls, query: QueryDict) -> Self:
        """An empty user id counts as given, or what is nobody's would be kept as the caller's own;
        two are one too many."""
        asked = super().from_query(query)
        if given := query.getlist("user_id"):
            asked.initial_data["user_id"] = given[0] if len(given) == 1 else given
        return asked


def _as_of() -> serializers.DateTimeField:
    return serializers.DateTimeField(
        required=False, help_text="What was held true then. Default: what is now."
    )


class ContextFilter(PageParameters, MemoryParameters):
    """Which contexts."""

    conversation = serializers.CharField(
        required=False, max_length=255, trim_whitespace=False, help_text="Your name for it."
    )


class FactFilter(PageParameters, MemoryParameters):
    """Which facts."""

    cursor = serializers.CharField(
        required=False,
        max_length=MAX_FACT_CURSOR,
        help_text="Where the page begins: taken from `next` or `previous` of another page.",
    )
    as_of = _as_of()


class FactReading(MemoryParameters):
    """When."""

    as_of = _as_of()


class HistoryFilter(PageParameters, MemoryParameters):
    """Which page of a fact's history."""


class Erasure(MemoryParameters):
    """What is asked before everything goes."""

    confirm = serializers.CharField(
        required=False,
        trim_whitespace=False,
        help_text="The user id again; of your own memory it is the one that `usage/` tells.",
    )


class ConversationFilter(PageParameters, MemoryParameters):
    """Which conversations."""

    state = serializers.ChoiceField(
        choices=ExtractionItem.State.choices, required=False, help_text="How far it is."
    )


def _threshold() -> serializers.FloatField:
    return serializers.FloatField(
        required=False,
        min_value=0,
        max_value=1,
        help_text="Least relevance, which means the same for every question. Default: the site's.",
    )


@extend_schema_serializer(component_name="MemorySearch")
class SearchInput(StrictSerializer):
    """A question to a user's memory."""

    query = TextField(max_length=MAX_QUERY_CHARACTERS, help_text="Words or a question.")
    max_results = serializers.IntegerField(
        min_value=1, max_value=MAX_RESULTS, default=5, help_text="Hits, at most."
    )
    threshold = _threshold()
    recency = serializers.FloatField(
        required=False,
        min_value=0,
        max_value=1,
        help_text="How much it counts for the order how fresh a context is: 0 nothing, 1 fully."
        " Default: the site's.",
    )
    mode = serializers.ChoiceField(
        choices=MODES,
        default="hybrid",
        help_text="`lexical` finds by words, `vector` by meaning, `hybrid` by both.",
    )


class SearchParameters(SearchInput, MemoryParameters):
    """The query string of a search."""


def _text(meaning: str, **options: bool) -> TextField:
    return TextField(help_text=f"{meaning} At most {MAX_TEXT_BYTES:,} bytes.", **options)


@extend_schema_serializer(component_name="MemoryTurn")
class TurnInput(StrictSerializer):
    """A turn of a conversation."""

    user_message = _text("What the user said.", allow_blank=True)
    assistant_response = _text("What was answered.", required=False, allow_blank=True)
    conversation = TextField(
        required=False, allow_blank=True, max_length=255, help_text="Your name for where."
    )
    at = serializers.DateTimeField(required=False, help_text="When it was said. Default: now.")


@extend_schema_serializer(component_name="MemoryQuestion")
class QuestionInput(StrictSerializer):
    """A question that was once asked."""

    question = _text("What the user said, to the letter.")


@extend_schema_serializer(component_name="MemoryFactValue")
class FactInput(StrictSerializer):
    """What is true of the user."""

    value = _text("In words.")
    at = serializers.DateTimeField(
        required=False,
        help_text="Since when. Default, and at the latest: now. Before what is known now it goes"
        " into the history.",
    )


@extend_schema_serializer(component_name="MemoryInjection")
class InjectionInput(StrictSerializer):
    """What goes to a chat model."""

    messages = serializers.ListField(
        child=MessageField(),
        min_length=1,
        max_length=MAX_MESSAGES,
        help_text="The conversation; its last question counts.",
    )
    max_context = serializers.IntegerField(
        default=3,
        min_value=0,
        max_value=MAX_CONTEXT,
        help_text="Contexts, at most: the best, as far as they reach the threshold.",
    )
    max_facts = serializers.IntegerField(
        default=10, min_value=0, max_value=MAX_FACTS, help_text="Facts, at most."
    )
    threshold = _threshold()
    max_tokens = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_INJECTED_TOKENS,
        help_text="Of all that is added, roughly counted. Default: the site's.",
    )


@extend_schema_serializer(component_name="MemoryConversationInput")
class ConversationInput(StrictSerializer):
    """A conversation from its beginning."""

    conversation = TextField(max_length=255, help_text="Your name for it: the same each time.")
    messages = serializers.ListField(
        child=SaidField(),
        min_length=1,
        max_length=MAX_MESSAGES,
        help_text="All of them: those of the user are read.",
    )
    at = serializers.DateTimeField(
        required=False, help_text="When new messages without a time were said. Default: now."
    )

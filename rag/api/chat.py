"""Chat over HTTP. `POST /api/v1/chat/`: a question in, an answer out, as events while it is made or
as one object (`ChatView`). And the conversations that it adds to: a user's own, and nobody else's.
"""

from collections.abc import Sequence
from typing import Any, get_args

from django.http.response import HttpResponseBase
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.api import ListParameters, ResourceViewSet, WorkspaceView, operation
from accounts.api_keys import KeyLimited
from common.api import StreamNegotiation
from common.options.drf import OptionsSerializer
from common.serializers import ReadOnlyModelSerializer, SlugsField, StrictSerializer, TextField
from rag.answer_stream import answer_response
from rag.context import context_of_view
from rag.events import (
    Citation,
    Confidence,
    Done,
    Event,
    Metadata,
    Retrieval,
    Tables,
    answer_text,
    reasoning_text,
)
from rag.models import Conversation, Message
from rag.pipelines.definition import MAX_PROMPT_CHARACTERS
from rag.services import conversations
from rag.services.chat import SEARCH_OPTIONS, chat
from rag.services.conversations import parse_history
from rag.services.questions import MAX_QUESTION_CHARACTERS, Question
from search.api.inputs import FilterField
from search.query_options import RetrievalOptions
from search.results import MODES
from tables.api.serializers import ValueField
from tables.plan_tokens import MAX_TOKEN_CHARACTERS

MAX_TURNS = 200
MAX_TURN_CHARACTERS = 100_000
#: More than any model generates at once.
MAX_ANSWER_TOKENS = 200_000
#: A field that may be left out, or null.
OPTIONAL: dict[str, Any] = {"required": False, "allow_null": True}
#: Options of an answer from passages; the nodes of a pipeline set them themselves.
PASSAGE_ANSWER_FIELDS = (
    *("mode", "temperature", "top_p", "max_tokens", "memory", "whole", "reading"),
)


class ChatTurnSerializer(StrictSerializer):
    """An earlier message of the conversation."""

    role = serializers.ChoiceField(choices=["user", "assistant"])
    content = TextField(max_length=MAX_TURN_CHARACTERS)


class AnswerInput(StrictSerializer):
    """Where to search for an answer, and who writes it."""

    collections = SlugsField(
        required=False,
        help_text="Slugs of collections. Default: those of the conversation, if there is one, or"
        " all that you may see.",
    )
    filter = FilterField(
        required=False, help_text="What passages must be like, in the language of searches."
    )
    history = serializers.ListField(
        child=ChatTurnSerializer(),
        required=False,
        max_length=MAX_TURNS,
        help_text="Earlier messages, oldest first, if your program keeps the history itself;"
        " no conversation is stored then. The last 20 are read.",
    )
    model = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="A chat model of `GET /models/`; `extractive` quotes sentences. Default: the"
        " site's. In a pipeline it is for nodes that name none.",
    )
    system_prompt = TextField(
        required=False,
        max_length=MAX_PROMPT_CHARACTERS,
        help_text="Your instructions for the answer, after the site's own rules and the prompts of"
        " a pipeline.",
    )
    language = TextField(
        required=False,
        max_length=40,
        help_text="Language of the answer, such as `German` or `de`, or of code `Python`. Default:"
        " that of the question.",
    )
    stream = serializers.BooleanField(
        default=True, help_text="Events as they come; false: one JSON object at the end."
    )


class ChatSerializer(OptionsSerializer, AnswerInput):
    """A question, where to search for its answer, and what answers it."""

    options = RetrievalOptions

    message = TextField(max_length=MAX_QUESTION_CHARACTERS, help_text="The question.")
    conversation = serializers.IntegerField(
        **OPTIONAL,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The conversation to continue. Default: a new one, whose id is in"
        " `metadata`. Null: nothing is stored.",
    )
    replaces = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The last answer of the conversation, which this one replaces.",
    )
    pipeline = serializers.SlugField(
        **OPTIONAL, max_length=63, help_text="The pipeline or template that answers. Default: none."
    )
    pipeline_id = serializers.SlugField(
        required=False, allow_null=True, max_length=63, help_text="The same as `pipeline`."
    )
    reading = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_TOKEN_CHARACTERS,
        help_text="One of the `readings` of an earlier answer: exactly this is computed.",
    )
    memory = serializers.BooleanField(
        **OPTIONAL,
        default=None,
        help_text="Use your memory for the answer, and remember the question. Default: the"
        " site's setting.",
    )
    whole = serializers.BooleanField(
        **OPTIONAL,
        default=None,
        help_text="Send the complete collections to the chat model instead of the passages"
        " found: for few documents. Default: if they have no more tokens than the"
        " site's setting.",
    )
    mode = serializers.ChoiceField(
        choices=MODES, default="hybrid", help_text="How passages are found, as in searches."
    )
    temperature = serializers.FloatField(
        **OPTIONAL, min_value=0, max_value=2, help_text="How freely the model chooses its words."
    )
    top_p = serializers.FloatField(
        **OPTIONAL,
        min_value=0,
        max_value=1,
        help_text="From how much of the likely words it chooses.",
    )
    max_tokens = serializers.IntegerField(
        **OPTIONAL,
        min_value=1,
        max_value=MAX_ANSWER_TOKENS,
        help_text="Tokens of the answer, at most.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Reject fields that contradict each other."""
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
            given = [
                name for name in PASSAGE_ANSWER_FIELDS if self.initial_data.get(name) is not None
            ]
            if given:
                detail = (
                    "The nodes of a pipeline say this for themselves. Leave it out, or change them."
                )
                raise serializers.ValidationError(dict.fromkeys(given, detail))
        return attrs


def build_question(data: dict[str, Any]) -> Question:
    """The question in a validated request."""
    return Question(
        message=data["message"],
        history=parse_history(data.get("history", ())),
        pipeline=data["pipeline"],
        reading=data.get("reading", ""),
        model=data.get("model", ""),
        memory=data["memory"],
        whole=data["whole"],
        mode=data["mode"],
        search_options={name: data[name] for name in SEARCH_OPTIONS if name in data},
        model_options={name: data.get(name) for name in ("temperature", "top_p", "max_tokens")},
        instructions=data.get("system_prompt", ""),
        language=data.get("language", ""),
    )


class PassageLocationSerializer(serializers.Serializer[Any]):
    """The location of a passage in its document."""

    number = serializers.IntegerField(help_text="By which the answer cites it: `[1]`.")
    chunk = serializers.IntegerField()
    document = serializers.IntegerField()
    document_key = serializers.CharField()
    version = serializers.IntegerField()
    collection = serializers.CharField(help_text="Its slug.")
    title = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    page = serializers.IntegerField(
        allow_null=True, help_text="Or its second in a recording, or its row in a table."
    )
    location = serializers.CharField(
        help_text="For people: `page 3`, `12:34` of a recording, `Prices!A12`, `row 7` or nothing."
    )
    start = serializers.IntegerField(help_text="Offset in the document's text.")
    end = serializers.IntegerField()
    url = serializers.CharField(help_text="Page of the document with the passage marked.")


class ChatPassageSerializer(PassageLocationSerializer):
    """A passage that was found, with the scores of a search."""

    text = serializers.CharField()
    similarity = serializers.FloatField(allow_null=True)
    lexical = serializers.FloatField(allow_null=True)
    fused = serializers.FloatField(allow_null=True)
    rerank = serializers.FloatField(allow_null=True)


class ChatCitationSerializer(PassageLocationSerializer):
    """A passage that the answer cites: `start` and `end` are those of `quote`."""

    quote = serializers.CharField(help_text="Text of the document at these offsets.")
    at = serializers.IntegerField(help_text="Offset in the answer of the `[number]`.")


class ChatUnsupportedSerializer(serializers.Serializer[Any]):
    """A sentence of the answer that no source supports."""

    start = serializers.IntegerField(help_text="Offset in the answer.")
    end = serializers.IntegerField()
    text = serializers.CharField()


CONFIDENCES = get_args(Confidence)
CONFIDENCE_HELP = (
    "How sure it is that the documents answer: `high`, `low` (quoted passages come closest, and the"
    " text says so), `none` (refused)."
)


class ChatSearchedSerializer(serializers.Serializer[Any]):
    """What was searched before a refusal."""

    collections = serializers.ListField(child=serializers.CharField(), help_text="Slugs.")
    documents = serializers.IntegerField(help_text="Documents in these collections.")
    filtered = serializers.BooleanField(help_text="A filter narrowed the search.")


class ChatVerdictSerializer(serializers.Serializer[Any]):
    """Result of checking the answer."""

    confidence = serializers.ChoiceField(choices=CONFIDENCES, help_text=CONFIDENCE_HELP)
    refused = serializers.BooleanField(help_text="The sources have no answer: confidence `none`.")
    unsupported = ChatUnsupportedSerializer(many=True)
    dropped_citations = serializers.IntegerField(
        help_text="Citations of passages that do not exist, removed from the text."
    )
    searched = ChatSearchedSerializer(
        allow_null=True, help_text="Where the site refused: what it searched."
    )


class ChatUsageSerializer(serializers.Serializer[Any]):
    """Token counts of the model's server; 0 if it does not count."""

    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()


class ChatGroupSerializer(serializers.Serializer[Any]):
    """A group of rows, or one of two things compared."""

    name = serializers.CharField()
    value = ValueField(allow_null=True, help_text="What was computed of its rows.")
    worded = serializers.CharField(help_text="The same for people, with its unit.")
    count = serializers.IntegerField(help_text="Its rows.")


class ChatRowSerializer(serializers.Serializer[Any]):
    """A row that the answer was computed from."""

    number = serializers.IntegerField(help_text="By which the answer cites its passage: `[1]`.")
    cells = serializers.ListField(child=serializers.CharField())
    document = serializers.IntegerField()
    title = serializers.CharField()
    location = serializers.CharField(help_text="`Prices!A12`, `row 7`, `page 3` or nothing.")
    url = serializers.CharField(help_text="Page of the document with the row marked.")


class ChatComputedSerializer(serializers.Serializer[Any]):
    """An answer that was computed from tables."""

    value = ValueField(allow_null=True, help_text="Null where there are groups only.")
    unit = serializers.CharField(help_text="A currency, `%` or unit of measure; empty: none.")
    worded = serializers.CharField(help_text="The value for people; empty where groups only.")
    measure = serializers.CharField(help_text="What was computed: `Sum of Amount`.")
    explanation = serializers.CharField(help_text="Which rows it was computed from.")
    count = serializers.IntegerField(help_text="How many these are.")
    group_head = serializers.CharField(help_text="The column of the groups.")
    period = serializers.ChoiceField(
        choices=["day", "week", "month", "quarter", "year"],
        allow_null=True,
        help_text="Of groups by time.",
    )
    groups = ChatGroupSerializer(many=True)
    more_groups = serializers.IntegerField(help_text="Groups that are not listed.")
    columns = serializers.ListField(child=serializers.CharField())
    rows = ChatRowSerializer(many=True, help_text="The first of the rows.")
    reading = serializers.CharField(
        help_text="For `GET /tables/result/rows/`, `…/csv/` and `…/xlsx/`. Empty: by SQL."
    )
    is_chosen = serializers.BooleanField(help_text="Asked by a `reading`.")
    sql = serializers.CharField(help_text="What a chat model wrote to compute it. Empty: none.")
    result_columns = serializers.ListField(
        child=serializers.CharField(), help_text="What the SQL selects."
    )
    result_rows = serializers.ListField(
        child=serializers.ListField(), help_text="The first 100 rows that it gave."
    )


class ReadingSerializer(serializers.Serializer[Any]):
    """One way to read a question to tables."""

    text = serializers.CharField(help_text="What would be computed.")
    reading = serializers.CharField(help_text="To send back, so that exactly this is computed.")


class ChatTablesSerializer(serializers.Serializer[Any]):
    """What the tables in documents have to do with the question."""

    computed = ChatComputedSerializer(allow_null=True)
    readings = ReadingSerializer(
        many=True, help_text="At most two, where it is not sure what is asked."
    )
    unknown = serializers.ListField(
        child=serializers.CharField(), help_text="Words that were not understood."
    )
    text = serializers.CharField(help_text="The readings as a sentence.")


class ChatAnswerSerializer(serializers.Serializer[Any]):
    """An answer with its sources."""

    answer = serializers.CharField()
    reasoning = serializers.CharField(
        help_text="What a reasoning model thought before it answered: no part of the answer."
    )
    confidence = serializers.ChoiceField(choices=CONFIDENCES, help_text=CONFIDENCE_HELP)
    citations = ChatCitationSerializer(many=True)
    passages = ChatPassageSerializer(many=True)
    verdict = ChatVerdictSerializer()
    model = serializers.CharField(help_text="`extractive` where sentences were quoted.")
    generator = serializers.ChoiceField(
        choices=["extractive", "computed", "model", "pipeline"],
        help_text="`computed`: from tables, by no model.",
    )
    pipeline = serializers.CharField(allow_null=True)
    tables = ChatTablesSerializer(
        allow_null=True, help_text="Null: the tables have nothing to do with the question."
    )
    queries = serializers.ListField(
        child=serializers.CharField(),
        help_text="The search query: the question, or its rewritten form.",
    )
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="Parts of the search that did not work.",
    )
    missing = serializers.ListField(
        child=serializers.CharField(),
        help_text="Names and numbers of the question that nothing found mentions.",
    )
    memory = serializers.DictField(
        allow_null=True, help_text="The memory that was used; null if none was requested."
    )
    finish_reason = serializers.ChoiceField(choices=["stop", "length", "refused", "tool_calls"])
    usage = ChatUsageSerializer()
    elapsed_ms = serializers.FloatField()
    first_token_ms = serializers.FloatField(allow_null=True)
    conversation = serializers.IntegerField(allow_null=True, help_text="Null: it is not stored.")
    message = serializers.IntegerField(allow_null=True, help_text="The answer's id in it.")
    trace = serializers.IntegerField(allow_null=True, help_text="Of a pipeline's run.")


def answer_object(events: Sequence[Event]) -> dict[str, Any]:
    """The events of a complete answer as one object."""
    (begun,) = (event.data() for event in events if isinstance(event, Metadata))
    (ended,) = (event.data() for event in events if isinstance(event, Done))
    searches = [event for event in events if isinstance(event, Retrieval)]
    passages = {each["number"]: each for search in searches for each in search.data()["passages"]}
    return {
        "answer": answer_text(events),
        "reasoning": reasoning_text(events),
        "confidence": ended["verdict"]["confidence"],
        "citations": [event.data() for event in events if isinstance(event, Citation)],
        "passages": [passages[number] for number in sorted(passages)],
        "queries": [search.query for search in searches],
        "degraded": sorted({name for search in searches for name in search.degraded}),
        "missing": list(dict.fromkeys(name for search in searches for name in search.missing)),
        "tables": next((event.data() for event in events if isinstance(event, Tables)), None),
        "usage": {name: ended[name] for name in ("input_tokens", "output_tokens")},
        **{name: begun[name] for name in ("model", "generator", "pipeline", "memory")},
        **{name: begun[name] for name in ("conversation", "message")},
        **{name: ended[name] for name in ("verdict", "finish_reason", "trace")},
        **{name: ended[name] for name in ("elapsed_ms", "first_token_ms")},
    }


class ChatView(WorkspaceView):
    """`POST /api/v1/chat/`: answers one question, streamed or whole."""

    for_limited_keys = True
    required_scope = "chat"
    asks_model = True
    content_negotiation_class = StreamNegotiation

    @operation(
        takes=ChatSerializer,
        gives={
            (200, "text/event-stream"): str,
            (200, "application/json"): ChatAnswerSerializer,
        },
        errors=(502,),
        operation_id="chat",
    )
    def post(self, **data: Any) -> HttpResponseBase:
        """Ask, and get an answer that cites its sources.

        Server-sent events: `metadata`, `retrieval`, `tables` (what was computed, or readings),
        `node` (of pipelines), `reasoning` (of models that show it), `token`, `citation`, and last
        `done` or `error`. What fails before the first event has a status of its own. There is no
        resuming: closing the connection stops the work, and what was said so far stays in the
        conversation. 503 where too many answers are being made.
        """
        context = context_of_view(
            self, collections=data.get("collections", ()), filter=data.get("filter")
        )
        is_limited = context.key_collections is not None
        if is_limited and data.get("conversation") is not None:
            raise KeyLimited  # it may quote other collections
        events = chat(
            build_question(data),
            context=context,
            conversation=data.get("conversation"),
            replaces=data.get("replaces"),
            keep="history" not in data
            and data.get("conversation", 0) is not None
            and not is_limited,
        )
        return answer_response(
            events,
            request=self.request,
            cancelled=context.cancelled,
            streams=data["stream"],
            make_body=lambda all_events: ChatAnswerSerializer(answer_object(all_events)).data,
        )


class ConversationSerializer(ReadOnlyModelSerializer[Conversation]):
    """A conversation without its messages."""

    class Meta:
        model = Conversation
        fields = ["id", "title", "collections", "pipeline", "created_at", "updated_at"]
        extra_kwargs = {"updated_at": {"help_text": "When something was said last."}}


class ConversationMessageSerializer(serializers.Serializer[Any]):
    """A question, or an answer with its sources, in the format of the events of a chat."""

    id = serializers.IntegerField(source="message.pk")
    role = serializers.ChoiceField(choices=Message.Role.choices, source="message.role")
    state = serializers.ChoiceField(
        choices=Message.State.choices,
        source="message.state",
        help_text="`removed`: a document that it quoted was deleted, and its text with it.",
    )
    content = serializers.CharField()
    reasoning = serializers.CharField(help_text="What the model thought before it answered.")
    created_at = serializers.DateTimeField(source="message.created_at")
    model = serializers.CharField(source="message.model")
    generator = serializers.CharField(source="message.generator")
    pipeline = serializers.CharField(source="message.pipeline")
    passages = serializers.ListField(child=serializers.DictField())
    citations = serializers.ListField(child=serializers.DictField())
    verdict = serializers.DictField(source="message.verdict")
    tables = ChatTablesSerializer(allow_null=True)
    memory = serializers.DictField(source="message.memory", allow_null=True)
    degraded = serializers.ListField(child=serializers.CharField(), source="message.degraded")
    finish_reason = serializers.CharField(source="message.finish_reason")
    error_code = serializers.CharField(source="message.error_code")
    error = serializers.CharField(source="message.error")
    input_tokens = serializers.IntegerField(source="message.input_tokens")
    output_tokens = serializers.IntegerField(source="message.output_tokens")
    elapsed_ms = serializers.FloatField(source="message.elapsed_ms", allow_null=True)
    trace = serializers.IntegerField(source="message.trace_id", allow_null=True)
    is_withheld = serializers.BooleanField(
        help_text="It contains text of a document that you may no longer read, and is empty here."
    )


class ConversationInput(StrictSerializer):
    """The fields that can be changed."""

    title = serializers.CharField(max_length=200)


class ConversationViewSet(ResourceViewSet):
    """Conversations. `POST /api/v1/chat/` begins and continues them."""

    tag = "chat"
    nouns = ("conversation", "conversations")
    queryset = Conversation.objects.all()
    serializer_class = ConversationSerializer
    ordering = ("-updated_at", "-id")
    required_scope = "chat"
    action_parameters = dict.fromkeys(("list", "messages"), ListParameters)

    @action(detail=True, ordering="id")
    @operation(gives=ConversationMessageSerializer, many=True)
    def messages(self, conversation: Conversation) -> Response:
        """List a conversation's messages in their order.

        Passages have the text that their document has now.
        """
        rows = self.paginate_queryset(conversation.messages.all())
        visible = conversations.visible_messages(rows=rows or [], context=context_of_view(self))
        return self.get_paginated_response(ConversationMessageSerializer(visible, many=True).data)

    @operation(takes=ConversationInput)
    def partial_update(self, conversation: Conversation, *, title: str | None = None) -> None:
        """Rename a conversation."""
        if title is not None:
            conversations.rename_conversation(conversation=conversation, title=title)

    @operation()
    def destroy(self, conversation: Conversation) -> None:
        """Delete a conversation with the runs that answered it."""
        conversations.delete_conversation(conversation=conversation)

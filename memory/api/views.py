"""Views of the memory API. Begin with `MemoryView`, which finds whose memory a request works on."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

from django.db.models import Func, IntegerField, QuerySet
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView, WorkspaceViewSet, operation
from common.api import StreamNegotiation
from common.errors import Conflict, InvalidInput, NotFound
from common.openapi import Operation
from common.serializers import CursorPagination
from memory import services
from memory.api import serializers
from memory.fact_keys import fact_key
from memory.models import Context, ExtractionItem, Fact, FactQuerySet
from memory.options import MemoryQuery
from memory.scopes import UserScope, scope_of
from memory.services.memories import record_messages, retry_extractions
from memory.services.search import inject


def _fields_of(result: Any) -> dict[str, Any]:
    """The fields of a dataclass, whose values `asdict` would copy."""
    return {each.name: getattr(result, each.name) for each in fields(result)}


class MemoryPagination(CursorPagination):
    """Pages of one user's rows, with the user id."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        self.user_id = view.user_id
        return super().paginate_queryset(queryset, request, view)

    def get_paginated_response(self, data: Any) -> Response:
        page = super().get_paginated_response(data)
        return Response({"user_id": self.user_id, **page.data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described = super().get_paginated_response_schema(schema)
        user_id = {
            "type": "string",
            "nullable": True,
            "description": serializers.USER_ID_HELP,
        }
        described["properties"] = {"user_id": user_id, **described["properties"]}
        described["required"] = ["user_id", *described["required"]]
        return described


class MemoryView(WorkspaceView):
    """A view that works on the memory of one user."""

    parameters_class = serializers.MemoryParameters
    required_scope = "memory"

    @cached_property
    def scope(self) -> UserScope | None:
        """The user's scope; None where nothing is kept. Raises Forbidden and InvalidInput."""
        return scope_of(
            user=self.request.user,
            workspace=self.workspace,
            user_id=self.parameters.get("user_id"),
        )

    @property
    def user_id(self) -> str | None:
        """The user id of the scope, or None."""
        return self.scope.user_id if self.scope else None

    def respond(self, result: Any, made: Operation) -> HttpResponseBase:
        """The response with the fields of `result`, a mapping or a dataclass, and the user id."""
        if not (made.many or result is None or isinstance(result, HttpResponseBase)):
            found = result if isinstance(result, Mapping) else _fields_of(result)
            result = {"user_id": self.user_id, **found}
        return super().respond(result, made)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers["Cache-Control"] = "no-store"
        return answer


class MemoryViewSet(MemoryView, WorkspaceViewSet):
    """A viewset of rows of one user's memory."""

    queryset: Any = None
    pagination_class = MemoryPagination

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.queryset.of(self.scope)
        return rows


class SearchView(MemoryView):
    """Search for relevant contexts, best first."""

    action_parameters = {"get": serializers.SearchParameters}
    serializer_class = serializers.MemorySearchAnswerSerializer

    @operation(operation_id="memory_search")
    def get(self) -> dict[str, Any]:
        """Search a user's memory."""
        return self._found(self.parameters)

    @operation(takes=serializers.MemorySearchSerializer, operation_id="memory_search_post")
    def post(self, **given: Any) -> dict[str, Any]:
        """Search a user's memory with a JSON body.

        For questions that should not appear in a log of addresses.
        """
        return self._found(given)

    def _found(self, given: dict[str, Any]) -> dict[str, Any]:
        asked = {name: given[name] for name in MemoryQuery.model_fields if name in given}
        query = asked.pop("q")
        result = services.search_memory(scope=self.scope, query=query, **asked)
        return {**_fields_of(result), "query": query, "mode": asked["mode"]}


class ContextViewSet(MemoryViewSet):
    """Contexts of a user: turns of conversations."""

    queryset = Context.objects.defer("embedding", "search_vector")
    serializer_class = serializers.MemoryContextSerializer
    action_parameters = {"list": serializers.ContextFilter}
    ordering = ("-created_at", "-id")
    lookup_url_kwarg = "context_id"

    @operation(many=True, operation_id="memory_contexts")
    def list(self) -> QuerySet[Context]:
        """List a user's contexts, newest first."""
        rows = self.get_queryset()
        if (conversation := self.parameters.get("conversation")) is not None:
            rows = rows.filter(conversation=conversation)
        return rows

    @operation(
        takes=serializers.MemoryTurnSerializer,
        gives=dict.fromkeys((200, 201), serializers.MemoryArchivedSerializer),
        operation_id="memory_archive",
    )
    def create(self, **turn: Any) -> Response:
        """Archive a turn of a conversation.

        201 for a new turn. 200 for an existing turn, which only gets the later time, so requests
        can be repeated. Without a user id: 200 with nulls, and nothing is stored.
        """
        archived = services.archive_turn(scope=self.scope, **turn)
        row = self.get_queryset().filter(pk=archived.id).first() if archived else None
        is_new = archived is not None and archived.is_new
        shown = {"user_id": self.user_id, "context": row, "is_new": is_new}
        data = serializers.MemoryArchivedSerializer(shown).data
        return Response(data, status=201 if is_new else 200)

    @operation(gives=serializers.MemoryContextAnswerSerializer, operation_id="memory_context")
    def retrieve(self, context: Context) -> dict[str, Any]:
        """Read a context."""
        return {"context": context}

    @operation(operation_id="memory_context_forget")
    def destroy(self, context: Context) -> None:
        """Forget a context."""
        services.forget_contexts(scope=self.scope, ids=[context.pk])

    @action(detail=False, methods=["post"])
    @operation(
        takes=serializers.MemoryQuestionSerializer,
        gives=serializers.MemoryRemovedSerializer,
        operation_id="memory_clear",
    )
    def clear(self, *, question: str) -> dict[str, Any]:
        """Forget every context of a question.

        All whose user message is this one, whatever was answered.
        """
        return {"removed": services.clear_memory(scope=self.scope, question=question)}


FACT_KEY = OpenApiParameter(
    "key",
    str,
    OpenApiParameter.PATH,
    description="What the fact is about. Many ways to write it are one key: `favouriteColor` is"
    " `favourite_color`, and a slash stands for `_`.",
)


class FactViewSet(MemoryViewSet):
    """Facts of a user: the value of each key, and its former values."""

    queryset = Fact.objects.defer("embedding", "search_vector")
    serializer_class = serializers.MemoryFactSerializer
    action_parameters = {
        "list": serializers.FactFilter,
        "retrieve": serializers.FactReading,
        "history": serializers.HistoryFilter,
    }
    ordering = "key"

    def documented_parameters(self) -> Sequence[Any]:
        of_key = () if self.action == "list" else (FACT_KEY,)
        return [*super().documented_parameters(), *of_key]

    def locked_rows(self) -> QuerySet[Fact]:
        return Fact.objects.of(self.scope).filter(key=fact_key(self.kwargs["key"]))

    @operation(many=True, operation_id="memory_facts")
    def list(self) -> QuerySet[Fact]:
        """List a user's facts, by key."""
        rows: FactQuerySet[Fact] = self.queryset.of(self.scope)
        as_of = self.parameters.get("as_of")
        return rows.current() if as_of is None else rows.as_of(as_of)

    @operation(gives=serializers.MemoryFactAnswerSerializer, operation_id="memory_fact")
    def retrieve(self, *, key: str) -> dict[str, Any]:
        """Read a fact."""
        fact = services.get_fact(scope=self.scope, key=key, as_of=self.parameters.get("as_of"))
        if fact is None:
            raise NotFound(gettext("Fact not found: {key}").format(key=fact_key(key)))
        return {"fact": fact}

    @operation(
        takes=serializers.MemoryFactValueSerializer,
        gives=serializers.MemoryFactChangeSerializer,
        errors=(409,),
        operation_id="memory_fact_set",
    )
    def update(self, *, key: str, **values: Any) -> Any:
        """Set a fact.

        The previous value stays in the history. The same value changes nothing, so requests can be
        repeated. Without a user id: nulls, and nothing is stored. 409 when the user's quota of
        facts is used up.
        """
        change = services.set_fact(scope=self.scope, key=key, **values)
        return change or {"fact": None, "changed": False, "superseded": None}

    @operation(gives=serializers.MemoryRemovedSerializer, operation_id="memory_fact_forget")
    def destroy(self, *, key: str) -> dict[str, Any]:
        """Forget a fact with its history."""
        return {"removed": services.forget_fact(scope=self.scope, key=key)}

    @operation(gives=serializers.MemoryFactClearedSerializer, operation_id="memory_fact_clear")
    def clear(self, *, key: str) -> dict[str, Any]:
        """End a fact.

        It is no longer true. Its value stays in the history.
        """
        return {"cleared": services.clear_fact(scope=self.scope, key=key)}

    @operation(many=True, operation_id="memory_fact_history")
    def history(self, *, key: str) -> QuerySet[Fact]:
        """List the values of a fact, latest first.

        All values that a fact ever had.
        """
        return self.get_queryset().filter(key=fact_key(key))


class ConversationViewSet(MemoryViewSet):
    """The extraction queue: list conversations, enqueue messages."""

    #: With the number of waiting messages instead of their texts.
    queryset = ExtractionItem.objects.defer("messages", "taken").annotate(
        waiting=Func("messages", function="jsonb_array_length", output_field=IntegerField())
    )
    serializer_class = serializers.MemoryConversationSerializer
    action_parameters = {"list": serializers.ConversationFilter}
    ordering = ("-last_message_at", "-id")
    lookup_url_kwarg = "conversation_id"

    @operation(many=True, operation_id="memory_conversations")
    def list(self) -> QuerySet[ExtractionItem]:
        """List the conversations that facts are learned from, newest first."""
        rows = self.get_queryset()
        if state := self.parameters.get("state"):
            rows = rows.filter(state=state)
        return rows

    @operation(
        takes=serializers.MemoryConversationInputSerializer,
        gives=serializers.MemoryRecordedSerializer,
        operation_id="memory_learn",
    )
    def create(self, **conversation: Any) -> dict[str, Any]:
        """Learn facts from a conversation.

        It is queued, and read after a pause in the conversation. Send the whole conversation each
        time: known messages are not processed again, so requests can be repeated. Only the user's
        messages are stored, and only until they have been read. 429 if too much is waiting.
        """
        recorded = record_messages(scope=self.scope, **conversation)
        if recorded is None:
            return {"conversation": None, "new": 0}
        rows = self.get_queryset().filter(pk=recorded.item_id)
        return {"conversation": rows.first(), "new": recorded.new}

    @action(detail=True, methods=["post"])
    @operation(
        gives=serializers.MemoryConversationAnswerSerializer,
        errors=(409,),
        operation_id="memory_conversation_retry",
    )
    def retry(self, conversation: ExtractionItem) -> dict[str, Any]:
        """Retry a failed conversation.

        All attempts are available again. 409 if it has not failed.
        """
        if not retry_extractions(item_ids=[conversation.pk]):
            raise Conflict(
                gettext("This conversation has not failed for good. The workers retry it.")
            )
        return {"conversation": self.reloaded(conversation)}


class InjectView(MemoryView):
    """Messages for a chat model, with relevant memory added to the last question."""

    @operation(
        takes=serializers.MemoryInjectionSerializer,
        gives=serializers.MemoryInjectedSerializer,
        operation_id="memory_inject",
    )
    def post(self, **given: Any) -> dict[str, Any]:
        """Add memory to a chat model's messages.

        Only the last user message changes: relevant memory is added after a blank line, fenced as
        data. All others come back as they were sent, and so does this one if nothing is relevant.
        `facts` and `context` are the same as lists.
        """
        done = inject(scope=self.scope, enabled=True, **given)
        facts = [{"key": key, "value": value} for key, value in done.facts]
        return {**_fields_of(done), "facts": facts}


JSON_LINES = "application/x-ndjson"


class EraseView(MemoryView):
    """Erase everything of a user."""

    action_parameters = {"delete": serializers.Erasure}

    @operation(gives=serializers.MemoryErasedSerializer, operation_id="memory_erase")
    def delete(self) -> Any:
        """Erase a user's whole memory.

        Contexts, facts with their history, waiting conversations, and their entries in logs:
        afterwards no table contains any of it. To prevent accidents, `confirm` must repeat the user
        id.
        """
        if self.user_id not in (None, self.parameters.get("confirm")):
            raise InvalidInput(
                gettext(
                    "This erases the whole memory of “{user_id}”. Repeat that id in `confirm` to"
                    " confirm."
                ).format(user_id=self.user_id),
                field="confirm",
            )
        return services.erase_memory(scope=self.scope)


class UsageView(MemoryView):
    """Usage and quotas of a user."""

    @operation(gives=serializers.MemoryUsageSerializer, operation_id="memory_usage")
    def get(self) -> Any:
        """Read a user's storage and quotas."""
        return services.usage(scope=self.scope)


class ExportView(MemoryView):
    """Export of everything as JSON Lines."""

    content_negotiation_class = StreamNegotiation

    @operation(gives={(200, JSON_LINES): str}, operation_id="memory_export")
    def get(self) -> StreamingHttpResponse:
        """Export a user's memory as JSON Lines.

        A header, every fact with its history, every context, every waiting conversation, and what a
        quota removed: each a line with its `kind`. Without a user there are no lines.
        """
        name = f"memory-{timezone.now():%Y-%m-%d}.jsonl"
        return StreamingHttpResponse(
            services.export_memory(scope=self.scope),
            content_type=f"{JSON_LINES}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

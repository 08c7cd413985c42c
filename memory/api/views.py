"""Views of the memory API. Begin with `MemoryView`, which finds whose memory a request works on."""

from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

from django.db.models import Func, IntegerField, QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.api import ErrorSerializer, StreamNegotiation
from common.errors import Conflict, InvalidInput, NotFound
from common.openapi import load_examples
from common.serializers import CursorPagination
from memory import services
from memory.api import serializers as api_serializers
from memory.api.serializers import USER_ID_HELP, MemoryParameters
from memory.fact_keys import fact_key
from memory.models import Context, ExtractionItem, Fact, FactQuerySet
from memory.options import MemoryQuery
from memory.scopes import UserScope, scope_of
from memory.services.memories import record_messages, retry_extractions
from memory.services.search import inject

examples = load_examples("memory.api")


def context_rows(scope: UserScope | None) -> QuerySet[Context]:
    return Context.objects.of(scope).defer("embedding", "search_vector")


def fact_rows(scope: UserScope | None) -> FactQuerySet[Fact]:
    return Fact.objects.of(scope).defer("embedding", "search_vector")


def conversation_rows(scope: UserScope | None) -> QuerySet[ExtractionItem]:
    """Conversations with the number of waiting messages instead of their texts."""
    rows = ExtractionItem.objects.of(scope).defer("messages", "taken")
    length = Func("messages", function="jsonb_array_length", output_field=IntegerField())
    return rows.annotate(waiting=length)


class MemoryPagination(CursorPagination):
    """Pages of one user's rows."""

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described = super().get_paginated_response_schema(schema)
        user_id = {"type": "string", "nullable": True, "description": USER_ID_HELP}
        described["properties"] = {"user_id": user_id, **described["properties"]}
        described["required"] = ["user_id", *described["required"]]
        return described


Serializer = type[serializers.BaseSerializer[Any]]


class MemoryView(WorkspaceView):
    """A view that works on the memory of one user."""

    parameters_class = MemoryParameters
    required_scope = "memory"
    pagination_class: ClassVar[type[MemoryPagination] | None] = None

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

    def answer(
        self, serializer: Serializer, result: Any = None, *, status: int = 200, **values: Any
    ) -> Response:
        """A response with the fields of `result`, a dataclass, `values` and the user id."""
        given = {each.name: getattr(result, each.name) for each in fields(result)} if result else {}
        shown = {"user_id": self.user_id, **given, **values}
        return Response(serializer(shown).data, status=status)

    def page(self, rows: QuerySet[Any], serializer: Serializer) -> Response:
        """The requested page of `rows`."""
        assert self.pagination_class is not None
        paginator = self.pagination_class()
        page = paginator.paginate_queryset(rows, self.request, view=self)
        shown = paginator.get_paginated_response(serializer(page, many=True).data)
        return Response({"user_id": self.user_id, **shown.data})

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers["Cache-Control"] = "no-store"
        return answer


@extend_schema(
    tags=["memory"],
    responses={200: api_serializers.MemorySearchAnswerSerializer, 503: ErrorSerializer},
)
class SearchView(MemoryView):
    """Search for relevant contexts, best first."""

    action_parameters = {"get": api_serializers.SearchParameters}

    @extend_schema(
        operation_id="memory_search",
        summary="Search a user's memory",
        examples=[examples.SEARCH_ANSWER],
    )
    def get(self, request: Request) -> Response:
        return self._found(self.parameters)

    @extend_schema(
        operation_id="memory_search_post",
        summary="Search a user's memory with a JSON body",
        description="For questions that should not appear in a log of addresses.",
        request=api_serializers.MemorySearchSerializer,
        examples=[examples.SEARCH, examples.SEARCH_ANSWER],
    )
    def post(self, request: Request) -> Response:
        return self._found(self.validated(api_serializers.MemorySearchSerializer))

    def _found(self, given: dict[str, Any]) -> Response:
        asked = {name: given[name] for name in MemoryQuery.model_fields if name in given}
        query = asked.pop("q")
        result = services.search_memory(scope=self.scope, query=query, **asked)
        return self.answer(
            api_serializers.MemorySearchAnswerSerializer,
            result,
            query=query,
            mode=asked["mode"],
        )


@extend_schema(tags=["memory"])
class ContextsView(MemoryView):
    """Contexts of a user: turns of conversations."""

    action_parameters = {"get": api_serializers.ContextFilter}
    pagination_class = MemoryPagination
    ordering = ("-created_at", "-id")

    @extend_schema(
        operation_id="memory_contexts",
        summary="List a user's contexts, newest first",
        responses=api_serializers.MemoryContextSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = context_rows(self.scope)
        if (conversation := self.parameters.get("conversation")) is not None:
            rows = rows.filter(conversation=conversation)
        return self.page(rows, api_serializers.MemoryContextSerializer)

    @extend_schema(
        operation_id="memory_archive",
        summary="Archive a turn of a conversation",
        description="201 for a new turn. 200 for an existing turn, which only gets the later time,"
        " so requests can be repeated. Without a user id: 200 with nulls, and nothing is stored.",
        request=api_serializers.MemoryTurnSerializer,
        responses={
            200: api_serializers.MemoryArchivedSerializer,
            201: api_serializers.MemoryArchivedSerializer,
        },
        examples=[examples.TURN, examples.ARCHIVED],
    )
    def post(self, request: Request) -> Response:
        archived = services.archive_turn(
            scope=self.scope, **self.validated(api_serializers.MemoryTurnSerializer)
        )
        is_new = archived is not None and archived.is_new
        row = context_rows(self.scope).filter(pk=archived.id).first() if archived else None
        return self.answer(
            api_serializers.MemoryArchivedSerializer,
            status=201 if is_new else 200,
            context=row,
            is_new=is_new,
        )


@extend_schema(tags=["memory"])
class ContextView(MemoryView):
    """Read or delete one context."""

    is_detail = True

    def locked_rows(self) -> QuerySet[Context]:
        return Context.objects.of(self.scope).filter(pk=self.kwargs["context_id"])

    @extend_schema(
        operation_id="memory_context",
        summary="Read a context",
        responses=api_serializers.MemoryContextAnswerSerializer,
    )
    def get(self, request: Request, context_id: int) -> Response:
        row = context_rows(self.scope).filter(pk=context_id).first()
        if row is None:
            raise _no_context(context_id)
        return self.answer(api_serializers.MemoryContextAnswerSerializer, context=row)

    @extend_schema(
        operation_id="memory_context_forget", summary="Forget a context", responses={204: None}
    )
    def delete(self, request: Request, context_id: int) -> Response:
        if not services.forget_contexts(scope=self.scope, ids=[context_id]):
            raise _no_context(context_id)
        return Response(status=204)


def _no_context(context_id: int) -> NotFound:
    return NotFound(
        gettext("There is no context {context_id} in this memory.").format(context_id=context_id)
    )


@extend_schema(tags=["memory"])
class ContextsClearView(MemoryView):
    """Delete all contexts with a given question."""

    @extend_schema(
        operation_id="memory_clear",
        summary="Forget every context of a question",
        description="All whose user message is this one, whatever was answered.",
        request=api_serializers.MemoryQuestionSerializer,
        responses=api_serializers.MemoryRemovedSerializer,
        examples=[examples.QUESTION],
    )
    def post(self, request: Request) -> Response:
        question = self.validated(api_serializers.MemoryQuestionSerializer)["question"]
        removed = services.clear_memory(scope=self.scope, question=question)
        return self.answer(api_serializers.MemoryRemovedSerializer, removed=removed)


KEY_PARAMETER = OpenApiParameter(
    "key",
    str,
    OpenApiParameter.PATH,
    description="What the fact is about. Many ways to write it are one key: `favouriteColor` is"
    " `favourite_color`, and a slash stands for `_`.",
)


@extend_schema(tags=["memory"])
class FactsView(MemoryView):
    """All facts of a user."""

    action_parameters = {"get": api_serializers.FactFilter}
    pagination_class = MemoryPagination
    ordering = "key"

    @extend_schema(
        operation_id="memory_facts",
        summary="List a user's facts, by key",
        responses=api_serializers.MemoryFactSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows, as_of = fact_rows(self.scope), self.parameters.get("as_of")
        rows = rows.current() if as_of is None else rows.as_of(as_of)
        return self.page(rows, api_serializers.MemoryFactSerializer)


@extend_schema(tags=["memory"], parameters=[KEY_PARAMETER])
class FactView(MemoryView):
    """Read, set or delete one fact."""

    action_parameters = {"get": api_serializers.FactReading}
    is_detail = True

    def locked_rows(self) -> QuerySet[Fact]:
        return Fact.objects.of(self.scope).filter(key=fact_key(self.kwargs["key"]))

    @extend_schema(
        operation_id="memory_fact",
        summary="Read a fact",
        responses=api_serializers.MemoryFactAnswerSerializer,
    )
    def get(self, request: Request, key: str) -> Response:
        fact = services.get_fact(scope=self.scope, key=key, as_of=self.parameters.get("as_of"))
        if fact is None:
            raise NotFound(gettext("Fact not found: {key}").format(key=fact_key(key)))
        return self.answer(api_serializers.MemoryFactAnswerSerializer, fact=fact)

    @extend_schema(
        operation_id="memory_fact_set",
        summary="Set a fact",
        description="The previous value stays in the history. The same value changes nothing, so"
        " requests can be repeated. Without a user id: nulls, and nothing is stored."
        " 409 when the user's quota of facts is used up.",
        request=api_serializers.MemoryFactValueSerializer,
        responses={200: api_serializers.MemoryFactChangeSerializer, 409: ErrorSerializer},
        examples=[examples.FACT, examples.FACT_CHANGE],
    )
    def put(self, request: Request, key: str) -> Response:
        change = services.set_fact(
            scope=self.scope, key=key, **self.validated(api_serializers.MemoryFactValueSerializer)
        )
        nothing: dict[str, Any] = {"fact": None, "changed": False, "superseded": None}
        values = {} if change else nothing
        return self.answer(api_serializers.MemoryFactChangeSerializer, change, **values)

    @extend_schema(
        operation_id="memory_fact_forget",
        summary="Forget a fact with its history",
        responses={200: api_serializers.MemoryRemovedSerializer},
    )
    def delete(self, request: Request, key: str) -> Response:
        removed = services.forget_fact(scope=self.scope, key=key)
        return self.answer(api_serializers.MemoryRemovedSerializer, removed=removed)


@extend_schema(tags=["memory"], parameters=[KEY_PARAMETER])
class FactClearView(MemoryView):
    """End a fact and keep its history."""

    @extend_schema(
        operation_id="memory_fact_clear",
        summary="End a fact",
        description="It is no longer true. Its value stays in the history.",
        request=None,
        responses=api_serializers.MemoryFactClearedSerializer,
    )
    def post(self, request: Request, key: str) -> Response:
        cleared = services.clear_fact(scope=self.scope, key=key)
        return self.answer(api_serializers.MemoryFactClearedSerializer, cleared=cleared)


@extend_schema(tags=["memory"], parameters=[KEY_PARAMETER])
class FactHistoryView(MemoryView):
    """All values that a fact ever had."""

    action_parameters = {"get": api_serializers.HistoryFilter}
    pagination_class = MemoryPagination
    ordering = ("-valid_from", "-id")

    @extend_schema(
        operation_id="memory_fact_history",
        summary="List the values of a fact, latest first",
        responses=api_serializers.MemoryFactSerializer(many=True),
    )
    def get(self, request: Request, key: str) -> Response:
        rows = fact_rows(self.scope).filter(key=fact_key(key))
        return self.page(rows, api_serializers.MemoryFactSerializer)


@extend_schema(tags=["memory"])
class ConversationsView(MemoryView):
    """The extraction queue: list conversations, enqueue messages."""

    action_parameters = {"get": api_serializers.ConversationFilter}
    pagination_class = MemoryPagination
    ordering = ("-last_message_at", "-id")

    @extend_schema(
        operation_id="memory_conversations",
        summary="List the conversations that facts are learned from, newest first",
        responses=api_serializers.MemoryConversationSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = conversation_rows(self.scope)
        if state := self.parameters.get("state"):
            rows = rows.filter(state=state)
        return self.page(rows, api_serializers.MemoryConversationSerializer)

    @extend_schema(
        operation_id="memory_learn",
        summary="Learn facts from a conversation",
        description="It is queued, and read after a pause in the conversation. Send the whole"
        " conversation each time: known messages are not processed again, so"
        " requests can be repeated. Only the user's messages are stored, and only"
        " until they have been read. 429 if too much is waiting.",
        request=api_serializers.MemoryConversationInputSerializer,
        responses={200: api_serializers.MemoryRecordedSerializer, 429: ErrorSerializer},
        examples=[examples.CONVERSATION, examples.RECORDED],
    )
    def post(self, request: Request) -> Response:
        recorded = record_messages(
            scope=self.scope, **self.validated(api_serializers.MemoryConversationInputSerializer)
        )
        row = conversation_rows(self.scope).filter(pk=recorded.item_id) if recorded else None
        return self.answer(
            api_serializers.MemoryRecordedSerializer,
            conversation=row.first() if row is not None else None,
            new=recorded.new if recorded else 0,
        )


@extend_schema(tags=["memory"])
class ConversationRetryView(MemoryView):
    """Retry a conversation whose extraction failed for good."""

    @extend_schema(
        operation_id="memory_conversation_retry",
        summary="Retry a failed conversation",
        description="All attempts are available again. 409 if it has not failed.",
        request=None,
        responses={200: api_serializers.MemoryConversationAnswerSerializer, 409: ErrorSerializer},
    )
    def post(self, request: Request, conversation_id: int) -> Response:
        mine = conversation_rows(self.scope).filter(pk=conversation_id)
        if not mine.exists():
            raise NotFound(
                gettext("There is no conversation {conversation_id} in this memory.").format(
                    conversation_id=conversation_id
                )
            )
        if not retry_extractions(item_ids=[conversation_id]):
            raise Conflict(
                gettext("This conversation has not failed for good. The workers retry it.")
            )
        return self.answer(
            api_serializers.MemoryConversationAnswerSerializer, conversation=mine.first()
        )


@extend_schema(tags=["memory"])
class InjectView(MemoryView):
    """Messages for a chat model, with relevant memory added to the last question."""

    @extend_schema(
        operation_id="memory_inject",
        summary="Add memory to a chat model's messages",
        description="Only the last user message changes: relevant memory is added after a"
        " blank line, fenced as data. All others come back as they were sent, and"
        " so does this one if nothing is relevant. `facts` and `context` are the"
        " same as lists.",
        request=api_serializers.MemoryInjectionSerializer,
        responses={200: api_serializers.MemoryInjectedSerializer},
        examples=[examples.INJECT, examples.INJECTED],
    )
    def post(self, request: Request) -> Response:
        done = inject(
            scope=self.scope,
            enabled=True,
            **self.validated(api_serializers.MemoryInjectionSerializer),
        )
        facts = [{"key": key, "value": value} for key, value in done.facts]
        return self.answer(api_serializers.MemoryInjectedSerializer, done, facts=facts)


JSON_LINES = "application/x-ndjson"


@extend_schema(tags=["memory"])
class EraseView(MemoryView):
    """Erase everything of a user."""

    action_parameters = {"delete": api_serializers.Erasure}

    @extend_schema(
        operation_id="memory_erase",
        summary="Erase a user's whole memory",
        description="Contexts, facts with their history, waiting conversations, and their"
        " entries in logs: afterwards no table contains any of it. To prevent"
        " accidents, `confirm` must repeat the user id.",
        responses={200: api_serializers.MemoryErasedSerializer},
        examples=[examples.ERASED],
    )
    def delete(self, request: Request) -> Response:
        if self.user_id not in (None, self.parameters.get("confirm")):
            raise InvalidInput(
                gettext(
                    "This erases the whole memory of “{user_id}”. Repeat that id in `confirm` to"
                    " confirm."
                ).format(user_id=self.user_id),
                field="confirm",
            )
        erased = services.erase_memory(scope=self.scope)
        return self.answer(api_serializers.MemoryErasedSerializer, erased)


@extend_schema(tags=["memory"])
class UsageView(MemoryView):
    """Usage and quotas of a user."""

    @extend_schema(
        operation_id="memory_usage",
        summary="Read a user's storage and quotas",
        responses=api_serializers.MemoryUsageSerializer,
        examples=[examples.USAGE],
    )
    def get(self, request: Request) -> Response:
        return self.answer(api_serializers.MemoryUsageSerializer, services.usage(scope=self.scope))


@extend_schema(tags=["memory"])
class ExportView(MemoryView):
    """Export of everything as JSON Lines."""

    content_negotiation_class = StreamNegotiation

    @extend_schema(
        operation_id="memory_export",
        summary="Export a user's memory as JSON Lines",
        description="A header, every fact with its history, every context, every waiting"
        " conversation, and what a quota removed: each a line with its `kind`."
        " Without a user there are no lines.",
        responses={(200, JSON_LINES): str},
        examples=[examples.EXPORT],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        name = f"memory-{timezone.now():%Y-%m-%d}.jsonl"
        return StreamingHttpResponse(
            services.export_memory(scope=self.scope),
            content_type=f"{JSON_LINES}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

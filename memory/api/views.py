"""Views of the memory API. Begin with `MemoryView`, which finds whose memory a request works on."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

from django.db.models import Func, IntegerField, QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.api import StreamNegotiation
from common.errors import Conflict, InvalidInput, NotFound
from common.openapi import load_examples
from common.operations import operation
from common.serializers import CursorPagination
from memory import services
from memory.api import serializers
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

    def represent(self, serializer: Any, result: Any) -> Any:
        """The data of an answer with the fields of `result`, a mapping or a dataclass, and the
        user id."""
        if not isinstance(result, Mapping):
            result = {each.name: getattr(result, each.name) for each in fields(result)}
        return serializer({"user_id": self.user_id, **result}).data

    def page(self, rows: QuerySet[Any], serializer: Any) -> Response:
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


class SearchView(MemoryView):
    """Search for relevant contexts, best first."""

    action_parameters = {"get": serializers.SearchParameters}

    @operation(
        "memory_search",
        serializers.MemorySearchAnswerSerializer,
        errors=[503],
        examples=[examples.SEARCH_ANSWER],
    )
    def get(self, request: Request) -> dict[str, Any]:
        """Search a user's memory"""
        return self._found(self.parameters)

    @operation(
        "memory_search_post",
        serializers.MemorySearchAnswerSerializer,
        body=serializers.MemorySearchSerializer,
        errors=[503],
        examples=[examples.SEARCH, examples.SEARCH_ANSWER],
    )
    def post(self, request: Request, body: Any) -> dict[str, Any]:
        """Search a user's memory with a JSON body

        For questions that should not appear in a log of addresses.
        """
        return self._found(body)

    def _found(self, given: dict[str, Any]) -> dict[str, Any]:
        asked = {name: given[name] for name in MemoryQuery.model_fields if name in given}
        query = asked.pop("q")
        result = services.search_memory(scope=self.scope, query=query, **asked)
        found = {each.name: getattr(result, each.name) for each in fields(result)}
        return {**found, "query": query, "mode": asked["mode"]}


class ContextsView(MemoryView):
    """Contexts of a user: turns of conversations."""

    action_parameters = {"get": serializers.ContextFilter}
    pagination_class = MemoryPagination
    ordering = ("-created_at", "-id")

    @operation("memory_contexts", serializers.MemoryContextSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List a user's contexts, newest first"""
        rows = context_rows(self.scope)
        if (conversation := self.parameters.get("conversation")) is not None:
            rows = rows.filter(conversation=conversation)
        return self.page(rows, serializers.MemoryContextSerializer)

    @operation(
        "memory_archive",
        dict.fromkeys((200, 201), serializers.MemoryArchivedSerializer),
        body=serializers.MemoryTurnSerializer,
        examples=[examples.TURN, examples.ARCHIVED],
    )
    def post(self, request: Request, body: Any) -> Response:
        """Archive a turn of a conversation

        201 for a new turn. 200 for an existing turn, which only gets the later time, so requests
        can be repeated. Without a user id: 200 with nulls, and nothing is stored.
        """
        archived = services.archive_turn(scope=self.scope, **body)
        row = context_rows(self.scope).filter(pk=archived.id).first() if archived else None
        is_new = archived is not None and archived.is_new
        shown = {"context": row, "is_new": is_new}
        data = self.represent(serializers.MemoryArchivedSerializer, shown)
        return Response(data, status=201 if is_new else 200)


class ContextView(MemoryView):
    """Read or delete one context."""

    is_detail = True

    def locked_rows(self) -> QuerySet[Context]:
        return Context.objects.of(self.scope).filter(pk=self.kwargs["context_id"])

    @operation("memory_context", serializers.MemoryContextAnswerSerializer)
    def get(self, request: Request, context_id: int) -> dict[str, Any]:
        """Read a context"""
        row = context_rows(self.scope).filter(pk=context_id).first()
        if row is None:
            raise _no_context(context_id)
        return {"context": row}

    @operation("memory_context_forget")
    def delete(self, request: Request, context_id: int) -> None:
        """Forget a context"""
        if not services.forget_contexts(scope=self.scope, ids=[context_id]):
            raise _no_context(context_id)


def _no_context(context_id: int) -> NotFound:
    return NotFound(
        gettext("There is no context {context_id} in this memory.").format(context_id=context_id)
    )


class ContextsClearView(MemoryView):
    """Delete all contexts with a given question."""

    @operation(
        "memory_clear",
        serializers.MemoryRemovedSerializer,
        body=serializers.MemoryQuestionSerializer,
        examples=[examples.QUESTION],
    )
    def post(self, request: Request, body: Any) -> dict[str, Any]:
        """Forget every context of a question

        All whose user message is this one, whatever was answered.
        """
        return {"removed": services.clear_memory(scope=self.scope, question=body["question"])}


in_path = extend_schema(
    parameters=[
        OpenApiParameter(
            "key",
            str,
            OpenApiParameter.PATH,
            description="What the fact is about. Many ways to write it are one key:"
            " `favouriteColor` is `favourite_color`, and a slash stands for `_`.",
        )
    ]
)


class FactsView(MemoryView):
    """All facts of a user."""

    action_parameters = {"get": serializers.FactFilter}
    pagination_class = MemoryPagination
    ordering = "key"

    @operation("memory_facts", serializers.MemoryFactSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List a user's facts, by key"""
        rows, as_of = fact_rows(self.scope), self.parameters.get("as_of")
        rows = rows.current() if as_of is None else rows.as_of(as_of)
        return self.page(rows, serializers.MemoryFactSerializer)


@in_path
class FactView(MemoryView):
    """Read, set or delete one fact."""

    action_parameters = {"get": serializers.FactReading}
    is_detail = True

    def locked_rows(self) -> QuerySet[Fact]:
        return Fact.objects.of(self.scope).filter(key=fact_key(self.kwargs["key"]))

    @operation("memory_fact", serializers.MemoryFactAnswerSerializer)
    def get(self, request: Request, key: str) -> dict[str, Any]:
        """Read a fact"""
        fact = services.get_fact(scope=self.scope, key=key, as_of=self.parameters.get("as_of"))
        if fact is None:
            raise NotFound(gettext("Fact not found: {key}").format(key=fact_key(key)))
        return {"fact": fact}

    @operation(
        "memory_fact_set",
        serializers.MemoryFactChangeSerializer,
        body=serializers.MemoryFactValueSerializer,
        errors=[409],
        examples=[examples.FACT, examples.FACT_CHANGE],
    )
    def put(self, request: Request, key: str, body: Any) -> Any:
        """Set a fact

        The previous value stays in the history. The same value changes nothing, so requests can be
        repeated. Without a user id: nulls, and nothing is stored. 409 when the user's quota of
        facts is used up.
        """
        change = services.set_fact(scope=self.scope, key=key, **body)
        return change or {"fact": None, "changed": False, "superseded": None}

    @operation("memory_fact_forget", serializers.MemoryRemovedSerializer)
    def delete(self, request: Request, key: str) -> dict[str, Any]:
        """Forget a fact with its history"""
        return {"removed": services.forget_fact(scope=self.scope, key=key)}


@in_path
class FactClearView(MemoryView):
    """End a fact and keep its history."""

    @operation("memory_fact_clear", serializers.MemoryFactClearedSerializer)
    def post(self, request: Request, key: str) -> dict[str, Any]:
        """End a fact

        It is no longer true. Its value stays in the history.
        """
        return {"cleared": services.clear_fact(scope=self.scope, key=key)}


@in_path
class FactHistoryView(MemoryView):
    """All values that a fact ever had."""

    action_parameters = {"get": serializers.HistoryFilter}
    pagination_class = MemoryPagination
    ordering = ("-valid_from", "-id")

    @operation("memory_fact_history", serializers.MemoryFactSerializer(many=True))
    def get(self, request: Request, key: str) -> Response:
        """List the values of a fact, latest first"""
        rows = fact_rows(self.scope).filter(key=fact_key(key))
        return self.page(rows, serializers.MemoryFactSerializer)


class ConversationsView(MemoryView):
    """The extraction queue: list conversations, enqueue messages."""

    action_parameters = {"get": serializers.ConversationFilter}
    pagination_class = MemoryPagination
    ordering = ("-last_message_at", "-id")

    @operation("memory_conversations", serializers.MemoryConversationSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the conversations that facts are learned from, newest first"""
        rows = conversation_rows(self.scope)
        if state := self.parameters.get("state"):
            rows = rows.filter(state=state)
        return self.page(rows, serializers.MemoryConversationSerializer)

    @operation(
        "memory_learn",
        serializers.MemoryRecordedSerializer,
        body=serializers.MemoryConversationInputSerializer,
        errors=[429],
        examples=[examples.CONVERSATION, examples.RECORDED],
    )
    def post(self, request: Request, body: Any) -> dict[str, Any]:
        """Learn facts from a conversation

        It is queued, and read after a pause in the conversation. Send the whole conversation each
        time: known messages are not processed again, so requests can be repeated. Only the user's
        messages are stored, and only until they have been read. 429 if too much is waiting.
        """
        recorded = record_messages(scope=self.scope, **body)
        if recorded is None:
            return {"conversation": None, "new": 0}
        rows = conversation_rows(self.scope).filter(pk=recorded.item_id)
        return {"conversation": rows.first(), "new": recorded.new}


class ConversationRetryView(MemoryView):
    """Retry a conversation whose extraction failed for good."""

    @operation(
        "memory_conversation_retry", serializers.MemoryConversationAnswerSerializer, errors=[409]
    )
    def post(self, request: Request, conversation_id: int) -> dict[str, Any]:
        """Retry a failed conversation

        All attempts are available again. 409 if it has not failed.
        """
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
        return {"conversation": mine.first()}


class InjectView(MemoryView):
    """Messages for a chat model, with relevant memory added to the last question."""

    @operation(
        "memory_inject",
        serializers.MemoryInjectedSerializer,
        body=serializers.MemoryInjectionSerializer,
        examples=[examples.INJECT, examples.INJECTED],
    )
    def post(self, request: Request, body: Any) -> Any:
        """Add memory to a chat model's messages

        Only the last user message changes: relevant memory is added after a blank line, fenced as
        data. All others come back as they were sent, and so does this one if nothing is relevant.
        `facts` and `context` are the same as lists.
        """
        done = inject(scope=self.scope, enabled=True, **body)
        added = {each.name: getattr(done, each.name) for each in fields(done)}
        return {**added, "facts": [{"key": key, "value": value} for key, value in done.facts]}


JSON_LINES = "application/x-ndjson"


class EraseView(MemoryView):
    """Erase everything of a user."""

    action_parameters = {"delete": serializers.Erasure}

    @operation("memory_erase", serializers.MemoryErasedSerializer, examples=[examples.ERASED])
    def delete(self, request: Request) -> Any:
        """Erase a user's whole memory

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

    @operation("memory_usage", serializers.MemoryUsageSerializer, examples=[examples.USAGE])
    def get(self, request: Request) -> Any:
        """Read a user's storage and quotas"""
        return services.usage(scope=self.scope)


class ExportView(MemoryView):
    """Export of everything as JSON Lines."""

    content_negotiation_class = StreamNegotiation

    @operation("memory_export", {(200, JSON_LINES): str}, examples=[examples.EXPORT])
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export a user's memory as JSON Lines

        A header, every fact with its history, every context, every waiting conversation, and what a
        quota removed: each a line with its `kind`. Without a user there are no lines.
        """
        name = f"memory-{timezone.now():%Y-%m-%d}.jsonl"
        return StreamingHttpResponse(
            services.export_memory(scope=self.scope),
            content_type=f"{JSON_LINES}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

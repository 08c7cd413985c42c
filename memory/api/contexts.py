"""Contexts: searched, archived, read, forgotten."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import ErrorSerializer
from common.errors import NotFound
from memory import services
from memory.api import examples, inputs, reads, serializers
from memory.api.base import MemoryView
from memory.api.pagination import ContextPagination
from memory.models import Context


@extend_schema(
    tags=["memory"],
    responses={200: serializers.SearchAnswerSerializer, 503: ErrorSerializer},
)
class SearchView(MemoryView):
    """Contexts that have to do with a question, best first."""

    action_parameters = {"get": inputs.SearchParameters}

    @extend_schema(
        operation_id="memory_search",
        summary="Search a user's memory",
        examples=[examples.SEARCH_ANSWER],
    )
    def get(self, request: Request) -> Response:
        names = inputs.SearchInput().fields
        return self._found({name: self.parameters[name] for name in names & self.parameters.keys()})

    @extend_schema(
        operation_id="memory_search_post",
        summary="Search a user's memory with a JSON body",
        description="For questions that should not stand in a log of addresses.",
        request=inputs.SearchInput,
        examples=[examples.SEARCH, examples.SEARCH_ANSWER],
    )
    def post(self, request: Request) -> Response:
        return self._found(self.body(inputs.SearchInput))

    def _found(self, asked: dict[str, Any]) -> Response:
        result = services.search_memory(scope=self.scope, **asked)
        return self.answer(
            serializers.SearchAnswerSerializer,
            query=asked["query"],
            mode=asked["mode"],
            hits=result.hits,
            below=result.below,
            searched=result.searched,
            degraded=result.degraded,
            milliseconds=result.milliseconds,
        )


@extend_schema(tags=["memory"])
class ContextsView(MemoryView):
    """What a user said, and what was answered."""

    action_parameters = {"get": inputs.ContextFilter}
    pagination_class = ContextPagination

    @extend_schema(
        operation_id="memory_contexts",
        summary="List a user's contexts, newest first",
        responses=serializers.ContextSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = reads.contexts(self.scope, conversation=self.parameters.get("conversation"))
        return self.page(rows, serializers.ContextSerializer)

    @extend_schema(
        operation_id="memory_archive",
        summary="Archive a turn of a conversation",
        description="201 for a new one. 200 for one that is there already, which only gets the"
        " later time: to send it again does no harm. Of nobody nothing is kept: 200 with nulls.",
        request=inputs.TurnInput,
        responses={
            200: serializers.ArchivedSerializer,
            201: serializers.ArchivedSerializer,
        },
        examples=[examples.TURN, examples.ARCHIVED],
    )
    def post(self, request: Request) -> Response:
        archived = services.archive_turn(scope=self.scope, **self.body(inputs.TurnInput))
        is_new = archived is not None and archived.is_new
        row = reads.contexts(self.scope).filter(pk=archived.id).first() if archived else None
        return self.answer(
            serializers.ArchivedSerializer,
            status=201 if is_new else 200,
            context=row,
            is_new=is_new,
        )


@extend_schema(tags=["memory"])
class ContextView(MemoryView):
    """One context."""

    is_thing = True

    def locked_rows(self) -> QuerySet[Context]:
        return Context.objects.of(self.scope).filter(pk=self.kwargs["context_id"])

    @extend_schema(
        operation_id="memory_context",
        summary="Read a context",
        responses=serializers.ContextAnswerSerializer,
    )
    def get(self, request: Request, context_id: int) -> Response:
        row = reads.contexts(self.scope).filter(pk=context_id).first()
        if row is None:
            raise _no_context(context_id)
        return self.answer(serializers.ContextAnswerSerializer, context=row)

    @extend_schema(
        operation_id="memory_context_forget", summary="Forget a context", responses={204: None}
    )
    def delete(self, request: Request, context_id: int) -> Response:
        if not services.forget_contexts(scope=self.scope, ids=[context_id]):
            raise _no_context(context_id)
        return Response(status=204)


def _no_context(context_id: int) -> NotFound:
    return NotFound(f"There is no context {context_id} in this memory.")


@extend_schema(tags=["memory"])
class ContextsClearView(MemoryView):
    """Removal of what was asked."""

    @extend_schema(
        operation_id="memory_clear",
        summary="Forget every context of a question",
        description="All whose user message is this one, whatever was answered.",
        request=inputs.QuestionInput,
        responses=serializers.RemovedSerializer,
        examples=[examples.QUESTION],
    )
    def post(self, request: Request) -> Response:
        question = self.body(inputs.QuestionInput)["question"]
        removed = services.clear_memory(scope=self.scope, question=question)
        return self.answer(serializers.RemovedSerializer, removed=removed)

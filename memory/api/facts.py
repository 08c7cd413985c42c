"""Facts: read as they are or were, set, ended, forgotten."""

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.api import ErrorSerializer
from common.errors import NotFound
from memory import services
from memory.api import examples, inputs, reads, serializers
from memory.api.base import MemoryView
from memory.api.pagination import FactPagination, HistoryPagination
from memory.keys import fact_key
from memory.models import Fact

KEY = OpenApiParameter(
    "key",
    str,
    OpenApiParameter.PATH,
    description="What the fact is about. Many ways to write it are one key: `favouriteColor` is"
    " `favourite_color`, and a slash stands for `_`.",
)


@extend_schema(tags=["memory"])
class FactsView(MemoryView):
    """All that is known of a user."""

    action_parameters = {"get": inputs.FactFilter}
    pagination_class = FactPagination

    @extend_schema(
        operation_id="memory_facts",
        summary="List what is known of a user, by key",
        responses=serializers.FactSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows = reads.facts(self.scope, as_of=self.parameters.get("as_of"))
        return self.page(rows, serializers.FactSerializer)


@extend_schema(tags=["memory"], parameters=[KEY])
class FactView(MemoryView):
    """One fact."""

    action_parameters = {"get": inputs.FactReading}
    is_thing = True

    def locked_rows(self) -> QuerySet[Fact]:
        return Fact.objects.of(self.scope).filter(key=fact_key(self.kwargs["key"]))

    @extend_schema(
        operation_id="memory_fact",
        summary="Read a fact",
        responses=serializers.FactAnswerSerializer,
    )
    def get(self, request: Request, key: str) -> Response:
        fact = services.get_fact(scope=self.scope, key=key, as_of=self.parameters.get("as_of"))
        if fact is None:
            raise NotFound(f"Fact not found: {fact_key(key)}")
        return self.answer(serializers.FactAnswerSerializer, fact=fact)

    @extend_schema(
        operation_id="memory_fact_set",
        summary="Set a fact",
        description="What was true until then stays in the history. The same again changes"
        " nothing, so that to send it again does no harm. Of nobody nothing is kept: nulls."
        " 409 when the user's quota of facts is used up.",
        request=inputs.FactInput,
        responses={200: serializers.FactChangeSerializer, 409: ErrorSerializer},
        examples=[examples.FACT, examples.FACT_CHANGE],
    )
    def put(self, request: Request, key: str) -> Response:
        change = services.set_fact(scope=self.scope, key=key, **self.body(inputs.FactInput))
        return self.answer(
            serializers.FactChangeSerializer,
            fact=change.fact if change else None,
            changed=change is not None and change.changed,
            superseded=change.superseded if change else None,
        )

    @extend_schema(
        operation_id="memory_fact_forget",
        summary="Forget a fact with its history",
        responses={200: serializers.RemovedSerializer},
    )
    def delete(self, request: Request, key: str) -> Response:
        removed = services.forget_fact(scope=self.scope, key=key)
        return self.answer(serializers.RemovedSerializer, removed=removed)


@extend_schema(tags=["memory"], parameters=[KEY])
class FactClearView(MemoryView):
    """The end of a fact."""

    @extend_schema(
        operation_id="memory_fact_clear",
        summary="Let a fact end",
        description="It is true no longer. What it was stays in the history.",
        request=None,
        responses=serializers.ClearedSerializer,
    )
    def post(self, request: Request, key: str) -> Response:
        cleared = services.clear_fact(scope=self.scope, key=key)
        return self.answer(serializers.ClearedSerializer, cleared=cleared)


@extend_schema(tags=["memory"], parameters=[KEY])
class FactHistoryView(MemoryView):
    """What a fact ever was."""

    action_parameters = {"get": inputs.HistoryFilter}
    pagination_class = HistoryPagination

    @extend_schema(
        operation_id="memory_fact_history",
        summary="List what a fact is and was, the latest first",
        responses=serializers.FactSerializer(many=True),
    )
    def get(self, request: Request, key: str) -> Response:
        return self.page(reads.history(self.scope, key=key), serializers.FactSerializer)

"""Ingestion runs over HTTP: read, followed by server-sent events, cancelled, retried."""

from typing import Any

from django.db.models import Case, Prefetch, QuerySet, Value, When
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.api import idempotent
from common.api import ErrorSerializer, StreamNegotiation
from common.openapi import load_examples
from common.sse import stream_response
from documents import services
from documents.api import serializers
from documents.api.serializers import (
    ItemSerializer,
    RetrySerializer,
    RunDetailSerializer,
    RunSerializer,
)
from documents.api.views import CollectionFiltered
from documents.models import IngestionItem, IngestionRun
from documents.run_progress import stream_progress

examples = load_examples("documents.api")

#: Files that a run shows at once.
MAX_ITEMS_OF_RUN = 200

LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    str,
    OpenApiParameter.HEADER,
    description="Id of the last event that you received: it is not sent again.",
)


@extend_schema(tags=["runs"])
class RunViewSet(CollectionFiltered):
    """Ingestion runs and the outcome of each file."""

    for_limited_keys = True
    serializer_class = RunSerializer
    lookup_value_converter = "int"
    action_parameters = {"list": serializers.RunFilter, "items": serializers.ItemFilter}

    def get_queryset(self) -> QuerySet[IngestionRun]:
        user = self.request.user
        rows: QuerySet[Any] = IngestionRun.objects.visible_to(user).select_related(
            "collection", "workspace"
        )
        if self.action == "retrieve":
            failed_first = Case(
                When(state=IngestionItem.State.FAILED, then=Value(0)), default=Value(1)
            )
            items = IngestionItem.objects.visible_to(user).order_by(failed_first, "id")
            first_items = Prefetch("items", items[:MAX_ITEMS_OF_RUN], to_attr="first_items")
            rows = rows.prefetch_related(first_items)
        return self.in_workspace(rows)

    @extend_schema(summary="List runs, newest first")
    def list(self, *args: Any, **kwargs: Any) -> Response:
        return self.page(self.narrowed(self.get_queryset()))

    @extend_schema(
        summary="Read a run with its progress and failures", responses=RunDetailSerializer
    )
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        context = self.get_serializer_context()
        return Response(RunDetailSerializer(self.get_object(), context=context).data)

    @extend_schema(summary="List a run's files", responses=ItemSerializer(many=True))
    @action(detail=True, serializer_class=ItemSerializer)
    def items(self, *args: Any, **kwargs: Any) -> Response:
        items = IngestionItem.objects.visible_to(self.request.user).filter(run=self.get_object())
        return self.page(self.narrowed(items))

    @extend_schema(
        summary="Follow a run by server-sent events",
        description=(
            "`progress` with a JSON object of figures when the run has advanced,"
            " at most once a second; `end` when it has ended. The stream ends"
            " after five minutes; connect again. 503 if too many streams are"
            " open: read the run instead."
        ),
        parameters=[LAST_EVENT_ID],
        responses={(200, "text/event-stream"): str, 503: ErrorSerializer},
        examples=[examples.EVENTS],
    )
    @action(detail=True, content_negotiation_class=StreamNegotiation, pagination_class=None)
    def events(self, *args: Any, **kwargs: Any) -> StreamingHttpResponse:
        last_id = self.request.headers.get("Last-Event-ID", "")
        run, user = self.get_object(), self.request.user
        return stream_response(stream_progress(run.pk, last_id=last_id, user=user))

    @extend_schema(
        summary="Cancel a run",
        description=(
            "It ends at once. Finished documents stay; waiting documents are put"
            " back as they were, new ones are removed. Cancelling again gives the"
            " same answer."
        ),
        request=None,
        responses={200: RunSerializer, 409: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def cancel(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(services.cancel_run(run=self.get_object(), user=self.request.user))

    @extend_schema(
        summary="Retry a run's failed files",
        description=("As a new run, from the stored files. 409 if there are none."),
        request=None,
        responses={202: RetrySerializer, 409: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    @idempotent
    def retry(self, *args: Any, **kwargs: Any) -> Response:
        retried = services.retry_failed(run=self.get_object(), user=self.request.user)
        context = {**self.get_serializer_context(), "left_out": retried.left_out}
        answer = RetrySerializer(retried.run, context=context).data
        return Response(answer, status=202, headers={"Location": answer["url"]})

"""Ingestion runs over HTTP: read, followed by server-sent events, cancelled, retried."""

from django.db.models import Case, Prefetch, QuerySet, Value, When
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin

from accounts.api import operation
from common.api import StreamNegotiation
from common.sse import stream_response
from documents import services
from documents.api import serializers
from documents.api.views import CollectionFiltered
from documents.models import IngestionItem, IngestionRun
from documents.run_progress import stream_progress

#: Files that a run shows at once.
MAX_ITEMS_OF_RUN = 200

LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    str,
    OpenApiParameter.HEADER,
    description="Id of the last event that you received: it is not sent again.",
)


class RunViewSet(ListModelMixin, CollectionFiltered):
    """Ingestion runs and the outcome of each file."""

    for_limited_keys = True
    nouns = ("run", "runs")
    queryset = IngestionRun.objects.select_related("collection", "workspace")
    serializer_class = serializers.RunSerializer
    action_parameters = {"list": serializers.RunFilter, "items": serializers.ItemFilter}

    def get_queryset(self) -> QuerySet[IngestionRun]:
        rows = super().get_queryset()
        if self.action == "retrieve":
            failed_first = Case(
                When(state=IngestionItem.State.FAILED, then=Value(0)), default=Value(1)
            )
            items = IngestionItem.objects.visible_to(self.request.user)
            items = items.order_by(failed_first, "id")[:MAX_ITEMS_OF_RUN]
            rows = rows.prefetch_related(Prefetch("items", items, to_attr="first_items"))
        return rows

    @operation(gives=serializers.RunDetailSerializer)
    def retrieve(self, run: IngestionRun) -> IngestionRun:
        """Read a run with its progress and failures."""
        return run

    @action(detail=True)
    @operation(gives=serializers.ItemSerializer, many=True)
    def items(self, run: IngestionRun) -> QuerySet[IngestionItem]:
        """List a run's files."""
        items = IngestionItem.objects.visible_to(self.request.user).filter(run=run)
        return self.narrowed(items, **self.parameters)

    @action(detail=True, content_negotiation_class=StreamNegotiation, pagination_class=None)
    @operation(gives={(200, "text/event-stream"): str}, parameters=(LAST_EVENT_ID,))
    def events(self, run: IngestionRun) -> StreamingHttpResponse:
        """Follow a run by server-sent events.

        `progress` with a JSON object of figures when the run has advanced, at most once a second;
        `end` when it has ended. The stream ends after five minutes; connect again. 503 if too many
        streams are open: read the run instead.
        """
        last_id = self.request.headers.get("Last-Event-ID", "")
        return stream_response(stream_progress(run.pk, last_id=last_id, user=self.request.user))

    @action(detail=True, methods=["post"])
    @operation(errors=(409,))
    def cancel(self, run: IngestionRun) -> IngestionRun:
        """Cancel a run.

        It ends at once. Finished documents stay; waiting documents are put back as they were, new
        ones are removed. Cancelling again gives the same answer.
        """
        return services.cancel_run(run=run, user=self.request.user)

    @action(detail=True, methods=["post"])
    @operation(gives=serializers.RetrySerializer, status=202, errors=(409,), once=True)
    def retry(self, run: IngestionRun) -> IngestionRun:
        """Retry a run's failed files.

        As a new run, from the stored files. 409 if there are none.
        """
        retried = services.retry_failed(run=run, user=self.request.user)
        retried.run.left_out = retried.left_out  # type: ignore[attr-defined]  # for this answer
        return retried.run

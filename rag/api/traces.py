"""Traces over HTTP: a user's own pipeline runs, step by step."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.api import WorkspaceViewSet
from common.api import ErrorSerializer
from common.openapi import load_examples
from common.serializers import ReadOnlyModelSerializer
from rag.api.pipelines import (
    PipelineDefinitionSerializer,
    TraceParameters,
    TraceStatisticsParameters,
)
from rag.context import context_of_view
from rag.models import Span, Trace
from rag.services import traces as services
from rag.services.traces import trace_statistics

examples = load_examples("rag.api")

WITHHELD_HELP = "It holds text of a document that you may not read any more, and is empty here."


class TraceListedSerializer(ReadOnlyModelSerializer[Trace]):
    """A run without its steps."""

    elapsed_ms = serializers.SerializerMethodField(help_text="Null while it runs.")
    is_withheld = serializers.SerializerMethodField(help_text=WITHHELD_HELP)
    texts = ("question", "answer", "error")

    class Meta:
        model = Trace
        fields = [
            "id",
            "pipeline",
            "version",
            "state",
            "question",
            "started_at",
            "ended_at",
            "elapsed_ms",
            "input_tokens",
            "output_tokens",
            "error_code",
            "error",
            "removed_at",
            "is_withheld",
        ]

    def get_elapsed_ms(self, row: Trace) -> float | None:
        return _milliseconds(row) if row.ended_at else None

    def get_is_withheld(self, row: Trace) -> bool:
        return row.pk in self.context.get("withheld", ())

    def to_representation(self, instance: Trace) -> dict[str, Any]:
        serialized: dict[str, Any] = super().to_representation(instance)
        if serialized["is_withheld"]:
            serialized |= {name: "" for name in self.texts if name in serialized}
        return serialized


class TraceSpanSerializer(ReadOnlyModelSerializer[Span]):
    """A step, or what it called: the model, a tool, a sub-task (`node` with a `parent`)."""

    elapsed_ms = serializers.SerializerMethodField()
    texts = ("input", "output", "error")

    class Meta:
        model = Span
        fields = [
            "id",
            "parent",
            "ordinal",
            "kind",
            "node",
            "type",
            "iteration",
            "state",
            "started_at",
            "ended_at",
            "elapsed_ms",
            "input",
            "output",
            "is_cut",
            "input_tokens",
            "output_tokens",
            "error",
        ]
        extra_kwargs = {"is_cut": {"help_text": "Whether the texts were longer than is kept."}}

    def get_elapsed_ms(self, row: Span) -> float:
        return _milliseconds(row)

    def to_representation(self, instance: Span) -> dict[str, Any]:
        serialized: dict[str, Any] = super().to_representation(instance)
        if instance.trace_id in self.context.get("withheld", ()):
            serialized |= dict.fromkeys(self.texts, "")
        return serialized


class TraceSerializer(TraceListedSerializer):
    """A run with its steps, in the order in which they began."""

    definition = extend_schema_field(PipelineDefinitionSerializer)(serializers.JSONField)()
    spans = TraceSpanSerializer(many=True)

    class Meta(TraceListedSerializer.Meta):
        fields = [*TraceListedSerializer.Meta.fields, "answer", "definition", "spans"]


class TraceFiguresSerializer(serializers.Serializer[Any]):
    """Number of runs, their durations and tokens."""

    name = serializers.CharField()
    runs = serializers.IntegerField(help_text="Of a step: how often its turn came.")
    failed = serializers.IntegerField()
    p50_ms = serializers.FloatField(allow_null=True)
    p95_ms = serializers.FloatField(allow_null=True)
    p99_ms = serializers.FloatField(allow_null=True)
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()


class TracePipelineFiguresSerializer(TraceFiguresSerializer):
    """Statistics of a pipeline and of its steps."""

    nodes = TraceFiguresSerializer(many=True)


class TraceStatisticsSerializer(serializers.Serializer[Any]):
    """Statistics of runs by pipeline."""

    days = serializers.IntegerField()
    results = TracePipelineFiguresSerializer(many=True)


@extend_schema(tags=["pipelines"])
class TraceViewSet(WorkspaceViewSet):
    """Your runs of pipelines. Other users cannot see them."""

    serializer_class = TraceListedSerializer
    ordering = ("-started_at", "-id")
    lookup_value_converter = "int"
    required_scope = "chat"
    action_parameters = {"list": TraceParameters, "statistics": TraceStatisticsParameters}

    def get_queryset(self) -> QuerySet[Trace]:
        return self.in_workspace(Trace.objects.visible_to(self.request.user))

    @extend_schema(operation_id="traces_list", summary="List your runs of pipelines, newest first")
    def list(self, *args: Any, **kwargs: Any) -> Response:
        filters = {name: self.parameters.get(name) for name in ("pipeline", "state")}
        rows = self.get_queryset().filter(**{name: each for name, each in filters.items() if each})
        page = self.paginate_queryset(rows.defer("definition", "answer")) or []
        serialized = TraceListedSerializer(page, many=True, context=self._withheld(page))
        return self.get_paginated_response(serialized.data)

    @extend_schema(
        operation_id="traces_read",
        summary="Read a run with its steps",
        responses=TraceSerializer,
        examples=[examples.TRACE],
    )
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        return Response(TraceSerializer(row, context=self._withheld([row])).data)

    @extend_schema(operation_id="traces_delete", summary="Delete a run that has ended")
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        services.delete_trace(context=context_of_view(self), id=self.get_object().pk)
        return Response(status=204)

    @extend_schema(
        operation_id="traces_cancel",
        summary="Cancel a run",
        description="It ends within a second, wherever it runs. 409 if it has ended already.",
        request=None,
        responses={202: TraceListedSerializer, 409: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def cancel(self, *args: Any, **kwargs: Any) -> Response:
        row = services.cancel_run(context=context_of_view(self), id=self.get_object().pk)
        return Response(TraceListedSerializer(row, context=self._withheld([row])).data, status=202)

    @extend_schema(
        operation_id="traces_statistics",
        summary="How long your runs and their steps take",
        responses=TraceStatisticsSerializer,
        examples=[examples.TRACE_STATISTICS],
    )
    @action(detail=False, pagination_class=None)
    def statistics(self, *args: Any, **kwargs: Any) -> Response:
        days = self.parameters["days"]
        found = trace_statistics(
            context=context_of_view(self), days=days, pipeline=self.parameters.get("pipeline", "")
        )
        return Response(TraceStatisticsSerializer({"days": days, "results": found}).data)

    def _withheld(self, rows: Sequence[Trace]) -> dict[str, Any]:
        return {"withheld": services.withheld_traces(rows, context=context_of_view(self))}


def _milliseconds(row: Any) -> float:
    seconds: float = (row.ended_at - row.started_at).total_seconds()
    return round(seconds * 1000, 1)

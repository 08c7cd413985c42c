"""Traces over HTTP: a user's own pipeline runs, step by step."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.api import WorkspaceViewSet, operation
from common.serializers import ReadOnlyModelSerializer
from rag.api.pipelines import (
    DefinitionField,
    TraceParameters,
    TraceStatisticsParameters,
)
from rag.context import context_of_view
from rag.models import Span, Trace
from rag.services import traces as services
from rag.services.traces import trace_statistics

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

    definition = DefinitionField()
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


class TraceViewSet(WorkspaceViewSet):
    """Your runs of pipelines. Other users cannot see them."""

    tag = "pipelines"
    queryset = Trace.objects.all()
    serializer_class = TraceListedSerializer
    ordering = ("-started_at", "-id")
    required_scope = "chat"
    action_parameters = {"list": TraceParameters, "statistics": TraceStatisticsParameters}

    @operation(many=True)
    def list(self) -> Response:
        """List your runs of pipelines, newest first."""
        rows = self.filter_queryset(self.get_queryset()).defer("definition", "answer")
        page = self.paginate_queryset(rows) or []
        serialized = TraceListedSerializer(page, many=True, context=self._withheld(page))
        return self.get_paginated_response(serialized.data)

    @operation(gives={200: TraceSerializer}, operation_id="traces_read")
    def retrieve(self, row: Trace) -> Response:
        """Read a run with its steps."""
        return Response(TraceSerializer(row, context=self._withheld([row])).data)

    @operation(operation_id="traces_delete")
    def destroy(self, row: Trace) -> None:
        """Delete a run that has ended."""
        services.delete_trace(context=context_of_view(self), id=row.pk)

    @action(detail=True, methods=["post"])
    @operation(gives={202: TraceListedSerializer}, errors=(409,), operation_id="traces_cancel")
    def cancel(self, row: Trace) -> Response:
        """Cancel a run.

        It ends within a second, wherever it runs. 409 if it has ended already.
        """
        row = services.cancel_run(context=context_of_view(self), id=row.pk)
        return Response(TraceListedSerializer(row, context=self._withheld([row])).data, status=202)

    @action(detail=False, pagination_class=None)
    @operation(gives=TraceStatisticsSerializer, operation_id="traces_statistics")
    def statistics(self) -> Any:
        """How long your runs and their steps take."""
        days = self.parameters["days"]
        found = trace_statistics(
            context=context_of_view(self), days=days, pipeline=self.parameters.get("pipeline", "")
        )
        return {"days": days, "results": found}

    def _withheld(self, rows: Sequence[Trace]) -> dict[str, Any]:
        return {"withheld": services.withheld_traces(rows, context=context_of_view(self))}


def _milliseconds(row: Any) -> float:
    seconds: float = (row.ended_at - row.started_at).total_seconds()
    return round(seconds * 1000, 1)

"""Pipelines over HTTP: list, create, validate, read, replace, delete, run."""

from collections import defaultdict
from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.response import Response
from rest_framework.settings import api_settings

from accounts.api import ListParameters, WorkspaceParameters, WorkspaceView, operation
from accounts.api.etags import etag
from common.api import StreamNegotiation
from common.options import option_fields
from common.options.drf import OptionsSerializer, serializer_field
from common.serializers import TextField
from rag.answer_stream import answer_response
from rag.api.chat import AnswerInput, ChatAnswerSerializer, answer_object
from rag.context import context_of_view
from rag.models import Pipeline, Trace
from rag.pipelines.definition import (
    MAX_ID_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    NODE_TYPES,
    Definition,
    Edge,
    ModelOptions,
    Node,
    PipelineError,
    Worker,
)
from rag.services import pipelines as services
from rag.services.conversations import parse_history
from rag.services.traces import MAX_DAYS


class PipelineRunSerializer(AnswerInput):
    """A question to a pipeline."""

    question = TextField(max_length=MAX_QUESTION_CHARACTERS)


class TraceParameters(ListParameters):
    """Which runs to list, and which page."""

    pipeline = TextField(required=False, max_length=MAX_ID_CHARACTERS, help_text="Id of one.")
    state = serializers.ChoiceField(
        choices=Trace.State.values, required=False, help_text="Only runs in this state."
    )


class TraceStatisticsParameters(WorkspaceParameters):
    """Which pipeline, and how many days."""

    pipeline = TextField(
        required=False, max_length=MAX_ID_CHARACTERS, help_text="Id of one. Default: all."
    )
    days = serializers.IntegerField(
        default=7, min_value=1, max_value=MAX_DAYS, help_text="The last so many."
    )


class PartSerializer(OptionsSerializer):
    """A part of a definition, whose defaults are left out."""

    has_defaults = False


class PipelineModelSerializer(PartSerializer):
    """Which chat model a node uses, and with what options."""

    options = ModelOptions


class PipelineWorkerSerializer(PartSerializer):
    """A worker that a coordinator may assign steps to."""

    options = Worker


class PipelineNodeSerializer(PartSerializer):
    """A node. Which fields a type takes, and what they mean: docs/reference/pipelines.md."""

    options = Node

    type = serializers.ChoiceField(choices=sorted(NODE_TYPES))
    model = PipelineModelSerializer(required=False)

    def get_fields(self) -> dict[str, Any]:
        """Adds those of single types."""
        fields = super().get_fields()
        for kind in NODE_TYPES.values():
            for name, option in option_fields(kind).items():
                if name in fields:
                    continue
                takers = [each for each, of in NODE_TYPES.items() if name in of.model_fields]
                told = f"{option.description} Of nodes of type {' or '.join(takers)}."
                if name == "workers":
                    fields[name] = PipelineWorkerSerializer(
                        many=True, required=False, help_text=told
                    )
                else:
                    fields[name] = serializer_field(
                        option, has_default=False, required=False, help_text=told
                    )
        return fields


class PipelineEdgeSerializer(PartSerializer):
    """An edge from a node to the next."""

    options = Edge


class PipelineDefinitionSerializer(PartSerializer):
    """A pipeline: nodes, and edges between them."""

    options = Definition

    nodes = PipelineNodeSerializer(many=True)
    edges = PipelineEdgeSerializer(many=True, required=False)


class PipelineListedSerializer(serializers.Serializer[Pipeline]):
    """A pipeline without its definition."""

    id = serializers.CharField(source="slug")
    name = serializers.CharField()
    description = serializers.CharField()
    is_template = serializers.BooleanField(help_text="Whether it comes with the site.")
    version = serializers.IntegerField(allow_null=True, help_text="Counts changes.")
    updated_at = serializers.DateTimeField(allow_null=True)


@extend_schema_field(PipelineDefinitionSerializer)
class DefinitionField(serializers.JSONField):
    """A definition, as it is kept."""


class PipelineSerializer(PipelineListedSerializer):
    """A pipeline with its definition."""

    definition = DefinitionField()


class PipelineListSerializer(serializers.Serializer[Any]):
    """The workspace's own by id, then templates."""

    results = PipelineListedSerializer(many=True)


class PipelineCheckSerializer(serializers.Serializer[Any]):
    """A valid definition in its canonical form."""

    definition = DefinitionField()


#: A definition has errors of its own, so that no serializer reads it.
_DEFINITION = {"application/json": PipelineDefinitionSerializer}


class PipelineView(WorkspaceView):
    """Base of the pipeline endpoints: every fault of a definition is reported at once, with its
    path."""

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, PipelineError):
            faults: dict[str, list[str]] = defaultdict(list)
            for fault in exc.faults:
                faults[fault.path or api_settings.NON_FIELD_ERRORS_KEY].append(fault.message)
            exc = exceptions.ValidationError(dict(faults), code=exc.code)
        return super().handle_exception(exc)


class PipelinesView(PipelineView):
    """`/api/v1/pipelines/`: lists pipelines and creates them."""

    @operation(gives=PipelineListSerializer, operation_id="pipelines_list")
    def get(self) -> Any:
        """List pipelines: the workspace's own, then templates.

        A pipeline of the workspace replaces the template with the same id.
        """
        return {"results": services.list_pipelines(context=context_of_view(self))}

    @operation(
        takes=_DEFINITION,
        gives={201: PipelineSerializer},
        errors=(409,),
        once=True,
        operation_id="pipelines_create",
    )
    def post(self) -> Response:
        """Save a new pipeline.

        Needs the editor role. Every error is reported with its path, such as `nodes.2.tools.0`.
        """
        made = services.create_pipeline(context=context_of_view(self), definition=self.request.data)
        serialized = PipelineSerializer(made).data
        return Response(serialized, status=201, headers={"ETag": etag(serialized)})


class PipelineCheckView(PipelineView):
    """Validate a definition without storing it."""

    for_limited_keys = True
    required_scope = "read"

    @operation(
        takes=_DEFINITION, gives={200: PipelineCheckSerializer}, operation_id="pipelines_check"
    )
    def post(self) -> Response:
        """Check a definition without saving it."""
        checked = services.validate_pipeline(definition=self.request.data)
        return Response({"definition": checked.to_json()})


class PipelineDetailView(PipelineView):
    """`/api/v1/pipelines/{id}/`: reads, replaces and deletes one pipeline."""

    is_detail = True
    serializer_class = PipelineSerializer

    def locked_rows(self) -> QuerySet[Pipeline]:
        return Pipeline.objects.filter(workspace=self.workspace, slug=self.kwargs["id"])

    @operation(operation_id="pipelines_read")
    def get(self, *, id: str) -> Pipeline:
        """Read a pipeline or template."""
        return services.get_pipeline(context=context_of_view(self), id=id)

    @operation(takes=_DEFINITION, errors=(409,), operation_id="pipelines_replace")
    def put(self, *, id: str) -> Pipeline:
        """Replace what a pipeline does.

        Needs the editor role. The version goes up by one, unless nothing changed.
        """
        return services.update_pipeline(
            context=context_of_view(self), id=id, definition=self.request.data
        )

    @operation(errors=(409,), operation_id="pipelines_delete")
    def delete(self, *, id: str) -> None:
        """Delete a pipeline; traces of its runs stay.

        Needs the editor role. A template with the same id becomes available again.
        """
        services.delete_pipeline(context=context_of_view(self), id=id)


class PipelineRunView(PipelineView):
    """`/api/v1/pipelines/{id}/run/`: answers a question by a pipeline."""

    for_limited_keys = True
    required_scope = "chat"
    asks_model = True
    content_negotiation_class = StreamNegotiation

    @operation(
        takes=PipelineRunSerializer,
        gives={
            (200, "text/event-stream"): str,
            (200, "application/json"): ChatAnswerSerializer,
        },
        errors=(409, 502),
        operation_id="pipelines_run",
    )
    def post(self, *, id: str, question: str, stream: bool, **given: Any) -> HttpResponseBase:
        """Run a pipeline or template.

        Server-sent events as of `POST /chat/`, with `node` where a step begins or ends; `metadata`
        names the `trace`, by which the run can be cancelled. Nothing is kept in a conversation. 409
        `no_chat_model` where a step needs a chat model and there is none.
        """
        context = context_of_view(
            self, collections=given.get("collections", ()), filter=given.get("filter")
        )
        events = services.run_pipeline(
            id,
            question,
            context=context,
            history=parse_history(given.get("history", ())),
            model=given.get("model", ""),
            system_prompt=given.get("system_prompt", ""),
            language=given.get("language", ""),
        )
        return answer_response(
            events,
            request=self.request,
            cancelled=context.cancelled,
            streams=stream,
            make_body=lambda all_events: ChatAnswerSerializer(answer_object(all_events)).data,
        )

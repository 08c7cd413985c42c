"""Pipelines over HTTP: kept, checked, run."""

from collections import defaultdict
from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from accounts.api import WorkspaceView, once
from accounts.api.conditional import etag
from common.api import ErrorSerializer
from common.negotiation import ErrorsAsJson
from rag.api import pipeline_examples as examples
from rag.api.chat_serializers import AnswerSerializer, whole
from rag.api.pipeline_inputs import RunInput
from rag.api.pipeline_serializers import (
    CheckedSerializer,
    DefinitionSerializer,
    PipelineSerializer,
    PipelinesSerializer,
)
from rag.asking import context_of
from rag.models import Pipeline
from rag.pipelines.faults import PipelineError
from rag.services import pipelines as services
from rag.services.history import as_history
from rag.services.pipelines import Kept
from rag.streaming import answered


class PipelineView(WorkspaceView):
    """Whatever is wrong with a definition is told at once, each fault with its place."""

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, PipelineError):
            faults: dict[str, list[str]] = defaultdict(list)
            for fault in exc.faults:
                faults[fault.path or api_settings.NON_FIELD_ERRORS_KEY].append(fault.message)
            exc = exceptions.ValidationError(dict(faults), code=exc.code)
        return super().handle_exception(exc)

    def told(self, pipeline: Kept, *, status: int = 200) -> Response:
        """A pipeline."""
        shown = PipelineSerializer(pipeline).data
        return Response(shown, status=status, headers={"ETag": etag(shown)})


@extend_schema(tags=["pipelines"])
class PipelinesView(PipelineView):
    """All of them."""

    @extend_schema(
        operation_id="pipelines_list",
        summary="List pipelines: the workspace's own, then templates",
        description="A pipeline of the workspace stands before the template of the same id.",
        responses=PipelinesSerializer,
        examples=[examples.LIST],
    )
    def get(self, request: Request) -> Response:
        listed = services.list_pipelines(context=context_of(self))
        return Response(PipelinesSerializer({"results": listed}).data)

    @extend_schema(
        operation_id="pipelines_create",
        summary="Keep a new pipeline",
        description="Needs the editor role. Every fault is told with its place, `nodes.2.tools.0`.",
        request=DefinitionSerializer,
        responses={201: PipelineSerializer, 409: ErrorSerializer},
        examples=[examples.DEFINITION, examples.MADE],
    )
    @once
    def post(self, request: Request) -> Response:
        made = services.create_pipeline(context=context_of(self), definition=_body(request))
        return self.told(made, status=201)


@extend_schema(tags=["pipelines"])
class PipelineCheckView(PipelineView):
    """A definition that is not kept."""

    required_scope = "read"

    @extend_schema(
        operation_id="pipelines_check",
        summary="Check a definition, and keep nothing",
        request=DefinitionSerializer,
        responses={200: CheckedSerializer},
        examples=[examples.DEFINITION, examples.CHECKED],
    )
    def post(self, request: Request) -> Response:
        checked = services.validate_pipeline(definition=_body(request))
        return Response({"definition": checked.to_json()})


@extend_schema(tags=["pipelines"])
class PipelineDetailView(PipelineView):
    """One of them."""

    is_thing = True

    def locked_rows(self) -> QuerySet[Pipeline]:
        return Pipeline.objects.filter(workspace=self.workspace, slug=self.kwargs["id"])

    @extend_schema(
        operation_id="pipelines_read",
        summary="Read a pipeline or template",
        responses=PipelineSerializer,
        examples=[examples.PIPELINE],
    )
    def get(self, request: Request, id: str) -> Response:
        return self.told(services.get_pipeline(context=context_of(self), id=id))

    @extend_schema(
        operation_id="pipelines_replace",
        summary="Replace what a pipeline does",
        description="Needs the editor role. The version goes up by one, unless nothing changed.",
        request=DefinitionSerializer,
        responses={200: PipelineSerializer, 409: ErrorSerializer},
        examples=[examples.DEFINITION, examples.PIPELINE],
    )
    def put(self, request: Request, id: str) -> Response:
        changed = services.update_pipeline(
            context=context_of(self), id=id, definition=_body(request)
        )
        return self.told(changed)

    @extend_schema(
        operation_id="pipelines_delete",
        summary="Delete a pipeline; traces of its runs stay",
        description="Needs the editor role. A template of the same id is there again.",
        responses={204: None, 409: ErrorSerializer},
    )
    def delete(self, request: Request, id: str) -> Response:
        services.delete_pipeline(context=context_of(self), id=id)
        return Response(status=204)


@extend_schema(tags=["pipelines"])
class PipelineRunView(PipelineView):
    """A run."""

    required_scope = "chat"
    asks_model = True
    content_negotiation_class = ErrorsAsJson

    @extend_schema(
        operation_id="pipelines_run",
        summary="Run a pipeline or template",
        description="Server-sent events as of `POST /chat/`, with `node` where a step begins or"
        " ends; `metadata` names the `trace`, by which the run can be cancelled. Nothing is kept in"
        " a conversation. 409 `no_chat_model` where a step needs a chat model and there is none.",
        request=RunInput,
        responses={
            (200, "text/event-stream"): str,
            (200, "application/json"): AnswerSerializer,
            409: ErrorSerializer,
            502: ErrorSerializer,
            503: ErrorSerializer,
        },
        examples=[examples.QUESTION],
    )
    def post(self, request: Request, id: str) -> HttpResponseBase:
        body = RunInput(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        context = context_of(
            self, collections=asked.get("collections", ()), filter=asked.get("filter")
        )
        events = services.run_pipeline(
            id,
            asked["question"],
            context=context,
            history=as_history(asked.get("history", ())),
            model=asked.get("model", ""),
            system_prompt=asked.get("system_prompt", ""),
            language=asked.get("language", ""),
        )
        return answered(
            events,
            request=request,
            cancelled=context.cancelled,
            streams=asked["stream"],
            whole=lambda told: AnswerSerializer(whole(told)).data,
        )


def _body(request: Request) -> Any:
    """The definition that a request brings: its parser has seen that it is a bounded object."""
    return request.data

"""Summaries over HTTP: of a document, and of what the filters of a search leave."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceParameters, WorkspaceView
from common.api import ErrorSerializer
from common.openapi import load_examples
from common.serializers import StrictSerializer
from rag.context import context_of_view
from rag.models import Summary
from rag.services.summaries import cancel_summary, get_summary
from rag.tasks import request_summary
from rag.tools.summaries import (
    SENTENCES,
    TextToSummarize,
    document_text_of,
    find_document,
    scope_text_of,
)
from search.api.inputs import ScopeInput
from search.api.views import request_scope

DESCRIPTION = (
    "The most central sentences, quoted in the order of the text, each with its place; or what a"
    " chat model wrote, once that was asked for with POST. It is kept until the text changes."
)
KIND = "`about`: its subject in a few sentences. `summary`: what its parts say."

examples = load_examples("rag.api")


class SummaryParameters(WorkspaceParameters):
    """Which summary."""

    kind = serializers.ChoiceField(choices=list(SENTENCES), default="summary", help_text=KIND)


class ScopeSummaryParameters(ScopeInput, SummaryParameters):
    """Which summary, of which documents."""


class SummaryRequestSerializer(StrictSerializer):
    """What a chat model is to write."""

    kind = serializers.ChoiceField(choices=list(SENTENCES), default="summary", help_text=KIND)
    model = serializers.CharField(
        required=False, default="", max_length=200, help_text="Default: the site's."
    )


class SummaryCitationSerializer(serializers.Serializer[Any]):
    """`[number]` stands in the text at the offset `at`; `quote` is the document's text from `start`
    to `end`."""

    number = serializers.IntegerField()
    chunk = serializers.IntegerField()
    document = serializers.IntegerField()
    document_key = serializers.CharField()
    version = serializers.IntegerField()
    collection = serializers.CharField()
    title = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    page = serializers.IntegerField(allow_null=True)
    location = serializers.CharField()
    url = serializers.CharField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    quote = serializers.CharField()
    at = serializers.IntegerField()


class SummarySerializer(serializers.Serializer[Summary]):
    """A summary, or how far the chat model is that writes it."""

    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=list(Summary.State.values))
    model = serializers.CharField(help_text="Empty: sentences of the text are quoted.")
    text = serializers.CharField()
    citations = SummaryCitationSerializer(many=True)
    documents = serializers.ListField(child=serializers.IntegerField())
    passages_read = serializers.SerializerMethodField(
        help_text="Fewer than `passages`: of a long text the most central ones were read."
    )
    passages = serializers.IntegerField(source="passage_count")
    calls_done = serializers.IntegerField()
    calls_total = serializers.IntegerField(help_text="0: it waits for a worker.")
    error = serializers.CharField()
    created_at = serializers.DateTimeField()

    def get_passages_read(self, row: Summary) -> int:
        return len(row.chunks)


class SummaryBase(WorkspaceView):
    """What both addresses do with their text."""

    for_limited_keys = True

    def read(self, text: TextToSummarize) -> Response:
        return Response(SummarySerializer(get_summary(text, self.parameters["kind"])).data)

    def write(self, request: Request, text: TextToSummarize) -> Response:
        body = SummaryRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = request_summary(text, **body.validated_data)
        return Response(SummarySerializer(row).data, status=202 if row.is_unfinished else 200)

    def stop(self, text: TextToSummarize) -> Response:
        cancel_summary(text, self.parameters["kind"])
        return Response(status=204)


@extend_schema(tags=["documents"])
class DocumentSummaryView(SummaryBase):
    """`/api/v1/documents/{id}/summary/`."""

    action_parameters = {"get": SummaryParameters, "delete": SummaryParameters}
    action_scopes = {"get": "read", "post": "chat", "delete": "chat"}

    def text(self, pk: int) -> TextToSummarize:
        return document_text_of(find_document(context_of_view(self), pk))

    @extend_schema(
        operation_id="documents_summary",
        summary="Summarise a document",
        description=DESCRIPTION,
        responses=SummarySerializer,
    )
    def get(self, request: Request, pk: int) -> Response:
        return self.read(self.text(pk))

    @extend_schema(
        operation_id="documents_summary_write",
        summary="Have a chat model summarise a document",
        description="It is written in the background: GET shows the progress. For a long"
        " document the most central passages are read, up to the site's limit of"
        " tokens. 409 without a chat model.",
        request=SummaryRequestSerializer,
        examples=[examples.SUMMARY],
        responses={200: SummarySerializer, 202: SummarySerializer, 409: ErrorSerializer},
    )
    def post(self, request: Request, pk: int) -> Response:
        return self.write(request, self.text(pk))

    @extend_schema(
        operation_id="documents_summary_stop",
        summary="Stop a chat model that summarises a document",
        request=None,
        responses={204: None},
    )
    def delete(self, request: Request, pk: int) -> Response:
        return self.stop(self.text(pk))


@extend_schema(tags=["search"])
class ScopeSummaryView(SummaryBase):
    """`/api/v1/summary/`."""

    parameters_class = ScopeSummaryParameters
    action_scopes = {"get": "read", "post": "chat", "delete": "chat"}

    def text(self, request: Request) -> TextToSummarize:
        context_of_view(self).require("read")
        return scope_text_of(request_scope(request.user, self.workspace, self.parameters))

    @extend_schema(
        operation_id="summary",
        summary="Summarise the documents that filters leave",
        description=DESCRIPTION,
        responses=SummarySerializer,
    )
    def get(self, request: Request) -> Response:
        return self.read(self.text(request))

    @extend_schema(
        operation_id="summary_write",
        summary="Have a chat model summarise the documents that filters leave",
        request=SummaryRequestSerializer,
        examples=[examples.SUMMARY],
        responses={200: SummarySerializer, 202: SummarySerializer, 409: ErrorSerializer},
    )
    def post(self, request: Request) -> Response:
        return self.write(request, self.text(request))

    @extend_schema(
        operation_id="summary_stop",
        summary="Stop a chat model that summarises what filters leave",
        request=None,
        responses={204: None},
    )
    def delete(self, request: Request) -> Response:
        return self.stop(self.text(request))

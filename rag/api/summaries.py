"""Summaries over HTTP: of a document, and of what the filters of a search leave."""

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from accounts.api import WorkspaceParameters, WorkspaceView, operation
from common.serializers import StrictSerializer
from rag.api.chat import PassageLocationSerializer
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

KIND = "`about`: its subject in a few sentences. `summary`: what its parts say."


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


class SummaryCitationSerializer(PassageLocationSerializer):
    """`[number]` stands in the text at the offset `at`; `quote` is the document's text from `start`
    to `end`."""

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


#: The answer is 202 as long as the chat model has not ended.
WRITTEN: dict[str, Any] = {
    "gives": {200: SummarySerializer, 202: SummarySerializer},
    "errors": (409,),
}


class SummaryBase(WorkspaceView):
    """What both addresses do with their text."""

    for_limited_keys = True
    action_scopes = {"get": "read", "post": "chat", "delete": "chat"}
    serializer_class = SummarySerializer

    def read(self, text: TextToSummarize) -> Summary:
        return get_summary(text, self.parameters["kind"])

    def write(self, text: TextToSummarize, **asked: Any) -> Response:
        row = request_summary(text, user=self.request.user, **asked)
        return Response(SummarySerializer(row).data, status=202 if row.is_unfinished else 200)

    def stop(self, text: TextToSummarize) -> None:
        cancel_summary(text, self.parameters["kind"])


class DocumentSummaryView(SummaryBase):
    """`/api/v1/documents/{id}/summary/`."""

    action_parameters = {"get": SummaryParameters, "delete": SummaryParameters}

    def operation_arguments(self, kwargs: dict[str, Any]) -> list[Any]:
        return [document_text_of(find_document(context_of_view(self), kwargs.pop("pk")))]

    @operation(operation_id="documents_summary")
    def get(self, text: TextToSummarize) -> Summary:
        """Summarise a document.

        The most central sentences, quoted in the order of the text, each with its place; or what a
        chat model wrote, once that was asked for with POST. It is kept until the text changes.
        """
        return self.read(text)

    @operation(takes=SummaryRequestSerializer, operation_id="documents_summary_write", **WRITTEN)
    def post(self, text: TextToSummarize, **asked: Any) -> Response:
        """Have a chat model summarise a document.

        It is written in the background: GET shows the progress. For a long document the most
        central passages are read, up to the site's limit of tokens. 409 without a chat model.
        """
        return self.write(text, **asked)

    @operation(operation_id="documents_summary_stop")
    def delete(self, text: TextToSummarize) -> None:
        """Stop a chat model that summarises a document."""
        self.stop(text)


class ScopeSummaryView(SummaryBase):
    """`/api/v1/summary/`."""

    tag = "search"
    parameters_class = ScopeSummaryParameters

    def operation_arguments(self, kwargs: dict[str, Any]) -> list[Any]:
        context_of_view(self).require("read")
        scope = request_scope(self.request.user, self.workspace, self.parameters)
        return [scope_text_of(scope)]

    @operation(operation_id="summary")
    def get(self, text: TextToSummarize) -> Summary:
        """Summarise the documents that filters leave.

        The most central sentences, quoted in the order of the text, each with its place; or what a
        chat model wrote, once that was asked for with POST. It is kept until the text changes.
        """
        return self.read(text)

    @operation(takes=SummaryRequestSerializer, operation_id="summary_write", **WRITTEN)
    def post(self, text: TextToSummarize, **asked: Any) -> Response:
        """Have a chat model summarise the documents that filters leave."""
        return self.write(text, **asked)

    @operation(operation_id="summary_stop")
    def delete(self, text: TextToSummarize) -> None:
        """Stop a chat model that summarises what filters leave."""
        self.stop(text)

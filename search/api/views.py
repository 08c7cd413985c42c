"""Search: the request is handed to the service, its answer put into JSON."""

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from accounts.api import WorkspaceView
from common.api import ErrorSerializer
from search.api import examples
from search.api.inputs import ExportParameters, SearchInput, SearchParameters
from search.api.scoping import asked_scope, called_q
from search.api.serializers import ExportSerializer, SearchAnswerSerializer, answer_of
from search.asked import SearchQuery
from search.export import MOST_HITS, download, export_hits
from search.log import record_search
from search.results import Hit
from search.services import search

#: What a question is asked by, handed on to the services as it is.
QUESTION = (
    "mode",
    "sort",
    "fusion",
    "rrf_k",
    "weights",
    "depth",
    "rerank",
    "min_similarity",
    "min_rerank",
    "diversify",
    "group",
    "ef_search",
    "probes",
)
OPTIONS = (*QUESTION, "k", "offset", "expand")


@extend_schema(tags=["search"], responses={200: SearchAnswerSerializer, 503: ErrorSerializer})
class SearchView(WorkspaceView):
    """Passages that answer a question, best first."""

    action_parameters = {"get": SearchParameters}
    required_scope = "read"

    @extend_schema(operation_id="search", summary="Search", examples=[examples.ANSWER])
    def get(self, request: Request) -> Response:
        return self._answer(self.parameters)

    @extend_schema(
        operation_id="search_post",
        summary="Search with a JSON body",
        description="For questions that are too long for an address, or not for its log.",
        request=SearchInput,
        examples=[examples.QUESTION, examples.ANSWER],
    )
    def post(self, request: Request) -> Response:
        body = SearchInput(data=request.data)
        body.is_valid(raise_exception=True)
        return self._answer(body.validated_data)

    def _answer(self, asked: dict[str, Any]) -> Response:
        scope = asked_scope(self.request.user, self.workspace, asked)
        options = {name: asked[name] for name in OPTIONS if name in asked}
        with called_q():
            result = search(asked["q"], scope=scope, facets=asked.get("facet", ()), **options)
        record_search(result=result, scope=scope, user=self.request.user, source="api")
        return Response(answer_of(result, request=self.request, explain=asked["explain"]))


class ExportView(WorkspaceView):
    """Hits to take along."""

    action_parameters = {"get": ExportParameters}
    required_scope = "read"

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """`as` says what is sent, whatever the header Accept; errors are JSON."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        tags=["search"],
        operation_id="search_export",
        summary="Export hits as CSV or JSON",
        description=f"The first {MOST_HITS:,} hits of one ranking, in the order that `sort` asks"
        " for. In CSV, text that a spreadsheet would take for a formula has an apostrophe before"
        " it.",
        responses={
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, description="A line a hit."),
            (200, "application/json"): ExportSerializer,
            503: ErrorSerializer,
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        asked = self.parameters
        scope = asked_scope(request.user, self.workspace, asked)
        options = {name: asked[name] for name in QUESTION if name in asked}
        with called_q():
            export = export_hits(
                SearchQuery(asked["q"], expand="none", **options), scope=scope, link=self._link
            )
        return download(export, kind=asked["as"])

    def _link(self, hit: Hit) -> str:
        return str(
            reverse("api:document-detail", kwargs={"pk": hit.document_id}, request=self.request)
        )

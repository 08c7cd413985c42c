"""The graph as a whole: merged, counted, taken along, read anew from documents."""

from dataclasses import asdict
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import once
from common.api import ErrorSerializer
from common.errors import Conflict
from common.negotiation import ErrorsAsJson
from documents.models import Collection
from documents.services import get_collection
from graph import services
from graph.api import examples
from graph.api import whole_inputs as inputs
from graph.api import whole_serializers as serializers
from graph.api.base import GraphView
from graph.api.parsers import JSON_LINES
from graph.api.walks import GRAPHML, as_file
from graph.services.extraction import extraction_state, reextract_collection
from graph.services.lines import export_lines


@extend_schema(tags=["graph"])
class MergeView(GraphView):
    """Nodes that are one thing."""

    @extend_schema(
        operation_id="graph_merge",
        summary="Merge nodes into one",
        description="Edges, mentions and names of the others go to the one that stays, each once;"
        " their ids and names mean it from then on, also when documents are read again. With"
        " `preview` nothing changes. 404 where one of them is not there.",
        request=inputs.MergeBody,
        responses={200: serializers.MergeAnswerSerializer},
        examples=[examples.MERGE, examples.MERGE_ANSWER],
    )
    @once
    def post(self, request: Request) -> Response:
        body = self.body(inputs.MergeBody)
        scope, preview, what = self.editable, body.pop("preview"), body
        done = (
            services.merge_preview(scope=scope, **what)
            if preview
            else services.merge_nodes(scope=scope, **what).done
        )
        answer = {"preview": preview, "keep": what["keep"], **asdict(done)}
        return Response(serializers.MergeAnswerSerializer(answer).data)


@extend_schema(tags=["graph"])
class StatsView(GraphView):
    """How large it is."""

    @extend_schema(
        operation_id="graph_stats",
        summary="Read how large the graph is",
        responses=serializers.StatisticsSerializer,
        examples=[examples.STATISTICS],
    )
    def get(self, request: Request) -> Response:
        found = services.graph_statistics(scope=self.scope)
        return Response(serializers.StatisticsSerializer(found).data)


@extend_schema(tags=["graph"])
class ExportView(GraphView):
    """All of it, to take along."""

    action_parameters = {"get": inputs.ExportParameters}
    content_negotiation_class = ErrorsAsJson

    @extend_schema(
        operation_id="graph_export",
        summary="Export the graph as GraphML or JSON Lines",
        description="All that you may see: as GraphML nodes, documents, edges, and what documents"
        " mention and refer to; as JSON Lines the nodes and edges that were given.",
        responses={(200, GRAPHML): str, (200, JSON_LINES): str},
        examples=[examples.GRAPHML, examples.LINES],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        if self.parameters["format"] == "graphml":
            return as_file(services.export_graphml(scope=self.scope))
        lines = export_lines(scope=self.scope, extracted=self.parameters.get("extracted", False))
        return as_file(lines, content_type=JSON_LINES, suffix="jsonl")


@extend_schema(tags=["graph"])
class ExtractionsView(GraphView):
    """What documents tell."""

    action_parameters = {"get": inputs.ExtractionParameters}

    @extend_schema(
        operation_id="graph_extractions",
        summary="Read how far a collection is read for the graph",
        responses=serializers.ExtractionSerializer,
        examples=[examples.EXTRACTION],
    )
    def get(self, request: Request) -> Response:
        collection = self._collection(self.parameters["collection"])
        return Response(serializers.ExtractionSerializer(_state(collection)).data)

    @extend_schema(
        operation_id="graph_reextract",
        summary="Have a collection read for the graph again",
        description="In the background; what is known stays until then. 409 where its `graph` is"
        " `off`.",
        request=inputs.ReextractionBody,
        responses={202: serializers.ReextractionSerializer, 409: ErrorSerializer},
        examples=[examples.REEXTRACTION, examples.REEXTRACTION_ANSWER],
    )
    @once
    def post(self, request: Request) -> Response:
        body = self.body(inputs.ReextractionBody)
        collection = self._collection(body["collection"])
        self.require_editor(self.workspace)
        if collection.graph == Collection.Graph.OFF:
            raise Conflict(
                f"“{collection.slug}” is not read for the graph. Set its `graph` to rules or llm."
            )
        queued = reextract_collection(collection=collection, only_stale=body["only_stale"])
        answer = {"queued": queued, "state": _state(collection)}
        return Response(serializers.ReextractionSerializer(answer).data, status=202)

    def _collection(self, slug: str) -> Collection:
        return get_collection(workspace=self.workspace, slug=slug)


def _state(collection: Collection) -> dict[str, Any]:
    state = extraction_state(collection=collection)
    return {"collection": collection.slug, "graph": collection.graph, **asdict(state)}

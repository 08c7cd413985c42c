"""What is around a node, and the ways between two."""

from collections.abc import Iterator
from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.negotiation import ErrorsAsJson
from graph import services
from graph.api import examples
from graph.api import walk_inputs as inputs
from graph.api import walk_serializers as serializers
from graph.api.base import GraphView
from graph.reading.results import PathFound

GRAPHML = "application/graphml+xml"
LONG_IDS = "For ids that are too long for an address, of which servers take about 8,000 bytes."


@extend_schema(tags=["graph"])
class NeighborsView(GraphView):
    """What is one step away."""

    action_parameters = {"get": inputs.NeighborParameters}

    @extend_schema(
        operation_id="graph_neighbors",
        summary="List what is related to a node",
        description="In natural order: `…:2` before `…:10`. Besides edges these are relations that"
        " documents tell themselves: `HAS_CHUNK` (document → passage), `NEXT` (passage → passage),"
        " `MENTIONS` (document or passage → node), `REFERS_TO` (document → document),"
        " `VERSION_OF` (an old version → the current one).",
        responses=serializers.NeighboursSerializer,
        examples=[examples.NEIGHBORS],
    )
    def get(self, request: Request) -> Response:
        asked = {**self.parameters}
        asked.pop("workspace", None)
        found = services.neighbors(scope=self.scope, **asked)
        answer = {
            "node": found.vertex,
            "total": found.total,
            "next": self.address_of(found.next),
            "results": found.items,
            "truncated": found.truncated,
        }
        return Response(serializers.NeighboursSerializer(answer).data)


@extend_schema(tags=["graph"])
class MentionsView(GraphView):
    """Where a node comes from."""

    action_parameters = {"get": inputs.MentionParameters}

    @extend_schema(
        operation_id="graph_mentions",
        summary="List the passages that speak of a node",
        responses=serializers.MentionsSerializer,
        examples=[examples.MENTIONS],
    )
    def get(self, request: Request) -> Response:
        asked = {**self.parameters}
        asked.pop("workspace", None)
        found = services.mentions_of(scope=self.scope, **asked)
        answer = {
            "node": found.vertex,
            "next": self.address_of(found.next),
            "results": found.items,
        }
        return Response(serializers.MentionsSerializer(answer).data)


@extend_schema(tags=["graph"], responses=serializers.TraversalSerializer)
class TraverseView(GraphView):
    """What is within reach."""

    action_parameters = {"get": inputs.TraversalParameters}
    required_scope = "read"

    @extend_schema(
        operation_id="graph_traverse",
        summary="Walk from a node, the nearest first",
        examples=[examples.TRAVERSAL],
    )
    def get(self, request: Request) -> Response:
        return self._reached(self.asked(inputs.TraversalBody))

    @extend_schema(
        operation_id="graph_traverse_post",
        summary="Walk from a node, asked with a JSON body",
        description=LONG_IDS,
        request=inputs.TraversalBody,
        examples=[examples.TRAVERSAL_BODY, examples.TRAVERSAL],
    )
    def post(self, request: Request) -> Response:
        return self._reached(self.body(inputs.TraversalBody))

    def _reached(self, asked: dict[str, Any]) -> Response:
        found = services.traverse(scope=self.scope, rels=asked.pop("rel", ()), **asked)
        return Response(serializers.TraversalSerializer(found).data)


@extend_schema(tags=["graph"], responses=serializers.PathSerializer)
class PathsView(GraphView):
    """How two nodes are connected."""

    action_parameters = {"get": inputs.PathParameters}
    required_scope = "read"

    @extend_schema(
        operation_id="graph_paths",
        summary="Find a shortest way between two nodes",
        description="That there is none is an answer: `found` is false then. 404 where one of the"
        " two is not there.",
        examples=[examples.PATH],
    )
    def get(self, request: Request) -> Response:
        return self._way(self.asked(inputs.PathBody))

    @extend_schema(
        operation_id="graph_paths_post",
        summary="Find a shortest way, asked with a JSON body",
        description=LONG_IDS,
        request=inputs.PathBody,
        examples=[examples.PATH_BODY, examples.PATH],
    )
    def post(self, request: Request) -> Response:
        return self._way(self.body(inputs.PathBody))

    def _way(self, asked: dict[str, Any]) -> Response:
        found = services.shortest_path(scope=self.scope, rels=asked.pop("rel", ()), **asked)
        return Response(serializers.PathSerializer(_as_shown(found)).data)


def _as_shown(found: PathFound) -> dict[str, Any]:
    path = found.path
    return {
        "found": path is not None,
        "length": path.length if path else None,
        "nodes": path.vertices if path else (),
        "edges": path.links if path else (),
        "max_depth": found.max_depth,
        "truncated": found.truncated,
    }


@extend_schema(
    tags=["graph"],
    responses={(200, "application/json"): serializers.SubgraphSerializer, (200, GRAPHML): str},
)
class SubgraphView(GraphView):
    """What is around some nodes."""

    action_parameters = {"get": inputs.SubgraphParameters}
    required_scope = "read"
    content_negotiation_class = ErrorsAsJson

    @extend_schema(
        operation_id="graph_subgraph",
        summary="Take what is around some nodes, with all relations among it",
        description="As cytoscape.js reads it, or as a file of GraphML. Those of the ids that are"
        " not there are named in `missing`; 404 where none is.",
        examples=[examples.SUBGRAPH, examples.GRAPHML],
    )
    def get(self, request: Request) -> HttpResponseBase:
        return self._taken(self.asked(inputs.SubgraphBody))

    @extend_schema(
        operation_id="graph_subgraph_post",
        summary="Take what is around some nodes, asked with a JSON body",
        description=LONG_IDS,
        request=inputs.SubgraphBody,
        examples=[examples.SUBGRAPH_BODY, examples.SUBGRAPH, examples.GRAPHML],
    )
    def post(self, request: Request) -> HttpResponseBase:
        return self._taken(self.body(inputs.SubgraphBody))

    def _taken(self, asked: dict[str, Any]) -> HttpResponseBase:
        around: dict[str, Any] = {
            "ids": asked["id"],
            "hops": asked["hops"],
            "cap": asked["limit"],
            "rels": asked.get("rel", ()),
            "labels": asked.get("label", ()),
        }
        if asked["format"] == "graphml":
            return as_file(services.export_graphml(scope=self.scope, **around))
        found = services.subgraph(scope=self.scope, grain=asked["grain"], **around)
        drawn = services.export_cytoscape(found)
        return Response({**drawn, "missing": list(found.missing)})


def as_file(
    parts: Iterator[bytes], *, content_type: str = GRAPHML, suffix: str = "graphml"
) -> StreamingHttpResponse:
    """A download."""
    name = f"graph-{timezone.now():%Y-%m-%d}.{suffix}"
    return StreamingHttpResponse(
        parts,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )

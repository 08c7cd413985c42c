"""Edges: listed, written, deleted."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import NotFound
from common.pagination import CursorPagination
from graph import services
from graph.api import examples, inputs, serializers
from graph.api.base import GraphView, naming
from graph.models import Edge, Node, Origin
from graph.reading.resolving import resolve
from graph.reading.stands_for import stands_for
from graph.reading.vertices import Vertex, load
from graph.scopes import GraphScope, sight

ENDS = ("source", "target")


@extend_schema(tags=["graph"])
class EdgesView(GraphView):
    """Edges of the graph."""

    action_parameters = {"get": inputs.EdgeFilter, "delete": inputs.EdgeName}
    pagination_class = CursorPagination

    @extend_schema(
        operation_id="graph_edges",
        summary="List edges, newest first",
        description="Those that somebody gave or that passages tell of. Relations that documents"
        " tell themselves (`HAS_CHUNK`, `MENTIONS`, `REFERS_TO`, `NEXT`, `VERSION_OF`) are read at"
        " `/graph/neighbors/`.",
        responses=serializers.EdgeSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        rows, is_one = self._rows(), {"source", "rel", "target"} <= self.parameters.keys()
        paginator = self.pagination_class()
        page = paginator.paginate_queryset(
            rows if is_one else rows.defer("props"), request, view=self
        )
        shown: Any = _shown(self.scope, page or ())
        return paginator.get_paginated_response(serializers.EdgeSerializer(shown, many=True).data)

    def _rows(self) -> QuerySet[Edge]:
        rows = Edge.objects.visible_to(self.request.user).filter(workspace=self.workspace)
        rows = rows.select_related(*ENDS).defer("source__props", "target__props")
        if rel := self.parameters.get("rel"):
            rows = rows.filter(rel=rel)
        asked = {end: self.parameters[end] for end in ENDS if end in self.parameters}
        found = resolve(sight(self.scope), asked.values()) if asked else {}
        for end, node_id in asked.items():
            rows = rows.filter(**{f"{end}__in": _rows_of(found.get(node_id))})
        return rows

    @extend_schema(
        operation_id="graph_edge_upsert",
        summary="Make or change an edge",
        description="201 for a new one, else 200. What is left out stays as it is. The same again"
        " changes nothing, so that to send it again does no harm.",
        request=inputs.EdgeBody,
        responses={
            200: serializers.EdgeChangeSerializer,
            201: serializers.EdgeChangeSerializer,
        },
        examples=[examples.EDGE_BODY, examples.EDGE_CHANGE],
    )
    def put(self, request: Request) -> Response:
        body = self.body(inputs.EdgeBody)
        with naming(body, *ENDS):
            change = services.upsert_edge(scope=self.editable, **body)
        edge = {**asdict(change), "origin": Origin.GIVEN}
        answer = {
            "edge": edge,
            "created": change.created,
            "changed": change.changed,
            "stubs": change.stubs,
        }
        shown = serializers.EdgeChangeSerializer(answer).data
        return Response(shown, status=201 if change.created else 200)

    @extend_schema(
        operation_id="graph_edge_delete", summary="Delete an edge", responses={204: None}
    )
    def delete(self, request: Request) -> Response:
        name = {part: self.parameters[part] for part in ("source", "rel", "target")}
        if not services.delete_edge(scope=self.editable, **name):
            raise NotFound("There is no such edge, or you may not see it.")
        return Response(status=204)


def _shown(scope: GraphScope, rows: Sequence[Edge]) -> list[dict[str, Any]]:
    """Edges with the ids that their ends have outside. Those whose ends cannot be seen are left
    out."""
    ends = {(row.pk, end): stands_for(getattr(row, end)) for row in rows for end in ENDS}
    found = load(sight(scope), ends.values())
    return [
        {
            "source": found[ends[row.pk, "source"]].id,
            "rel": row.rel,
            "target": found[ends[row.pk, "target"]].id,
            "weight": row.weight,
            "origin": row.origin,
            "props": None if "props" in row.get_deferred_fields() else row.props,
        }
        for row in rows
        if all(ends[row.pk, end] in found for end in ENDS)
    ]


def _rows_of(vertex: Vertex | None) -> QuerySet[Node]:
    """The rows that stand for it."""
    if vertex is None:
        return Node.objects.none()
    if vertex.kind == "node":
        return Node.objects.filter(pk=vertex.pk)
    is_document = vertex.kind == "document"
    return Node.objects.filter(Q(document=vertex.pk) if is_document else Q(chunk=vertex.pk))

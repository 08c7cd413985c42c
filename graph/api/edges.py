"""Edges: listed, written, deleted."""

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import NotFound
from graph import services
from graph.api import examples, inputs, serializers
from graph.api.base import GraphView, naming
from graph.models import Edge, Origin
from graph.reading.edges import list_edges
from graph.scopes import sight

NAMES = ("source", "rel", "target")


@extend_schema(tags=["graph"])
class EdgesView(GraphView):
    """Edges of the graph."""

    action_parameters = {"get": inputs.EdgeFilter, "delete": inputs.EdgeName}
    is_thing = True
    names = NAMES

    def read_thing(self) -> Any:
        page = self._page({name: self.named(name) for name in NAMES})
        if not page["results"]:
            raise _no_edge()
        return page

    def locked_rows(self) -> QuerySet[Edge]:
        ends = [
            services.get_node(scope=self.scope, id=self.named(name))
            for name in ("source", "target")
        ]
        source, target = (each.pk if each and each.kind == "node" else None for each in ends)
        return Edge.objects.filter(source=source, rel=self.named("rel"), target=target)

    @extend_schema(
        operation_id="graph_edges",
        summary="List edges, newest first",
        description="Those that somebody gave or that passages tell of. Relations that documents"
        " tell themselves (`HAS_CHUNK`, `MENTIONS`, `REFERS_TO`, `NEXT`, `VERSION_OF`) are read at"
        " `/graph/neighbors/`.",
        responses=serializers.EdgePageSerializer,
        examples=[examples.EDGES],
    )
    def get(self, request: Request) -> Response:
        return Response(self._page({name: self.parameters.get(name) for name in NAMES}))

    def _page(self, named: dict[str, str | None]) -> Any:
        page = list_edges(
            sight(self.scope),
            **named,
            limit=self.parameters.get("page_size", 50),
            cursor=self.parameters.get("cursor", ""),
        )
        edges = [{**asdict(each.link), "props": each.props} for each in page.items]
        answer = {"next": self.address_of(page.next), "results": edges}
        return serializers.EdgePageSerializer(answer).data

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
        with naming(body, "source", "target"):
            change = services.upsert_edge(scope=self.editable, **body)
        answer = {
            "edge": {**asdict(change), "origin": Origin.GIVEN},
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
        name = {part: self.parameters[part] for part in NAMES}
        if not services.delete_edge(scope=self.editable, **name):
            raise _no_edge()
        return Response(status=204)


def _no_edge() -> NotFound:
    return NotFound("There is no such edge, or you may not see it.")

"""Nodes: found, read, written, deleted."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.pagination import CursorPagination
from graph import services
from graph.api import examples, inputs, serializers
from graph.api.base import GraphView, naming, no_node
from graph.models import Node
from graph.reading.vertices import KINDS, Ref, Vertex, load
from graph.scopes import sight
from graph.services.reading import MAX_FOUND

#: What `q` looks for.
FOUND_KINDS = ("node", "document")


class NodePagination(CursorPagination):
    """By id."""

    ordering = "key"

    @staticmethod
    def is_position(position: Any) -> bool:
        return position is None or "\0" not in position


@extend_schema(tags=["graph"])
class NodesView(GraphView):
    """Nodes of the graph."""

    action_parameters = {"get": inputs.NodeParameters, "delete": inputs.Deletion}
    is_thing = True
    names = ("id",)

    def read_thing(self) -> Any:
        return serializers.NodeSerializer(self._vertex()).data

    def locked_rows(self) -> QuerySet[Node]:
        found = services.get_node(scope=self.scope, id=self.named("id"))
        is_row = found is not None and found.kind == "node"
        return Node.objects.filter(pk__in=[found.pk] if found and is_row else [])

    def _vertex(self) -> Vertex:
        vertex = services.get_node(scope=self.scope, id=self.named("id"))
        if vertex is None:
            raise no_node()
        return vertex

    @extend_schema(
        operation_id="graph_nodes",
        summary="List or find nodes, or read one",
        description="With `id` the answer is that one: a node, a document (`doc:…`), a passage"
        " (`chunk:…`), or what a node was merged into. With `q` it is what is called so or alike,"
        " the best first, without further pages. Otherwise it is a page of all nodes by id;"
        " documents and passages are listed at `/documents/`.",
        responses={
            200: PolymorphicProxySerializer(
                component_name="GraphNodesAnswer",
                serializers=[serializers.NodePageSerializer, serializers.NodeSerializer],
                resource_type_field_name=None,
            )
        },
        examples=[examples.NODE, examples.NODES],
    )
    def get(self, request: Request) -> Response:
        if "id" in self.parameters:
            return Response(self.read_thing())
        return self._found() if "q" in self.parameters else self._listed(request)

    def _found(self) -> Response:
        asked = self.parameters
        found = services.find_nodes(
            scope=self.scope,
            text=asked["q"],
            labels=asked.get("label", ()),
            kinds=[kind for kind in KINDS if kind in asked.get("kind", FOUND_KINDS)],
            limit=min(asked.get("page_size", 50), MAX_FOUND),
        )
        results = _shown(found)
        return Response({"next": None, "previous": None, "results": results})

    def _listed(self, request: Request) -> Response:
        rows = Node.objects.visible_to(request.user).filter(
            workspace=self.workspace, document=None, chunk=None
        )
        if labels := self.parameters.get("label"):
            rows = rows.filter(labels__overlap=labels)
        paginator = NodePagination()
        page = paginator.paginate_queryset(rows.only("key"), request, view=self) or ()
        results = _shown(self._vertices(page))
        return paginator.get_paginated_response(results)

    def _vertices(self, rows: Sequence[Node]) -> list[Vertex]:
        refs = [Ref("node", row.pk) for row in rows]
        found = load(sight(self.scope), refs)
        return [found[ref] for ref in refs if ref in found]

    @extend_schema(
        operation_id="graph_node_upsert",
        summary="Make or change a node",
        description="201 for a new one, else 200. What is left out stays as it is; properties are"
        " added to those that are there, name by name. The same again changes nothing, so that to"
        " send it again does no harm.",
        request=inputs.NodeBody,
        responses={
            200: serializers.NodeChangeSerializer,
            201: serializers.NodeChangeSerializer,
        },
        examples=[examples.NODE_BODY, examples.NODE_CHANGE],
    )
    def put(self, request: Request) -> Response:
        body = self.body(inputs.NodeBody)
        with naming(body, "id"):
            change = services.upsert_node(scope=self.editable, **body)
        answer = {
            "node": change.node,
            "created": change.created,
            "changed": change.changed,
            "taken": change.taken,
        }
        shown = serializers.NodeChangeSerializer(answer).data
        return Response(shown, status=201 if change.created else 200)

    @extend_schema(
        operation_id="graph_node_delete",
        summary="Delete a node with its edges",
        description="What documents mention comes back when they are read again: merge it, or have"
        " its collection read in another way. With `preview` nothing goes.",
        responses={200: serializers.DeletionSerializer},
        examples=[examples.DELETION],
    )
    def delete(self, request: Request) -> Response:
        gone = _deleted(self, [self.parameters["id"]], preview=self.parameters["preview"])
        if not gone["nodes"]:
            raise no_node()
        return Response(gone)


@extend_schema(tags=["graph"])
class NodesDeleteView(GraphView):
    """Removal of many."""

    @extend_schema(
        operation_id="graph_nodes_delete",
        summary="Delete nodes by id, with their edges",
        description="Ids that are not there are passed over. With `preview` nothing goes.",
        request=inputs.IdsBody,
        responses={200: serializers.DeletionSerializer},
        examples=[examples.IDS, examples.DELETION],
    )
    def post(self, request: Request) -> Response:
        body = self.body(inputs.IdsBody)
        return Response(_deleted(self, body["ids"], preview=body["preview"]))


def _shown(vertices: Any) -> Any:
    return serializers.NodeSerializer(vertices, many=True).data


def _deleted(view: GraphView, ids: Sequence[str], *, preview: bool) -> dict[str, Any]:
    act = services.deletion_preview if preview else services.delete_nodes
    gone = act(scope=view.editable, ids=ids)
    return dict(serializers.DeletionSerializer({"preview": preview, **asdict(gone)}).data)

"""API views of nodes, edges, neighbours, mentions, traversals, paths and subgraphs.
Begin with `GraphView`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext
from drf_spectacular.utils import (
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_view,
)
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from accounts.api import READ_METHODS, WorkspaceParameters, WorkspaceView
from common.api import StreamNegotiation
from common.errors import InvalidInput, NotFound
from common.openapi import load_examples
from common.serializers import CursorPagination
from graph import services
from graph.api import inputs, serializers
from graph.models import Edge, Node
from graph.reading.steps import MAX_FOUND
from graph.reading.vertices import KINDS, Ref, load_vertices
from graph.scopes import AccessFilter, GraphScope, graph_scope
from graph.services import MissingNode

examples = load_examples("graph.api")

InputClass = type[Serializer[Any]]


class GraphView(WorkspaceView):
    """Base of the graph's views, within one workspace as the user may see it."""

    #: Parameters, or fields of the body, that together name one thing.
    names: ClassVar[tuple[str, ...]] = ()

    @property
    def is_detail_request(self) -> bool:
        is_list = self.request.method in READ_METHODS and hasattr(self, "parameters")
        return super().is_detail_request and not (
            is_list and set(self.names) - self.parameters.keys()
        )

    def named(self, name: str) -> str:
        """The id or name part `name` from parameters or body; empty if missing."""
        body: Any = self.request.data
        given = self.parameters.get(name) or body.get(name)
        return given if isinstance(given, str) else ""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Raises InvalidInput for invalid UTF-8, which would make two ids one.
        try:
            parse_qsl(request.META.get("QUERY_STRING", ""), errors="strict")
        except UnicodeDecodeError as error:
            raise InvalidInput(
                gettext("The address is not UTF-8. Percent-encode it as UTF-8.")
            ) from error
        super().initial(request, *args, **kwargs)

    @cached_property
    def scope(self) -> GraphScope:
        """The graph as the user may see it. Raises NotFound."""
        return graph_scope(user=self.request.user, workspace=self.workspace)

    @property
    def editable(self) -> GraphScope:
        """The scope, for users who may edit. Raises Forbidden."""
        scope = self.scope
        self.require_editor(self.workspace)
        return scope

    @property
    def arguments(self) -> dict[str, Any]:
        """The query parameters, without the workspace."""
        return {name: value for name, value in self.parameters.items() if name != "workspace"}

    def serialized(self, serializer_class: InputClass, value: Any) -> Any:
        """The data of an answer; its cursor becomes the address of the next page."""
        return serializer_class(value, context={"request": self.request}).data


@contextmanager
def naming_missing_node(values: Mapping[str, Any], *fields: str) -> Iterator[None]:
    """Sets the field of a MissingNode error to the one that holds the missing id."""
    try:
        yield
    except MissingNode as error:
        error.field = next((each for each in fields if values[each] in error.ids), "")
        raise


def node_not_found() -> NotFound:
    """Error for a missing or invisible node, which look the same."""
    return NotFound(gettext("No node has this id, or you may not see it."))


#: What `q` looks for.
DEFAULT_KINDS = ("node", "document")


@extend_schema(tags=["graph"])
class NodesView(GraphView):
    """Lists, finds, reads, writes and deletes nodes."""

    for_limited_keys = frozenset({"get"})
    action_parameters = {"get": inputs.NodeParameters, "delete": inputs.DeletionParameters}
    is_detail = True
    ordering = "key"
    names = ("id",)

    def read_object(self) -> Any:
        vertex = services.get_node(scope=self.scope, id=self.named("id"))
        if vertex is None:
            raise node_not_found()
        return serializers.GraphNodeSerializer(vertex).data

    def locked_rows(self) -> QuerySet[Node]:
        found = services.get_node(scope=self.scope, id=self.named("id"))
        is_row = found is not None and found.kind == "node"
        return Node.objects.filter(pk__in=[found.pk] if found and is_row else [])

    @extend_schema(
        operation_id="graph_nodes",
        summary="List or find nodes, or read one",
        description="With `id` the answer is that node, a document (`doc:…`), a passage"
        " (`chunk:…`), or the node that it was merged into. With `q` it is a"
        " single page of nodes with this or a similar name, best first. Otherwise"
        " it is a page of all nodes by id; `/documents/` lists documents and"
        " passages.",
        responses={
            200: PolymorphicProxySerializer(
                component_name="GraphNodesAnswer",
                serializers=[serializers.GraphNodePageSerializer, serializers.GraphNodeSerializer],
                resource_type_field_name=None,
            )
        },
        examples=[examples.NODE, examples.NODES],
    )
    def get(self, request: Request) -> Response:
        if "id" in self.parameters:
            return Response(self.read_object())
        asked = self.parameters
        if "q" in asked:
            vertices = services.find_nodes(
                scope=self.scope,
                text=asked["q"],
                labels=asked.get("label", ()),
                kinds=[kind for kind in KINDS if kind in asked.get("kind", DEFAULT_KINDS)],
                limit=min(asked.get("page_size", 50), MAX_FOUND),
            )
            results = _node_data(vertices)
            return Response({"next": None, "previous": None, "results": results})
        rows = Node.objects.visible_to(request.user).filter(
            workspace=self.workspace, document=None, chunk=None
        )
        if labels := asked.get("label"):
            rows = rows.filter(labels__overlap=labels)
        paginator = CursorPagination()
        page = paginator.paginate_queryset(rows.only("key"), request, view=self) or ()
        refs = [Ref("node", row.pk) for row in page]
        found = load_vertices(AccessFilter(self.scope), refs)
        listed = [found[ref] for ref in refs if ref in found]
        return paginator.get_paginated_response(_node_data(listed))

    @extend_schema(
        operation_id="graph_node_upsert",
        summary="Create or change a node",
        description="201 for a new node, else 200. Fields that you leave out stay; properties"
        " are added to the existing ones. Sending the same again changes nothing,"
        " so requests can be repeated.",
        request=inputs.GraphNodeInputSerializer,
        responses={
            200: serializers.GraphNodeChangeSerializer,
            201: serializers.GraphNodeChangeSerializer,
        },
        examples=[examples.NODE_BODY, examples.NODE_CHANGE],
    )
    def put(self, request: Request) -> Response:
        body = self.validated(inputs.GraphNodeInputSerializer)
        with naming_missing_node(body, "id"):
            change = services.upsert_node(scope=self.editable, **body)
        shown = self.serialized(serializers.GraphNodeChangeSerializer, change)
        return Response(shown, status=201 if change.created else 200)

    @extend_schema(
        operation_id="graph_node_delete",
        summary="Delete a node with its edges",
        description="Nodes that documents mention come back when they are read again: merge"
        " them instead, or change the `graph` of their collection. With `dry_run`"
        " nothing is deleted.",
        responses={200: serializers.GraphDeletionSerializer},
        examples=[examples.DELETION],
    )
    def delete(self, request: Request) -> Response:
        gone = _delete(self, [self.parameters["id"]], dry_run=self.parameters["dry_run"])
        if not gone["nodes"]:
            raise node_not_found()
        return Response(gone)


@extend_schema(tags=["graph"])
class NodesDeleteView(GraphView):
    """Deletes several nodes by id."""

    @extend_schema(
        operation_id="graph_nodes_delete",
        summary="Delete nodes by id, with their edges",
        description="Unknown ids are ignored. With `dry_run` nothing is deleted.",
        request=inputs.GraphIdsSerializer,
        responses={200: serializers.GraphDeletionSerializer},
        examples=[examples.IDS, examples.DELETION],
    )
    def post(self, request: Request) -> Response:
        body = self.validated(inputs.GraphIdsSerializer)
        return Response(_delete(self, body["ids"], dry_run=body["dry_run"]))


def _node_data(vertices: Any) -> Any:
    return serializers.GraphNodeSerializer(vertices, many=True).data


def _delete(view: GraphView, ids: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
    act = services.deletion_preview if dry_run else services.delete_nodes
    gone = act(scope=view.editable, ids=ids)
    return dict(serializers.GraphDeletionSerializer({"dry_run": dry_run, **asdict(gone)}).data)


EDGE_NAMES = ("source", "rel", "target")


@extend_schema(tags=["graph"])
class EdgesView(GraphView):
    """Lists, writes and deletes edges."""

    for_limited_keys = frozenset({"get"})
    action_parameters = {"get": inputs.EdgeParameters, "delete": inputs.EdgeNameParameters}
    is_detail = True
    names = EDGE_NAMES

    def read_object(self) -> Any:
        page = self._page({name: self.named(name) for name in EDGE_NAMES})
        if not page["results"]:
            raise _edge_not_found()
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
        responses=serializers.GraphEdgePageSerializer,
        examples=[examples.EDGES],
    )
    def get(self, request: Request) -> Response:
        return Response(self._page({name: self.parameters.get(name) for name in EDGE_NAMES}))

    def _page(self, named: dict[str, str | None]) -> Any:
        links, cursor = services.list_edges(
            scope=self.scope,
            **named,
            limit=self.parameters.get("page_size", 50),
            cursor=self.parameters.get("cursor", ""),
        )
        return self.serialized(
            serializers.GraphEdgePageSerializer, {"next": cursor, "results": links}
        )

    @extend_schema(
        operation_id="graph_edge_upsert",
        summary="Create or change an edge",
        description="201 for a new edge, else 200. Fields that you leave out stay. Sending"
        " the same again changes nothing, so requests can be repeated.",
        request=inputs.GraphEdgeInputSerializer,
        responses={
            200: serializers.GraphEdgeChangeSerializer,
            201: serializers.GraphEdgeChangeSerializer,
        },
        examples=[examples.EDGE_BODY, examples.EDGE_CHANGE],
    )
    def put(self, request: Request) -> Response:
        body = self.validated(inputs.GraphEdgeInputSerializer)
        with naming_missing_node(body, "source", "target"):
            change = services.upsert_edge(scope=self.editable, **body)
        shown = self.serialized(serializers.GraphEdgeChangeSerializer, change)
        return Response(shown, status=201 if change.created else 200)

    @extend_schema(
        operation_id="graph_edge_delete", summary="Delete an edge", responses={204: None}
    )
    def delete(self, request: Request) -> Response:
        name = {part: self.parameters[part] for part in EDGE_NAMES}
        if not services.delete_edge(scope=self.editable, **name):
            raise _edge_not_found()
        return Response(status=204)


def _edge_not_found() -> NotFound:
    return NotFound(gettext("This edge does not exist, or you may not see it."))


GRAPHML = "application/graphml+xml"


@extend_schema(tags=["graph"])
class NeighborsView(GraphView):
    """Nodes that are one step away."""

    for_limited_keys = True
    action_parameters = {"get": inputs.NeighborParameters}

    @extend_schema(
        operation_id="graph_neighbors",
        summary="List what is related to a node",
        description="In natural order: `…:2` before `…:10`. Besides edges these are relations that"
        " documents tell themselves: `HAS_CHUNK` (document → passage), `NEXT` (passage → passage),"
        " `MENTIONS` (document or passage → node), `REFERS_TO` (document → document),"
        " `VERSION_OF` (an old version → the current one).",
        responses=serializers.GraphNeighborsSerializer,
        examples=[examples.NEIGHBORS],
    )
    def get(self, request: Request) -> Response:
        found = services.neighbors(scope=self.scope, **self.arguments)
        return Response(self.serialized(serializers.GraphNeighborsSerializer, found))


@extend_schema(tags=["graph"])
class MentionsView(GraphView):
    """Passages that mention a node."""

    for_limited_keys = True
    action_parameters = {"get": inputs.MentionParameters}

    @extend_schema(
        operation_id="graph_mentions",
        summary="List the passages that mention a node",
        responses=serializers.GraphMentionsSerializer,
        examples=[examples.MENTIONS],
    )
    def get(self, request: Request) -> Response:
        found = services.mentions_of(scope=self.scope, **self.arguments)
        return Response(self.serialized(serializers.GraphMentionsSerializer, found))


class QueryView(GraphView):
    """A question that is asked by GET, or by POST with the same values in a body."""

    for_limited_keys = True
    required_scope = "read"
    body_class: ClassVar[InputClass]

    def get(self, request: Request) -> HttpResponseBase:
        return self.answer(self.arguments)

    def post(self, request: Request) -> HttpResponseBase:
        return self.answer(self.validated(self.body_class))

    def answer(self, asked: dict[str, Any]) -> HttpResponseBase:
        """The answer to validated values."""
        raise NotImplementedError


def query_view(
    name: str,
    summaries: tuple[str, str],
    *,
    body: InputClass,
    responses: Any,
    shown: Sequence[Any],
    description: str | None = None,
) -> Callable[[type[QueryView]], type[QueryView]]:
    """Sets the body of a view, and describes both ways to ask it. `summaries` are those of GET and
    POST; the first of the examples `shown` is that of the body.
    """
    request, *answers = shown
    schema = extend_schema_view(
        get=extend_schema(
            tags=["graph"],
            operation_id=f"graph_{name}",
            summary=summaries[0],
            description=description,
            responses=responses,
            examples=answers,
        ),
        post=extend_schema(
            tags=["graph"],
            operation_id=f"graph_{name}_post",
            summary=f"{summaries[1]}, asked with a JSON body",
            description="For ids that are too long for an address, of which servers take about"
            " 8,000 bytes.",
            request=body,
            responses=responses,
            examples=[request, *answers],
        ),
    )

    def describe(view: type[QueryView]) -> type[QueryView]:
        view.body_class = body
        parameters = type("Parameters", (body, WorkspaceParameters), {"__doc__": body.__doc__})
        view.action_parameters = {"get": parameters}
        described: type[QueryView] = schema(view)
        return described

    return describe


@query_view(
    "traverse",
    ("Walk from a node, the nearest first", "Walk from a node"),
    body=inputs.GraphTraversalInputSerializer,
    responses=serializers.GraphTraversalSerializer,
    shown=[examples.TRAVERSAL_BODY, examples.TRAVERSAL],
)
class TraverseView(QueryView):
    """Nodes within reach of a node."""

    def answer(self, asked: dict[str, Any]) -> HttpResponseBase:
        found = services.traverse(scope=self.scope, rels=asked.pop("rel", ()), **asked)
        return Response(self.serialized(serializers.GraphTraversalSerializer, found))


@query_view(
    "paths",
    ("Find a shortest way between two nodes", "Find a shortest way"),
    description="That there is none is an answer: `found` is false then. 404 where one of the"
    " two is not there.",
    body=inputs.GraphPathInputSerializer,
    responses=serializers.GraphPathSerializer,
    shown=[examples.PATH_BODY, examples.PATH],
)
class PathsView(QueryView):
    """Shortest path between two nodes."""

    def answer(self, asked: dict[str, Any]) -> HttpResponseBase:
        path = services.shortest_path(scope=self.scope, rels=asked.pop("rel", ()), **asked)
        return Response(self.serialized(serializers.GraphPathSerializer, path))


@query_view(
    "subgraph",
    (
        "Take what is around some nodes, with all relations among it",
        "Take what is around some nodes",
    ),
    description="As cytoscape.js reads it, or as a file of GraphML. Those of the ids that are"
    " not there are named in `missing`; 404 where none is.",
    body=inputs.GraphSubgraphInputSerializer,
    responses={(200, "application/json"): serializers.GraphSubgraphSerializer, (200, GRAPHML): str},
    shown=[examples.SUBGRAPH_BODY, examples.SUBGRAPH, examples.GRAPHML],
)
class SubgraphView(QueryView):
    """The subgraph around some nodes."""

    content_negotiation_class = StreamNegotiation

    def answer(self, asked: dict[str, Any]) -> HttpResponseBase:
        around: dict[str, Any] = {
            "ids": asked["id"],
            "hops": asked["hops"],
            "cap": asked["limit"],
            "rels": asked.get("rel", ()),
            "labels": asked.get("label", ()),
        }
        if asked["format"] == "graphml":
            return file_response(services.export_graphml(scope=self.scope, **around))
        found = services.subgraph(scope=self.scope, grain=asked["grain"], **around)
        return Response({**services.export_cytoscape(found), "missing": list(found.missing)})


def file_response(
    parts: Iterator[bytes], *, content_type: str = GRAPHML, suffix: str = "graphml"
) -> StreamingHttpResponse:
    """The parts as a streaming download."""
    name = f"graph-{timezone.now():%Y-%m-%d}.{suffix}"
    return StreamingHttpResponse(
        parts,
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )

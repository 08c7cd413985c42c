"""API views of nodes, edges, neighbours, mentions, traversals, paths and subgraphs.
Begin with `GraphView`.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView, operation
from accounts.api.etags import READ_METHODS
from common import features
from common.api import StreamNegotiation
from common.errors import InvalidInput, NotFound
from common.serializers import CursorPagination
from graph import services
from graph.api import inputs, serializers
from graph.models import Edge, Node
from graph.reading.steps import MAX_FOUND
from graph.reading.vertices import KINDS, Ref, load_vertices
from graph.scopes import AccessFilter, GraphScope, graph_scope
from graph.services import MissingNode


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
        features.require("graph")

    @cached_property
    def scope(self) -> GraphScope:
        """The graph as the user may see it. Raises NotFound."""
        return graph_scope(user=self.request.user, workspace=self.workspace)

    @property
    def arguments(self) -> dict[str, Any]:
        """The query parameters, without the workspace."""
        return {name: value for name, value in self.parameters.items() if name != "workspace"}

    def changed(self, serializer: Any, change: Any) -> Response:
        """The answer to a write: 201 for something new."""
        return Response(serializer(change).data, status=201 if change.created else 200)


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


NODES_ANSWER = PolymorphicProxySerializer(
    component_name="GraphNodesAnswer",
    serializers=[serializers.GraphNodePageSerializer, serializers.GraphNodeSerializer],
    resource_type_field_name=None,
)
EDGE_NAMES = ("source", "rel", "target")
GRAPHML = "application/graphml+xml"


class NodesView(GraphView):
    """Lists, finds, reads, writes and deletes nodes."""

    for_limited_keys = frozenset({"get"})
    editors_only = True
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

    @operation(gives=NODES_ANSWER, operation_id="graph_nodes")
    def get(self) -> Response:
        """List or find nodes, or read one.

        With `id` the answer is that node, a document (`doc:…`), a passage (`chunk:…`), or the node
        that it was merged into. With `q` it is a single page of nodes with this or a similar name,
        best first. Otherwise it is a page of all nodes by id; `/documents/` lists documents and
        passages.
        """
        if "id" in self.parameters:
            return Response(self.read_object())
        values = self.parameters
        if "q" in values:
            vertices = services.find_nodes(
                scope=self.scope,
                text=values["q"],
                labels=values.get("label", ()),
                kinds=[kind for kind in KINDS if kind in values.get("kind", DEFAULT_KINDS)],
                limit=min(values.get("page_size", 50), MAX_FOUND),
            )
            results = _node_data(vertices)
            return Response({"next": None, "previous": None, "results": results})
        rows = Node.objects.visible_to(self.request.user).filter(
            workspace=self.workspace, document=None, chunk=None
        )
        if labels := values.get("label"):
            rows = rows.filter(labels__overlap=labels)
        paginator = CursorPagination()
        page = paginator.paginate_queryset(rows.only("key"), self.request, view=self) or ()
        refs = [Ref("node", row.pk) for row in page]
        found = load_vertices(AccessFilter(self.scope), refs)
        listed = [found[ref] for ref in refs if ref in found]
        return paginator.get_paginated_response(_node_data(listed))

    @operation(
        takes=inputs.GraphNodeInputSerializer,
        gives=dict.fromkeys((200, 201), serializers.GraphNodeChangeSerializer),
        operation_id="graph_node_upsert",
    )
    def put(self, **node: Any) -> Response:
        """Create or change a node.

        201 for a new node, else 200. Fields that you leave out stay; properties are added to the
        existing ones. Sending the same again changes nothing, so requests can be repeated.
        """
        with naming_missing_node(node, "id"):
            change = services.upsert_node(scope=self.scope, **node)
        return self.changed(serializers.GraphNodeChangeSerializer, change)

    @operation(gives=serializers.GraphDeletionSerializer, operation_id="graph_node_delete")
    def delete(self) -> dict[str, Any]:
        """Delete a node with its edges.

        Nodes that documents mention come back when they are read again: merge them instead, or
        change the `graph` of their collection. With `dry_run` nothing is deleted.
        """
        gone = _delete(self, [self.parameters["id"]], dry_run=self.parameters["dry_run"])
        if not gone["nodes"]:
            raise node_not_found()
        return gone


class NodesDeleteView(GraphView):
    """Deletes several nodes by id."""

    editors_only = True

    @operation(
        takes=inputs.GraphIdsSerializer,
        gives=serializers.GraphDeletionSerializer,
        operation_id="graph_nodes_delete",
    )
    def post(self, *, ids: list[str], dry_run: bool) -> dict[str, Any]:
        """Delete nodes by id, with their edges.

        Unknown ids are ignored. With `dry_run` nothing is deleted.
        """
        return _delete(self, ids, dry_run=dry_run)


def _node_data(vertices: Any) -> Any:
    return serializers.GraphNodeSerializer(vertices, many=True).data


def _delete(view: GraphView, ids: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
    act = services.deletion_preview if dry_run else services.delete_nodes
    return {"dry_run": dry_run, **asdict(act(scope=view.scope, ids=ids))}


class EdgesView(GraphView):
    """Lists, writes and deletes edges."""

    for_limited_keys = frozenset({"get"})
    editors_only = True
    action_parameters = {"get": inputs.EdgeParameters, "delete": inputs.EdgeNameParameters}
    is_detail = True
    names = EDGE_NAMES

    def read_object(self) -> Any:
        page = self._page({name: self.named(name) for name in EDGE_NAMES})
        if not page["results"]:
            raise _edge_not_found()
        context = self.get_serializer_context()
        return serializers.GraphEdgePageSerializer(page, context=context).data

    def locked_rows(self) -> QuerySet[Edge]:
        ends = [
            services.get_node(scope=self.scope, id=self.named(name))
            for name in ("source", "target")
        ]
        source, target = (each.pk if each and each.kind == "node" else None for each in ends)
        return Edge.objects.filter(source=source, rel=self.named("rel"), target=target)

    @operation(gives=serializers.GraphEdgePageSerializer, operation_id="graph_edges")
    def get(self) -> dict[str, Any]:
        """List edges, newest first.

        Those that somebody gave or that passages tell of. Relations that documents tell themselves
        (`HAS_CHUNK`, `MENTIONS`, `REFERS_TO`, `NEXT`, `VERSION_OF`) are read at
        `/graph/neighbors/`.
        """
        return self._page({name: self.parameters.get(name) for name in EDGE_NAMES})

    def _page(self, named: dict[str, str | None]) -> dict[str, Any]:
        links, cursor = services.list_edges(
            scope=self.scope,
            **named,
            limit=self.parameters.get("page_size", 50),
            cursor=self.parameters.get("cursor", ""),
        )
        return {"next": cursor, "results": links}

    @operation(
        takes=inputs.GraphEdgeInputSerializer,
        gives=dict.fromkeys((200, 201), serializers.GraphEdgeChangeSerializer),
        operation_id="graph_edge_upsert",
    )
    def put(self, **edge: Any) -> Response:
        """Create or change an edge.

        201 for a new edge, else 200. Fields that you leave out stay. Sending the same again changes
        nothing, so requests can be repeated.
        """
        with naming_missing_node(edge, "source", "target"):
            change = services.upsert_edge(scope=self.scope, **edge)
        return self.changed(serializers.GraphEdgeChangeSerializer, change)

    @operation(operation_id="graph_edge_delete")
    def delete(self) -> None:
        """Delete an edge."""
        name = {part: self.parameters[part] for part in EDGE_NAMES}
        if not services.delete_edge(scope=self.scope, **name):
            raise _edge_not_found()


def _edge_not_found() -> NotFound:
    return NotFound(gettext("This edge does not exist, or you may not see it."))


class NeighborsView(GraphView):
    """Nodes that are one step away."""

    for_limited_keys = True
    action_parameters = {"get": inputs.NeighborParameters}

    @operation(gives=serializers.GraphNeighborsSerializer, operation_id="graph_neighbors")
    def get(self) -> Any:
        """List what is related to a node.

        In natural order: `…:2` before `…:10`. Besides edges these are relations that documents tell
        themselves: `HAS_CHUNK` (document → passage), `NEXT` (passage → passage), `MENTIONS`
        (document or passage → node), `REFERS_TO` (document → document), `VERSION_OF` (an old
        version → the current one).
        """
        return services.neighbors(scope=self.scope, **self.arguments)


class MentionsView(GraphView):
    """Passages that mention a node."""

    for_limited_keys = True
    action_parameters = {"get": inputs.MentionParameters}

    @operation(gives=serializers.GraphMentionsSerializer, operation_id="graph_mentions")
    def get(self) -> Any:
        """List the passages that mention a node."""
        return services.mentions_of(scope=self.scope, **self.arguments)


class QueryView(GraphView):
    """A question that is asked by GET, or by POST with the same values in a body."""

    for_limited_keys = True
    required_scope = "read"


class TraverseView(QueryView):
    """Nodes within reach of a node."""

    action_parameters = {"get": inputs.TraversalParameters}
    serializer_class = serializers.GraphTraversalSerializer

    @operation(operation_id="graph_traverse")
    def get(self) -> Any:
        """Walk from a node, the nearest first."""
        return self._reached(**self.arguments)

    @operation(takes=inputs.GraphTraversalInputSerializer, operation_id="graph_traverse_post")
    def post(self, **values: Any) -> Any:
        """Walk from a node, asked with a JSON body.

        For ids that are too long for an address, of which servers take about 8,000 bytes.
        """
        return self._reached(**values)

    def _reached(self, *, rel: Sequence[str] = (), **values: Any) -> Any:
        return services.traverse(scope=self.scope, rels=rel, **values)


class PathsView(QueryView):
    """Shortest path between two nodes."""

    action_parameters = {"get": inputs.PathParameters}
    serializer_class = serializers.GraphPathSerializer

    @operation(operation_id="graph_paths")
    def get(self) -> Any:
        """Find a shortest way between two nodes.

        That there is none is an answer: `found` is false then. 404 where one of the two is not
        there.
        """
        return self._path(**self.arguments)

    @operation(takes=inputs.GraphPathInputSerializer, operation_id="graph_paths_post")
    def post(self, **values: Any) -> Any:
        """Find a shortest way, asked with a JSON body.

        For ids that are too long for an address, of which servers take about 8,000 bytes.
        """
        return self._path(**values)

    def _path(self, *, rel: Sequence[str] = (), **values: Any) -> Any:
        return services.shortest_path(scope=self.scope, rels=rel, **values)


SUBGRAPH_ANSWER = {
    (200, "application/json"): serializers.GraphSubgraphSerializer,
    (200, GRAPHML): str,
}


class SubgraphView(QueryView):
    """The subgraph around some nodes."""

    action_parameters = {"get": inputs.SubgraphParameters}
    content_negotiation_class = StreamNegotiation

    @operation(gives=SUBGRAPH_ANSWER, operation_id="graph_subgraph")
    def get(self) -> HttpResponseBase:
        """Take what is around some nodes, with all relations among it.

        As cytoscape.js reads it, or as a file of GraphML. Those of the ids that are not there are
        named in `missing`; 404 where none is.
        """
        return self._subgraph(self.arguments)

    @operation(
        takes=inputs.GraphSubgraphInputSerializer,
        gives=SUBGRAPH_ANSWER,
        operation_id="graph_subgraph_post",
    )
    def post(self, **values: Any) -> HttpResponseBase:
        """Take what is around some nodes, asked with a JSON body.

        For ids that are too long for an address, of which servers take about 8,000 bytes.
        """
        return self._subgraph(values)

    def _subgraph(self, values: dict[str, Any]) -> HttpResponseBase:
        around: dict[str, Any] = {
            "ids": values["id"],
            "hops": values["hops"],
            "cap": values["limit"],
            "rels": values.get("rel", ()),
            "labels": values.get("label", ()),
        }
        if values["format"] == "graphml":
            return file_response(services.export_graphml(scope=self.scope, **around))
        found = services.subgraph(scope=self.scope, grain=values["grain"], **around)
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

"""API views of bulk writes, merges, statistics, export and extraction."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import IO, Any, TypeVar

from django.http import StreamingHttpResponse
from django.utils.translation import gettext
from rest_framework import parsers

from accounts.api import operation
from common import bounded_json
from common.api import StreamNegotiation
from common.errors import Conflict, InvalidInput
from common.parsers import BodyTooLarge, JSONParser
from documents.models import Collection
from documents.services import get_collection
from graph import services
from graph.api import inputs, serializers
from graph.api.views import GRAPHML, GraphView, file_response
from graph.inputs import EdgeInput, NodeInput
from graph.services.extraction import extraction_state, reextract_collection
from graph.services.json_lines import JsonLines, export_lines, make_item
from graph.services.stage import item_field

MAX_BYTES = 32 * 1024 * 1024
MAX_ITEMS = 50_000
JSON_LINES = "application/x-ndjson"
TOO_LARGE = (
    f"This body may have {MAX_BYTES:,} bytes, and {MAX_ITEMS:,} nodes and edges. Send fewer at"
    " once."
)


class BulkJSONParser(JSONParser):
    """JSON of up to 32 MB. Items are validated while they are written."""

    max_bytes = MAX_BYTES
    too_large = TOO_LARGE

    def value(self, text: str) -> Any:
        return bounded_json.load(text)


class JSONLinesParser(parsers.BaseParser):
    """JSON Lines, parsed while they are written."""

    media_type = JSON_LINES

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(MAX_BYTES + 1)
        lines = body.split(b"\n")
        if len(body) > MAX_BYTES or sum(map(bool, lines)) > MAX_ITEMS:
            raise BodyTooLarge(TOO_LARGE)
        JSONParser().note(body, parser_context)
        return JsonLines(lambda: lines)


BulkItemT = TypeVar("BulkItemT", NodeInput, EdgeInput)
BULK_OPTIONS = ("strict", "replace_props")


class BulkView(GraphView):
    """Writes many nodes and edges at once."""

    editors_only = True
    parameters_class = inputs.BulkParameters
    parser_classes = [BulkJSONParser, JSONLinesParser]

    @operation(
        takes={"application/json": inputs.GraphBulkInputSerializer, JSON_LINES: str},
        gives=serializers.GraphBulkAnswerSerializer,
        once=True,
        operation_id="graph_bulk",
    )
    def post(self) -> dict[str, Any]:
        """Write many nodes and edges, all or none.

        At most 50,000 and 32 MB at a time, nodes first. As one JSON object, or as JSON Lines of
        `{"node": {…}}` and `{"edge": {…}}`. What is left out of an item stays as it is, and of two
        for one node or edge the last counts. A fault is told by its place, `edges.3.weight`, or its
        line. The same again changes nothing.
        """
        options = {name: self.parameters[name] for name in BULK_OPTIONS}
        data = self.request.data
        lines = data if isinstance(data, JsonLines) else None
        if lines:
            given_nodes, given_edges = lines.nodes(), lines.edges()
        else:
            body = self.validated(inputs.GraphBulkInputSerializer)
            options |= {name: body[name] for name in BULK_OPTIONS if name in body}
            values = body.get("nodes", []), body.get("edges", [])
            if sum(map(len, values)) > MAX_ITEMS:
                raise BodyTooLarge(TOO_LARGE)
            given_nodes = _make_items(values[0], "nodes", NodeInput)
            given_edges = _make_items(values[1], "edges", EdgeInput)
        node_names, edge_names = set[Any](), set[Any]()
        try:
            done = services.upsert_many(
                scope=self.scope,
                nodes=_noting(given_nodes, node_names),
                edges=_noting(given_edges, edge_names),
                **options,
            )
        except InvalidInput as error:
            if lines:
                raise lines.by_line(error) from error
            raise
        return {
            "nodes": _counts(node_names, done.nodes_created, done.nodes_updated),
            "edges": _counts(edge_names, done.edges_created, done.edges_updated),
            "stubs": done.stubs,
            "taken": done.taken,
        }


def _noting(items: Iterator[BulkItemT], names: set[Any]) -> Iterator[BulkItemT]:
    """The items; what they name is added to `names`."""
    for item in items:
        yield item
        if isinstance(item, NodeInput):
            names.add(item.id)
        else:
            names.add((item.source, item.rel, item.target))


def _counts(names: set[Any], created: int, updated: int) -> dict[str, int]:
    """Created, updated and unchanged items. Two ids of one merged node are counted once."""
    unchanged = max(len(names) - created - updated, 0)
    return {"created": created, "updated": updated, "unchanged": unchanged}


def _make_items(values: list[Any], kind: str, of: type[BulkItemT]) -> Iterator[BulkItemT]:
    for position, value in enumerate(values):
        try:
            yield make_item(value, of)
        except InvalidInput as error:
            error.field = item_field(kind, position, error.field)
            raise


class MergeView(GraphView):
    """Merges nodes that mean the same thing."""

    editors_only = True

    @operation(
        takes=inputs.GraphMergeInputSerializer,
        gives=serializers.GraphMergeAnswerSerializer,
        once=True,
        operation_id="graph_merge",
    )
    def post(self, *, keep: str, dry_run: bool, **merged: Any) -> dict[str, Any]:
        """Merge nodes into one.

        Edges, mentions and names of the others move to the node that stays, each once; their ids
        and names refer to it from then on, also when documents are read again. With `dry_run`
        nothing changes. 404 if one of them does not exist.
        """
        act = services.merge_preview if dry_run else services.merge_nodes
        done = act(scope=self.scope, keep=keep, **merged)
        return {"dry_run": dry_run, "keep": keep, **asdict(done)}


class StatsView(GraphView):
    """Statistics of the user's graph."""

    for_limited_keys = True

    @operation(gives=serializers.GraphStatisticsSerializer, operation_id="graph_stats")
    def get(self) -> Any:
        """Read the size of the graph."""
        return services.graph_statistics(scope=self.scope)


class ExportView(GraphView):
    """Exports the whole graph as a file."""

    for_limited_keys = True
    action_parameters = {"get": inputs.ExportParameters}
    content_negotiation_class = StreamNegotiation

    @operation(gives={(200, GRAPHML): str, (200, JSON_LINES): str}, operation_id="graph_export")
    def get(self) -> StreamingHttpResponse:
        """Export the graph as GraphML or JSON Lines.

        Everything that you may see: as GraphML nodes, documents, edges, and what documents mention
        and refer to; as JSON Lines the nodes and edges that were given.
        """
        if self.parameters["format"] == "graphml":
            return file_response(services.export_graphml(scope=self.scope))
        lines = export_lines(scope=self.scope, extracted=self.parameters.get("extracted", False))
        return file_response(lines, content_type=JSON_LINES, suffix="jsonl")


class ExtractionsView(GraphView):
    """Progress of extraction, and repeating it."""

    for_limited_keys = frozenset({"get"})
    editors_only = True
    action_parameters = {"get": inputs.ExtractionParameters}

    @operation(gives=serializers.GraphExtractionSerializer, operation_id="graph_extractions")
    def get(self) -> dict[str, Any]:
        """Read the progress of a collection's extraction."""
        return _extraction_data(self._collection(self.parameters["collection"]))

    @operation(
        takes=inputs.GraphReextractionSerializer,
        gives=serializers.GraphReextractionAnswerSerializer,
        status=202,
        errors=(409,),
        once=True,
        operation_id="graph_reextract",
    )
    def post(self, *, collection: str, only_stale: bool) -> dict[str, Any]:
        """Have a collection read for the graph again.

        In the background; the current results stay until then. 409 if its `graph` is `off`.
        """
        found = self._collection(collection)
        if found.graph == Collection.Graph.OFF:
            raise Conflict(
                gettext(
                    "“{slug}” is not read for the graph. Set its `graph` to rules or llm."
                ).format(slug=found.slug)
            )
        queued = reextract_collection(collection=found, only_stale=only_stale)
        return {"queued": queued, "state": _extraction_data(found)}

    def _collection(self, slug: str) -> Collection:
        return get_collection(workspace=self.workspace, slug=slug)


def _extraction_data(collection: Collection) -> dict[str, Any]:
    state = extraction_state(collection=collection)
    return {"collection": collection.slug, "graph": collection.graph, **asdict(state)}

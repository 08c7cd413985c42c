"""Many nodes and edges written at once."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import once
from common.errors import InvalidInput
from common.parsers import BodyTooLarge
from graph import services
from graph.api import examples
from graph.api import whole_inputs as inputs
from graph.api import whole_serializers as serializers
from graph.api.base import GraphView
from graph.api.parsers import JSON_LINES, MAX_ITEMS, TOO_LARGE, BulkJSONParser, JSONLinesParser
from graph.inputs import EdgeInput, NodeInput
from graph.lines import Kind, Lines, Place, item_of

T = TypeVar("T", NodeInput, EdgeInput)
OPTIONS = ("strict", "replace_props")


@extend_schema(tags=["graph"])
class BulkView(GraphView):
    """Many nodes and edges."""

    parameters_class = inputs.BulkParameters
    parser_classes = [BulkJSONParser, JSONLinesParser]

    @extend_schema(
        operation_id="graph_bulk",
        summary="Write many nodes and edges, all or none",
        description=f"At most {MAX_ITEMS:,} and 32 MB at a time, nodes first. As one JSON object,"
        ' or as JSON Lines of `{"node": {…}}` and `{"edge": {…}}`. What is left out of an item'
        " stays as it is, and of two for one node or edge the last counts. A fault is told by its"
        " place, `edges.3.weight`, or its line. The same again changes nothing.",
        request={"application/json": inputs.BulkBody, JSON_LINES: str},
        responses=serializers.BulkAnswerSerializer,
        examples=[examples.BULK, examples.BULK_LINES, examples.BULK_ANSWER],
    )
    @once
    def post(self, request: Request) -> Response:
        scope = self.editable
        options = {name: self.parameters[name] for name in OPTIONS}
        if isinstance(request.data, Lines):
            lines = request.data
            nodes, edges = _Counted(lines.nodes()), _Counted(lines.edges())
        else:
            body, lines = self.body(inputs.BulkBody), None
            options |= {name: body[name] for name in OPTIONS if name in body}
            nodes, edges = _from(body)
        try:
            done = services.upsert_many(scope=scope, nodes=nodes, edges=edges, **options)
        except InvalidInput as error:
            raise lines.by_line(error) if lines else _by_place(error) from error
        answer = {
            "nodes": nodes.counts(done.nodes_created, done.nodes_updated),
            "edges": edges.counts(done.edges_created, done.edges_updated),
            "stubs": done.stubs,
            "taken": done.taken,
        }
        return Response(serializers.BulkAnswerSerializer(answer).data)


class _Counted:
    """Items on their way, with how many different ones there were."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._keys: set[Any] = set()

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            yield item
            is_node = isinstance(item, NodeInput)
            self._keys.add(item.id if is_node else (item.source, item.rel, item.target))

    def counts(self, created: int, updated: int) -> dict[str, int]:
        """What became of them. Two ids of one merged node are one less that is unchanged."""
        unchanged = max(len(self._keys) - created - updated, 0)
        return {"created": created, "updated": updated, "unchanged": unchanged}


def _from(body: dict[str, Any]) -> tuple[_Counted, _Counted]:
    nodes, edges = body.get("nodes", []), body.get("edges", [])
    if len(nodes) + len(edges) > MAX_ITEMS:
        raise BodyTooLarge(TOO_LARGE)
    return (
        _Counted(_items(nodes, "node", NodeInput)),
        _Counted(_items(edges, "edge", EdgeInput)),
    )


def _items(values: list[Any], kind: Kind, of: type[T]) -> Iterator[T]:
    for position, value in enumerate(values):
        try:
            yield item_of(value, of)
        except InvalidInput as error:
            place = Place(kind, position, error.field)
            raise InvalidInput(str(error), field=str(place)) from error


def _by_place(error: InvalidInput) -> InvalidInput:
    """With the place as other errors of the API tell it."""
    if (place := Place.of(error)) is not None:
        error.field = str(place)
    return error

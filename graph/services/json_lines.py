"""A graph as JSON Lines, `{"node": …}` or `{"edge": …}` a line: import and export.
Begin with `import_lines`.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import islice
from typing import Any, Literal, TypeVar

from django.db.models import Model, QuerySet
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.json_lines import decode_line, encode_line
from common.text import escape_nonprinting
from common.translation import format_number
from graph.inputs import EdgeInput, NodeInput
from graph.models import Alias, Edge, Node
from graph.node_ids import is_retired_id_form
from graph.querysets import GraphQuerySet, Origin
from graph.reading.vertices import load_vertices, ref_of_node
from graph.scopes import AccessFilter, GraphScope
from graph.services.upsert import UpsertResult, upsert_many

Kind = Literal["node", "edge"]
ItemT = TypeVar("ItemT", NodeInput, EdgeInput)

_OTHER_KIND = {"node": b'{"edge"', "edge": b'{"node"'}
_MAX_NAME = 100
#: Fields of items in errors of the services, see `item_field`.
_ITEM_FIELD = re.compile(r"(?P<kind>node|edge)s\.(?P<position>[0-9]+)\.?(?P<field>.*)", re.DOTALL)


class JsonLines:
    """Nodes and edges of a file, opened by `read` twice: nodes come first and nothing is held in
    memory.

    Iterating raises InvalidInput with the line number.
    """

    def __init__(self, read: Callable[[], Iterable[bytes]]) -> None:
        self._read = read
        self._numbers: dict[str, array[int]] = {}

    def nodes(self) -> Iterator[NodeInput]:
        return self._all("node", NodeInput)

    def edges(self) -> Iterator[EdgeInput]:
        return self._all("edge", EdgeInput)

    def by_line(self, error: InvalidInput) -> InvalidInput:
        """The error with the line number instead of the item's position."""
        item = _ITEM_FIELD.fullmatch(error.field)
        if item is None:
            return error
        number = self._numbers[item["kind"]][int(item["position"])]
        _, _, problem = str(error).partition(": ")
        return _line_error(number, InvalidInput(problem, field=item["field"]), code=error.code)

    def _all(self, kind: Kind, of: type[ItemT]) -> Iterator[ItemT]:
        numbers = self._numbers[kind] = array("Q")
        for number, line in enumerate(self._read(), 1):
            stripped = line.strip()
            # Lines of the other kind are read in the other pass.
            if not stripped or stripped.startswith(_OTHER_KIND[kind]):
                continue
            try:
                found, value = _parse_line(line)
                if found != kind:
                    continue
                item = make_item(value, of)
            except InvalidInput as error:
                raise _line_error(number, error) from error
            numbers.append(number)
            yield item


def make_item(value: Any, of: type[ItemT]) -> ItemT:
    """The node or edge that a JSON object describes; raises InvalidInput.

    Keys are checked here, values when they are written.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(gettext("A node or edge is a JSON object."))
    known = {each.name: each.default is MISSING for each in fields(of)}
    for name in value:
        if name not in known:
            name_shown = escape_nonprinting(
                name[:_MAX_NAME], lambda letter: letter.encode("unicode_escape").decode()
            )
            raise InvalidInput(
                gettext("The field “{name_shown}” is unknown. Use {known}.").format(
                    name_shown=name_shown, known=", ".join(known)
                )
            )
    for name, is_needed in known.items():
        if is_needed and value.get(name) is None:
            raise InvalidInput(gettext("“{name}” is required.").format(name=name), field=name)
    given = {name: part for name, part in value.items() if part is not None}
    return of(**given)


def _parse_line(line: bytes) -> tuple[str, Any]:
    value = decode_line(line)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        if kind in _OTHER_KIND and isinstance(inner, dict):
            return kind, inner
    raise InvalidInput(gettext('A line is {"node": {…} or {"edge": {…}.'))


def _line_error(number: int, error: InvalidInput, *, code: str = InvalidInput.code) -> InvalidInput:
    place = f"{error.field}: " if error.field else ""
    named = InvalidInput(
        gettext("Line {number}: {place}{error}").format(
            number=format_number(number), place=place, error=error
        ),
        field=f"line {number}",
    )
    named.code = code
    return named


EXPORT_BATCH = 1000
RowT = TypeVar("RowT", bound=Model)


def import_lines(
    *,
    scope: GraphScope,
    read: Callable[[], Iterable[bytes]],
    strict: bool = True,
    replace_props: bool = False,
) -> UpsertResult:
    """Writes all nodes and edges of a file, or none; `read` opens it and is called twice.

    Raises InvalidInput and MissingNode with the line number.
    """
    lines = JsonLines(read)
    try:
        return upsert_many(
            scope=scope,
            nodes=lines.nodes(),
            edges=lines.edges(),
            strict=strict,
            replace_props=replace_props,
        )
    except InvalidInput as error:
        raise lines.by_line(error) from error


def export_lines(*, scope: GraphScope, extracted: bool = False) -> Iterator[bytes]:
    """JSON Lines that `import_lines` reads: all nodes, then all edges.

    Without `extracted` only given ones; extracted ones come from documents, and go with them.
    """
    for nodes in _batches(_exported_rows(Node, scope, extracted)):
        names: dict[int, list[str]] = {}
        aliases = Alias.objects.filter(node__in=[node.pk for node in nodes]).order_by("form")
        for pk, form in aliases.values_list("node", "form"):
            if not is_retired_id_form(form):
                names.setdefault(pk, []).append(form)
        for node, (id,) in _with_ids(scope, nodes, lambda node: [node]):
            parts = {
                "name": node.name,
                "labels": node.labels,
                "props": node.props,
                "aliases": names.get(node.pk),
            }
            given = {name: part for name, part in parts.items() if part}
            yield encode_line({"node": {"id": id, **given}})
    edges = _exported_rows(Edge, scope, extracted).select_related("source", "target")
    for part in _batches(edges.defer("source__props", "target__props")):
        for edge, (source, target) in _with_ids(
            scope, part, lambda edge: [edge.source, edge.target]
        ):
            named = {"source": source, "rel": edge.rel, "target": target, "weight": edge.weight}
            yield encode_line({"edge": {**named, "props": edge.props} if edge.props else named})


def _exported_rows(model: Any, scope: GraphScope, extracted: bool) -> "QuerySet[Any]":
    rows: GraphQuerySet[Any] = model.objects.filter(workspace=scope.workspace_id)
    if scope.user is not None:
        rows = rows.visible_to(scope.user)
    return rows.order_by("pk") if extracted else rows.filter(origin=Origin.GIVEN).order_by("pk")


def _batches(rows: "QuerySet[RowT, Any]") -> Iterator[list[RowT]]:
    waiting = rows.iterator(chunk_size=EXPORT_BATCH)
    while part := list(islice(waiting, EXPORT_BATCH)):
        yield part


def _with_ids(
    scope: GraphScope, rows: Sequence[RowT], nodes_of: Callable[[RowT], list[Node]]
) -> Iterator[tuple[RowT, list[str]]]:
    """Rows with the ids of their nodes; those with an invisible node are left out."""
    refs = {node.pk: ref_of_node(node) for row in rows for node in nodes_of(row)}
    found = load_vertices(AccessFilter(scope), refs.values())
    for row in rows:
        wanted = [refs[node.pk] for node in nodes_of(row)]
        if all(ref in found for ref in wanted):
            yield row, [found[ref].id for ref in wanted]

"""A graph as JSON Lines, which one site writes and another one reads."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from common.errors import InvalidInput
from graph.keys import is_retired_form
from graph.lines import Lines
from graph.models import Alias, Edge, Node, Origin
from graph.querysets import GraphQuerySet
from graph.reading.stands_for import stands_for
from graph.reading.vertices import load
from graph.scopes import GraphScope, sight
from graph.services.writing import upsert_many
from graph.storing.bulk import Upserted

ROWS_AT_ONCE = 1000
T = TypeVar("T", bound=Model)


def import_lines(
    *,
    scope: GraphScope,
    read: Callable[[], Iterable[bytes]],
    strict: bool = True,
    replace_props: bool = False,
) -> Upserted:
    """Write all nodes and edges of a file or none; `read` opens it, and is called twice.

    Raises InvalidInput and MissingNode, which name the line.
    """
    lines = Lines(read)
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
    """What `import_lines` reads, each with its line end: every node, then every edge.

    Without `extracted` only what was given: what documents tell comes from them, wherever they are
    ingested, and goes with them.
    """
    for nodes in _parts(_rows(Node, scope, extracted)):
        names = _names(nodes)
        for node, id in _with_ids(scope, nodes, lambda node: [node]):
            yield _line("node", _node(node, id[0], names.get(node.pk, [])))
    edges = _rows(Edge, scope, extracted).select_related("source", "target")
    for part in _parts(edges.defer("source__props", "target__props")):
        for edge, ids in _with_ids(scope, part, lambda edge: [edge.source, edge.target]):
            yield _line("edge", _edge(edge, *ids))


def _rows(model: Any, scope: GraphScope, extracted: bool) -> "QuerySet[Any]":
    rows: GraphQuerySet[Any] = model.objects.filter(workspace=scope.workspace_id)
    if scope.user is not None:
        rows = rows.visible_to(scope.user)
    return rows.order_by("pk") if extracted else rows.filter(origin=Origin.GIVEN).order_by("pk")


def _parts(rows: "QuerySet[T, Any]") -> Iterator[list[T]]:
    waiting = rows.iterator(chunk_size=ROWS_AT_ONCE)
    while part := list(islice(waiting, ROWS_AT_ONCE)):
        yield part


def _with_ids(
    scope: GraphScope, rows: Sequence[T], nodes_of: Callable[[T], list[Node]]
) -> Iterator[tuple[T, list[str]]]:
    """Rows with what their nodes are called outside; those of which one cannot be seen are left
    out."""
    refs = {node.pk: stands_for(node) for row in rows for node in nodes_of(row)}
    found = load(sight(scope), refs.values())
    for row in rows:
        wanted = [refs[node.pk] for node in nodes_of(row)]
        if all(ref in found for ref in wanted):
            yield row, [found[ref].id for ref in wanted]


def _names(nodes: Sequence[Node]) -> dict[int, list[str]]:
    """By which texts find them."""
    names: dict[int, list[str]] = {}
    rows = Alias.objects.filter(node__in=[node.pk for node in nodes]).order_by("form")
    for pk, form in rows.values_list("node", "form"):
        if not is_retired_form(form):
            names.setdefault(pk, []).append(form)
    return names


def _node(node: Node, id: str, names: Sequence[str]) -> dict[str, Any]:
    parts = {"name": node.name, "labels": node.labels, "props": node.props, "aliases": names}
    return {"id": id, **{name: part for name, part in parts.items() if part}}


def _edge(edge: Edge, source: str, target: str) -> dict[str, Any]:
    named = {"source": source, "rel": edge.rel, "target": target, "weight": edge.weight}
    return {**named, "props": edge.props} if edge.props else named


def _line(kind: str, value: dict[str, Any]) -> bytes:
    return json.dumps({kind: value}, ensure_ascii=False).encode() + b"\n"

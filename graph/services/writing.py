"""Nodes and edges written and removed by people and programs.

Whoever calls has made sure that the user of the scope may edit in its workspace. What such a user
cannot see does not exist here either: written, it begins anew as the user describes it, and not a
word of it is told; deleted, it is not found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from accounts.history import Action, Kind, note_change
from common.errors import InvalidInput
from graph.extraction.forms import form
from graph.inputs import EdgeInput, NodeInput
from graph.keys import check_writable, entity_value, names_content
from graph.models import Edge, Node
from graph.reading.resolving import resolve
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope, sight
from graph.storing import bulk, removing
from graph.storing.bulk import Upserted
from graph.storing.removing import Deletion


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The node as it is now. `taken` are names that mean another node already, in their normal
    form: texts that use them go on to mean that one."""

    node: Vertex
    created: bool
    changed: bool
    taken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """The edge as it is now, by the ids of its ends, and how many nodes were made for these."""

    source: str
    rel: str
    target: str
    weight: float
    props: Mapping[str, Any]
    created: bool
    changed: bool
    stubs: int = 0


def upsert_node(
    *,
    scope: GraphScope,
    id: str,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    props: Mapping[str, Any] | None = None,
    aliases: Sequence[str] = (),
    replace_props: bool = False,
) -> NodeChange:
    """Make the node, or change what is given of it: None leaves a thing as it is.

    Properties are added to those that are there, top-level key by key, or take their place with
    `replace_props`. Texts find the node by its name, its aliases and, for `ent:<type>:<value>`
    without a name, by the value. The former id of a merged node means the one that was kept. What
    was extracted is given from now on: it stays when no document mentions it. Of documents and
    passages (`doc:…`, `chunk:…`) labels and properties may be written, beside their own. Raises
    InvalidInput.
    """
    item = NodeInput(id, name, labels, props, aliases)
    written = _upsert(scope, nodes=[item], replace_props=replace_props)
    return NodeChange(
        node=resolve(sight(scope), [id], props=True)[id],
        created=bool(written.nodes_created),
        changed=bool(written.nodes_created or written.nodes_updated),
        taken=written.taken,
    )


def upsert_edge(
    *,
    scope: GraphScope,
    source: str,
    rel: str,
    target: str,
    weight: float | None = None,
    props: Mapping[str, Any] | None = None,
    strict: bool = True,
    replace_props: bool = False,
) -> EdgeChange:
    """Make the edge, or change its weight and properties, as `upsert_node` does.

    Both ends are given from now on. Raises MissingNode where one is not there; without `strict`
    it is made, with no name, unless it names a document. Raises InvalidInput.
    """
    item = EdgeInput(source, rel, target, weight, props)
    written = _upsert(scope, edges=[item], strict=strict, replace_props=replace_props)
    ends = resolve(sight(scope), [source, target])
    rows = _rows(ends)
    edge = Edge.objects.get(source=rows[source], rel=rel, target=rows[target])
    return EdgeChange(
        source=ends[source].id,
        rel=rel,
        target=ends[target].id,
        weight=edge.weight,
        props=edge.props,
        created=bool(written.edges_created),
        changed=bool(written.edges_created or written.edges_updated),
        stubs=written.stubs,
    )


def upsert_many(
    *,
    scope: GraphScope,
    nodes: Iterable[NodeInput] = (),
    edges: Iterable[EdgeInput] = (),
    strict: bool = True,
    replace_props: bool = False,
) -> Upserted:
    """Write all of them or none, nodes first: tens of thousands a second.

    As `upsert_node` and `upsert_edge` do. Of several items for one node or edge the last counts.
    What is there already, and the same, is not written. Iterables are read once, and must not
    themselves read from the database. Raises InvalidInput and MissingNode, which name the item.
    """
    return _upsert(
        scope, nodes=nodes, edges=edges, strict=strict, replace_props=replace_props, many=True
    )


def delete_node(*, scope: GraphScope, id: str) -> bool:
    """Remove a node with its edges, mentions and names; whether there was one."""
    return bool(delete_nodes(scope=scope, ids=[id]).nodes)


def delete_nodes(*, scope: GraphScope, ids: Iterable[str]) -> Deletion:
    """Remove nodes, and what nobody described and hung only on them; what that was.

    Of ids that name nothing nothing is removed. What documents mention comes back when they are
    read again. Raises InvalidInput for documents and passages.
    """
    return removing.delete_nodes(scope, _own_rows(scope, ids))


def deletion_preview(*, scope: GraphScope, ids: Iterable[str]) -> Deletion:
    """What `delete_nodes` would remove, as far as the scope may see it."""
    return removing.preview(scope, _own_rows(scope, ids))


def delete_edge(*, scope: GraphScope, source: str, rel: str, target: str) -> bool:
    """Remove an edge; whether there was one. Raises InvalidInput for one that documents tell
    themselves."""
    check_writable(source, rel, target)
    rows = _rows(resolve(sight(scope), [source, target]))
    if not {source, target} <= rows.keys():
        return False
    ends = rows[source], rows[target]
    edges = Edge.objects.filter(source=ends[0], rel=rel, target=ends[1])
    if scope.user is not None:
        edges = edges.visible_to(scope.user)
    edge = edges.only("pk").first()
    return edge is not None and removing.delete_edge(scope, edge.pk, ends)


def _upsert(
    scope: GraphScope,
    *,
    nodes: Iterable[NodeInput] = (),
    edges: Iterable[EdgeInput] = (),
    strict: bool = True,
    replace_props: bool = False,
    many: bool = False,
) -> Upserted:
    with transaction.atomic():
        written = bulk.upsert(
            scope,
            nodes=nodes,
            edges=edges,
            strict=strict,
            replace_props=replace_props,
            many=many,
            forms_of=_forms,
            find_content=lambda ids: _content(scope, ids),
        )
        _note(scope, written)
    return written


def _note(scope: GraphScope, written: Upserted) -> None:
    """How much of each kind was made and changed."""
    for action, kind, count in (
        (Action.MADE, Kind.NODE, written.nodes_created + written.stubs),
        (Action.CHANGED, Kind.NODE, written.nodes_updated),
        (Action.MADE, Kind.EDGE, written.edges_created),
        (Action.CHANGED, Kind.EDGE, written.edges_updated),
    ):
        note_change(action=action, kind=kind, workspace_id=scope.workspace_id, count=count)


def _forms(node: NodeInput) -> list[str]:
    names = [node.name or entity_value(node.id), *node.aliases]
    return [each for each in dict.fromkeys(form(name) for name in names) if each]


def _content(scope: GraphScope, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
    found = resolve(sight(scope), ids)
    return {
        node_id: (vertex.kind, vertex.pk)
        for node_id, vertex in found.items()
        if names_content(node_id) and vertex.kind != "node"
    }


def _own_rows(scope: GraphScope, ids: Iterable[str]) -> list[int]:
    """The rows of these nodes. Raises InvalidInput for documents and passages."""
    vertices = resolve(sight(scope), ids)
    if content := next((each for each in vertices.values() if each.kind != "node"), None):
        raise InvalidInput(
            f"“{content.id}” is a {content.kind} and goes with its document. Delete that, or the"
            " edges that hang on it.",
            field="id",
        )
    return [vertex.pk for vertex in vertices.values()]


def _rows(vertices: Mapping[str, Vertex]) -> dict[str, int]:
    """The rows of `graph_node`; a document or passage has one if an edge of a caller hangs on
    it."""
    rows = {}
    for node_id, vertex in vertices.items():
        if vertex.kind == "node":
            rows[node_id] = vertex.pk
        elif row := Node.objects.filter(**{vertex.kind: vertex.pk}).first():
            rows[node_id] = row.pk
    return rows

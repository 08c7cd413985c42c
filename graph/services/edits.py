"""Writes to the graph: upsert, delete and merge nodes and edges; aliases; repeated extraction.

Callers have checked that the user of the scope may edit in its workspace. What that user cannot
see does not exist here: written, it starts from the user's own description; deleted, it is not
found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from accounts.audit import Action, Kind, record_change
from common.errors import Conflict, InvalidInput, NotFound
from common.leases import retry_on_deadlock
from documents.models import Collection
from graph import inputs
from graph.extraction.normalized_names import normalize_name
from graph.inputs import EdgeInput, NodeInput
from graph.listener import GraphListener
from graph.models import Alias, Edge, Extraction, Node
from graph.node_ids import check_id, check_writable, entity_value, is_content_id
from graph.reading.vertices import Vertex, resolve
from graph.scopes import GraphScope, access_filter
from graph.storing import merge, removal, upsert
from graph.storing.merge import MergeResult
from graph.storing.removal import Deletion, remove_unused_stubs
from graph.storing.upsert import UpsertResult


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The node after a write. `taken` are normalised names that already mean another
    node, and still do.
    """

    node: Vertex
    created: bool
    changed: bool
    taken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """The edge after a write, by ids of its ends, and how many nodes were created for these."""

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
    """Creates or changes a node; None leaves a value as it is.

    Properties are merged by top-level key, or replaced with `replace_props`. Texts find the
    node by name, aliases and, for an unnamed `ent:<type>:<value>`, by the value. Former ids
    mean the kept node. An extracted node becomes given. Documents and passages (`doc:…`,
    `chunk:…`) can get labels and properties. Raises InvalidInput.
    """
    item = NodeInput(id, name, labels, props, aliases)
    written = _upsert(scope, nodes=[item], replace_props=replace_props)
    return NodeChange(
        node=resolve(access_filter(scope), [id], props=True)[id],
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
    """Creates an edge, or changes its weight and properties, as `upsert_node` does.

    Both ends become given. Raises MissingNode for a missing end; without `strict` it is created
    without a name, unless it names a document. Raises InvalidInput.
    """
    item = EdgeInput(source, rel, target, weight, props)
    written = _upsert(scope, edges=[item], strict=strict, replace_props=replace_props)
    ends = resolve(access_filter(scope), [source, target])
    rows = _vertex_rows(ends)
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
) -> UpsertResult:
    """Writes all or none, nodes first; tens of thousands per second.

    Semantics as `upsert_node` and `upsert_edge`; of duplicates the last counts; unchanged rows
    are not written. Iterables are read once, and must not use the database. Raises InvalidInput
    and MissingNode with the item.
    """
    return _upsert(
        scope, nodes=nodes, edges=edges, strict=strict, replace_props=replace_props, many=True
    )


def delete_nodes(*, scope: GraphScope, ids: Iterable[str]) -> Deletion:
    """Deletes nodes, and stubs that only they used; returns counts.

    Unknown ids are ignored. Extracted nodes return with the next extraction. Raises
    InvalidInput for documents and passages.
    """
    return removal.delete_node_rows(scope, _deletable_rows(scope, ids))


def deletion_preview(*, scope: GraphScope, ids: Iterable[str]) -> Deletion:
    """What `delete_nodes` would delete, as far as visible."""
    return removal.preview_deletion(scope, _deletable_rows(scope, ids))


def delete_edge(*, scope: GraphScope, source: str, rel: str, target: str) -> bool:
    """Deletes an edge; whether there was one. Raises InvalidInput for a derived relation."""
    check_writable(source, rel, target)
    rows = _vertex_rows(resolve(access_filter(scope), [source, target]))
    if not {source, target} <= rows.keys():
        return False
    ends = rows[source], rows[target]
    edges = Edge.objects.filter(source=ends[0], rel=rel, target=ends[1])
    if scope.user is not None:
        edges = edges.visible_to(scope.user)
    edge = edges.only("pk").first()
    return edge is not None and removal.delete_edge_row(scope, edge.pk, ends)


def _upsert(
    scope: GraphScope,
    *,
    nodes: Iterable[NodeInput] = (),
    edges: Iterable[EdgeInput] = (),
    strict: bool = True,
    replace_props: bool = False,
    many: bool = False,
) -> UpsertResult:
    with transaction.atomic():
        written = upsert.upsert_items(
            scope,
            nodes=nodes,
            edges=edges,
            strict=strict,
            replace_props=replace_props,
            many=many,
            forms_of=_name_forms,
            find_content=lambda ids: _find_content(scope, ids),
        )
        # Records counts in the audit log.
        for action, kind, count in (
            (Action.MADE, Kind.NODE, written.nodes_created + written.stubs),
            (Action.CHANGED, Kind.NODE, written.nodes_updated),
            (Action.MADE, Kind.EDGE, written.edges_created),
            (Action.CHANGED, Kind.EDGE, written.edges_updated),
        ):
            record_change(action=action, kind=kind, workspace_id=scope.workspace_id, count=count)
    return written


def _name_forms(node: NodeInput) -> list[str]:
    names = [node.name or entity_value(node.id), *node.aliases]
    return [each for each in dict.fromkeys(normalize_name(name) for name in names) if each]


def _find_content(scope: GraphScope, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
    found = resolve(access_filter(scope), ids)
    return {
        node_id: (vertex.kind, vertex.pk)
        for node_id, vertex in found.items()
        if is_content_id(node_id) and vertex.kind != "node"
    }


def _deletable_rows(scope: GraphScope, ids: Iterable[str]) -> list[int]:
    """Rows of these nodes. Raises InvalidInput for documents and passages."""
    vertices = resolve(access_filter(scope), ids)
    if content := next((each for each in vertices.values() if each.kind != "node"), None):
        raise InvalidInput(
            f"“{content.id}” is a {content.kind} and goes with its document. Delete that, or the"
            " edges that hang on it.",
            field="id",
        )
    return [vertex.pk for vertex in vertices.values()]


def _vertex_rows(vertices: Mapping[str, Vertex]) -> dict[str, int]:
    """Rows of `graph_node`; documents and passages have one only for edges of callers."""
    rows = {}
    for node_id, vertex in vertices.items():
        if vertex.kind == "node":
            rows[node_id] = vertex.pk
        elif row := Node.objects.filter(**{vertex.kind: vertex.pk}).first():
            rows[node_id] = row.pk
    return rows


@dataclass(frozen=True, slots=True)
class Merged:
    """The kept node after the merge, and what was done."""

    node: Vertex
    done: MergeResult


def merge_nodes(*, scope: GraphScope, keep: str, others: Iterable[str]) -> Merged:
    """Merges the nodes `others` into `keep`, whose id, name and properties take precedence.

    Labels are united and missing properties added. Equal edges become one: a given one before
    an extracted one, with the largest weight and all evidence; edges among the nodes are
    deleted. Mention counts of a passage are added. Aliases and former ids mean the kept node,
    also in new extractions. The result is given if one of them was. Raises NotFound for a
    missing or invisible node, InvalidInput for documents, passages, and a node with itself.
    """
    kept, rest = _resolve_merge(scope, keep, others)
    done = merge.merge_rows(
        access_filter(scope),
        workspace_id=scope.workspace_id,
        keep=kept.pk,
        others=[vertex.pk for vertex in rest],
    )
    return Merged(node=resolve(access_filter(scope), [kept.id], props=True)[kept.id], done=done)


def merge_preview(*, scope: GraphScope, keep: str, others: Iterable[str]) -> MergeResult:
    """What `merge_nodes` would do, as far as visible. Raises the same."""
    kept, rest = _resolve_merge(scope, keep, others)
    return merge.preview_merge(
        access_filter(scope), keep=kept.pk, others=[vertex.pk for vertex in rest]
    )


def _resolve_merge(
    scope: GraphScope, keep: str, others: Iterable[str]
) -> tuple[Vertex, Sequence[Vertex]]:
    ids = [check_id(node_id, field="others") for node_id in dict.fromkeys(others)]
    if not ids:
        raise InvalidInput("Name at least one node that is to go into it.", field="others")
    found = resolve(access_filter(scope), [check_id(keep, field="keep"), *ids])
    if missing := [node_id for node_id in (keep, *ids) if node_id not in found]:
        names = ", ".join(f"“{node_id}”" for node_id in missing[:5])
        raise NotFound(f"There is no node {names}. Look again which there are.")
    if content := next((each for each in found.values() if each.kind != "node"), None):
        raise InvalidInput(
            f"“{content.id}” is a {content.kind}: it stays what it is. Merge nodes only.",
            field="others",
        )
    rest = list({found[node_id].pk: found[node_id] for node_id in ids}.values())
    if any(vertex.pk == found[keep].pk for vertex in rest):
        raise InvalidInput("A node cannot be merged with itself.", field="others")
    return found[keep], rest


_DELETE_EDGES_SQL = (
    "DELETE FROM graph_edge WHERE id = ANY(%s) RETURNING workspace_id, id, source_id, target_id"
)


def add_alias(*, node: Node, name: str) -> Alias:
    """Makes `name` mean the node; nothing changes if it does already.

    Deleted with the node. Raises InvalidInput for a name without letter or digit, Conflict
    where it means another node, NotFound where the node is gone.
    """
    normal = normalize_name(inputs.check_name(name, field="form"))
    if not normal:
        raise InvalidInput("A name has at least one letter or digit.", field="form")
    with transaction.atomic():
        held = Node.objects.select_for_update(no_key=True).filter(pk=node.pk).first()
        if held is None:
            raise NotFound("The node has just been removed. Look again which there are.")
        alias, is_new = Alias.objects.select_related("node").get_or_create(
            workspace_id=held.workspace_id, form=normal, defaults={"node": held}
        )
        if is_new:
            _record_alias_changes(Action.MADE, [alias])
    if alias.node_id != held.pk:
        raise Conflict(
            f"“{normal}” means the node “{alias.node}” already. Remove it there first, or merge"
            " the two."
        )
    return alias


def remove_aliases(*, alias_ids: Sequence[int]) -> int:
    """Removes aliases; returns how many. A new extraction that names a node by its id
    restores that alias.
    """
    with transaction.atomic():
        rows = list(Alias.objects.filter(pk__in=alias_ids).order_by("pk").select_for_update())
        _record_alias_changes(Action.DELETED, rows)
        return Alias.objects.filter(pk__in=[row.pk for row in rows]).delete()[0]


def _record_alias_changes(action: Action, rows: Sequence[Alias]) -> None:
    for workspace in {row.workspace_id for row in rows}:
        record_change(
            action=action,
            kind=Kind.ALIAS,
            workspace_id=workspace,
            object_id=[row.pk for row in rows if row.workspace_id == workspace],
        )


def delete_edges(*, edge_ids: Sequence[int]) -> int:
    """Deletes edges, and stubs that only they used; returns how many edges."""
    return retry_on_deadlock(lambda: _delete_edges(sorted(edge_ids)))


@transaction.atomic
def _delete_edges(edge_ids: Sequence[int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_EDGES_SQL, [list(edge_ids)])
        gone = cursor.fetchall()
    for workspace in {row[0] for row in gone}:
        record_change(
            action=Action.DELETED,
            kind=Kind.EDGE,
            workspace_id=workspace,
            object_id=[row[1] for row in gone if row[0] == workspace],
        )
    remove_unused_stubs({pk for row in gone for pk in row[2:]})
    return len(gone)


@transaction.atomic
def repeat_extraction(*, document_ids: Sequence[int]) -> int:
    """Queues these documents for extraction as if new; returns how many.

    Earlier results stay until then. Collections with the graph off are left out.
    """
    GraphListener().loaded(document_ids)
    waiting = Extraction.objects.filter(document__in=document_ids, state=Extraction.State.WAITING)
    return waiting.exclude(collection__graph=Collection.Graph.OFF).count()

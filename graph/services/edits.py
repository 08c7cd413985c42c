"""Deletion of nodes and edges; nodes as people describe them; repeated extraction.

Callers have checked that the user of the scope may edit in its workspace. What that user cannot
see does not exist here: deleted, it is not found.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from common.errors import InvalidInput
from common.leases import retry_on_deadlock
from documents.models import Collection
from graph.extraction.normalized_names import normalize_name
from graph.listener import GraphListener
from graph.models import Alias, Edge, Extraction
from graph.node_ids import check_writable, is_content_id
from graph.reading.vertices import resolve, vertex_rows
from graph.removal import IS_UNUSED_STUB, remove_unused_stubs
from graph.scopes import AccessFilter, GraphScope
from graph.services.upsert import upsert_node

# In the order of their ids, as everywhere: first all nodes that may go, then the edges.
_LOCK_SQL = (
    """
    SELECT id FROM graph_node WHERE id = ANY(%(nodes)s) OR id = ANY(%(beside)s)
    ORDER BY id FOR UPDATE
    """,
    """
    SELECT id FROM graph_edge WHERE source_id = ANY(%(nodes)s) OR target_id = ANY(%(nodes)s)
    ORDER BY id FOR UPDATE
    """,
)
_NEIGHBOURS_SQL = """
    SELECT node.id FROM graph_node AS node
    WHERE NOT node.id = ANY(%(nodes)s) AND (
        node.id IN (SELECT source_id FROM graph_edge WHERE target_id = ANY(%(nodes)s))
        OR node.id IN (SELECT target_id FROM graph_edge WHERE source_id = ANY(%(nodes)s)))
      AND (node.is_stub OR node.origin = 'extracted')
    ORDER BY node.id
"""
_DELETE_NODES_SQL = "DELETE FROM graph_node WHERE id = ANY(%(nodes)s)"
_COUNT_SQL = """
    SELECT (SELECT count(*) FROM graph_node AS node WHERE node.id = ANY(%(nodes)s)),
           (SELECT count(*) FROM graph_edge AS edge
            JOIN graph_node AS source ON source.id = edge.source_id
            JOIN graph_node AS target ON target.id = edge.target_id
            WHERE (edge.source_id = ANY(%(nodes)s) OR edge.target_id = ANY(%(nodes)s))
              AND {edge} AND {source} AND {target}),
           (SELECT count(*) FROM graph_mention AS mention
            JOIN documents_chunk AS chunk ON chunk.id = mention.chunk_id
            WHERE mention.node_id = ANY(%(nodes)s) AND {passage}),
           (SELECT count(*) FROM graph_alias AS alias
            WHERE alias.node_id = ANY(%(nodes)s) AND left(alias.form, 1) NOT IN ('=', '~')),
           (SELECT count(*) FROM graph_node AS node WHERE node.id = ANY(%(beside)s) AND {alone})
"""


@dataclass(frozen=True, slots=True)
class Deletion:
    """Counts of what was deleted."""

    nodes: Annotated[int, "Of the requested nodes."] = 0
    edges: Annotated[int, "Edges of these nodes."] = 0
    mentions: Annotated[int, "Mentions of these nodes."] = 0
    aliases: Annotated[int, "Aliases of these nodes."] = 0
    stubs: Annotated[int, "Nodes that were created only for one of these edges."] = 0


def delete_nodes(*, scope: GraphScope, ids: Iterable[str]) -> Deletion:
    """Deletes nodes, and stubs that only they used; returns visible counts.

    Unknown ids are ignored. Extracted nodes return with the next extraction. Raises
    InvalidInput for documents and passages.
    """
    rows = sorted(_deletable_rows(scope, ids))

    @transaction.atomic
    def delete() -> Deletion:
        with connection.cursor() as cursor:
            held = {"nodes": rows, "beside": _removable_neighbours(cursor, rows)}
            for statement in _LOCK_SQL:
                cursor.execute(statement, held)
            gone = _preview(scope, rows)
            beside = _removable_neighbours(cursor, rows)
            cursor.execute(_DELETE_NODES_SQL, {"nodes": rows})
        record_change(
            action=Action.DELETED, kind=Kind.NODE, workspace_id=scope.workspace_id, object_id=rows
        )
        remove_unused_stubs(beside)
        return gone

    return retry_on_deadlock(delete) if rows else Deletion()


def deletion_preview(*, scope: GraphScope, ids: Iterable[str]) -> Deletion:
    """What `delete_nodes` would delete, as far as visible."""
    return _preview(scope, _deletable_rows(scope, ids))


def _preview(scope: GraphScope, rows: list[int]) -> Deletion:
    seen = AccessFilter(scope)
    statement = _COUNT_SQL.format(
        edge=seen.edge("edge"),
        source=seen.node("source"),
        target=seen.node("target"),
        passage=seen.passage("chunk"),
        alone=IS_UNUSED_STUB,
    )
    with connection.cursor() as cursor:
        beside = _removable_neighbours(cursor, rows)
        cursor.execute(statement, seen.parameters | {"nodes": rows, "beside": beside})
        return Deletion(*cursor.fetchone())


def _removable_neighbours(cursor: Any, rows: list[int]) -> list[int]:
    cursor.execute(_NEIGHBOURS_SQL, {"nodes": rows})
    return [pk for (pk,) in cursor.fetchall()]


def _deletable_rows(scope: GraphScope, ids: Iterable[str]) -> list[int]:
    """Rows of these nodes. Raises InvalidInput for documents and passages."""
    vertices = resolve(AccessFilter(scope), ids)
    if content := next((each for each in vertices.values() if each.kind != "node"), None):
        raise InvalidInput(
            gettext(
                "“{name}” is a {kind} and is deleted with its document. Delete the"
                " document, or the edges of the node."
            ).format(name=content.id, kind=content.kind),
            field="id",
        )
    return [vertex.pk for vertex in vertices.values()]


def delete_edge(*, scope: GraphScope, source: str, rel: str, target: str) -> bool:
    """Deletes an edge; whether there was one. Raises InvalidInput for a derived relation."""
    check_writable(source, rel, target)
    rows = vertex_rows(resolve(AccessFilter(scope), [source, target]))
    edges = Edge.objects.filter(source=rows.get(source), rel=rel, target=rows.get(target))
    if scope.user is not None:
        edges = edges.visible_to(scope.user)
    return bool(delete_edges(edge_ids=list(edges.values_list("pk", flat=True))))


_DELETE_EDGES_SQL = (
    "DELETE FROM graph_edge WHERE id = ANY(%s) RETURNING workspace_id, id, source_id, target_id"
)


def delete_edges(*, edge_ids: Sequence[int]) -> int:
    """Deletes edges, and stubs that only they used; returns how many edges."""

    @transaction.atomic
    def delete() -> int:
        with connection.cursor() as cursor:
            cursor.execute(_DELETE_EDGES_SQL, [sorted(edge_ids)])
            gone = cursor.fetchall()
        _record_by_workspace(Action.DELETED, Kind.EDGE, (row[:2] for row in gone))
        remove_unused_stubs({pk for row in gone for pk in row[2:]})
        return len(gone)

    return retry_on_deadlock(delete)


def _record_by_workspace(action: Action, kind: Kind, rows: Iterable[tuple[int, int]]) -> None:
    """Records a change of rows, given as (workspace, id), in their workspaces."""
    ids: dict[int, list[int]] = defaultdict(list)
    for workspace, pk in rows:
        ids[workspace].append(pk)
    for workspace, changed in ids.items():
        record_change(action=action, kind=kind, workspace_id=workspace, object_id=changed)


@transaction.atomic
def describe_node(
    *,
    scope: GraphScope,
    id: str,
    is_new: bool = False,
    aliases: Sequence[str] | None = None,
    **given: Any,
) -> tuple[str, ...]:
    """Writes what a person typed: the fields `given`, as `upsert_node` takes them, and all names of
    the node in texts, where `aliases` is not None; others of its names are removed.

    Returns its normalised name if texts mean another node by it. Raises InvalidInput, also where an
    alias means another node, and where a new node exists already.
    """
    if is_new and (there := resolve(AccessFilter(scope), [id])):
        raise InvalidInput(
            gettext("“{name}” already has this id. Change that node instead.").format(
                name=there[id].name
            ),
            field="id",
        )
    if is_new and is_content_id(id):
        raise InvalidInput(
            gettext("This prefix is reserved for documents and passages. Choose another id."),
            field="id",
        )
    forms = {normalize_name(name): name for name in aliases or ()}
    if "" in forms:
        raise InvalidInput(gettext("A name needs at least one letter or digit."), field="aliases")
    known = {alias.form: alias.pk for alias in names_of(scope=scope, id=id)}
    added = [name for form, name in forms.items() if form not in known]
    change = upsert_node(scope=scope, id=id, aliases=added, replace_props=True, **given)
    if taken := next((form for form in change.taken if form in forms), ""):
        raise InvalidInput(
            gettext(
                "“{normal}” is already a name of another node. Remove it there first, or merge the"
                " two nodes."
            ).format(normal=taken),
            field="aliases",
        )
    record_change(
        action=Action.MADE, kind=Kind.ALIAS, workspace_id=scope.workspace_id, count=len(added)
    )
    if aliases is not None:
        kept = {*forms, normalize_name(given.get("name", ""))}
        remove_aliases(alias_ids=[pk for form, pk in known.items() if form not in kept])
    return change.taken


def names_of(*, scope: GraphScope, id: str) -> QuerySet[Alias]:
    """The names by which texts mean the node, without former ids."""
    vertex = resolve(AccessFilter(scope), [id]).get(id)
    pk = vertex.pk if vertex and vertex.kind == "node" else None
    names = Alias.objects.filter(node=pk).order_by("form")
    return names.exclude(form__startswith="=").exclude(form__startswith="~")


def remove_aliases(*, alias_ids: Sequence[int]) -> int:
    """Removes aliases; returns how many. A new extraction that names a node by its id
    restores that alias.
    """
    with transaction.atomic():
        rows = Alias.objects.filter(pk__in=alias_ids).order_by("pk").select_for_update()
        found = list(rows.values_list("workspace_id", "pk"))
        _record_by_workspace(Action.DELETED, Kind.ALIAS, found)
        return Alias.objects.filter(pk__in=[pk for _, pk in found]).delete()[0]


@transaction.atomic
def repeat_extraction(*, document_ids: Sequence[int]) -> int:
    """Queues these documents for extraction as if new; returns how many.

    Earlier results stay until then. Collections with the graph off are left out.
    """
    GraphListener().loaded(document_ids)
    waiting = Extraction.objects.filter(document__in=document_ids, state=Extraction.State.WAITING)
    return waiting.exclude(collection__graph=Collection.Graph.OFF).count()

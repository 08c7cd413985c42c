"""Nodes and edges taken out, with what hung only on them."""

from collections.abc import Collection as Ids
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from accounts.history import Action, Kind, note_change
from common.deadlocks import despite_deadlocks
from graph.scopes import GraphScope, sight
from graph.storing.orphans import Mentioned, remove_orphans

# In the order of their ids, as everywhere: first all nodes that may go, then the edges.
_HOLD = (
    """
    SELECT id FROM graph_node WHERE id = ANY(%(nodes)s) OR id = ANY(%(beside)s)
    ORDER BY id FOR UPDATE
    """,
    """
    SELECT id FROM graph_edge WHERE source_id = ANY(%(nodes)s) OR target_id = ANY(%(nodes)s)
    ORDER BY id FOR UPDATE
    """,
)
_BESIDE = """
    SELECT node.id FROM graph_node AS node
    WHERE NOT node.id = ANY(%(nodes)s) AND (
        node.id IN (SELECT source_id FROM graph_edge WHERE target_id = ANY(%(nodes)s))
        OR node.id IN (SELECT target_id FROM graph_edge WHERE source_id = ANY(%(nodes)s)))
      AND (node.is_stub OR node.origin = 'extracted')
    ORDER BY node.id
"""
_DELETE = "DELETE FROM graph_node WHERE id = ANY(%(nodes)s)"
_LEFT_ALONE = """
    node.is_stub
    AND NOT EXISTS (SELECT FROM graph_mention WHERE node_id = node.id)
    AND NOT EXISTS (
        SELECT FROM graph_edge WHERE source_id = node.id AND NOT target_id = ANY(%(nodes)s))
    AND NOT EXISTS (
        SELECT FROM graph_edge WHERE target_id = node.id AND NOT source_id = ANY(%(nodes)s))
"""
_HOLD_STUBS = """
    SELECT id FROM graph_node WHERE id = ANY(%(beside)s) AND is_stub ORDER BY id FOR UPDATE
"""
_DELETE_STUBS = f"DELETE FROM graph_node AS node WHERE id = ANY(%(beside)s) AND {_LEFT_ALONE}"
_COUNT = """
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
    """What goes: nodes, their edges, mentions and names, and nodes that were made only because one
    of these edges hung on them."""

    nodes: int = 0
    edges: int = 0
    mentions: int = 0
    aliases: int = 0
    stubs: int = 0


def preview(scope: GraphScope, nodes: Ids[int]) -> Deletion:
    """What goes with these nodes, as far as the scope may see it."""
    parameters = {"nodes": list(nodes)}
    seen = sight(scope)
    statement = _COUNT.format(
        edge=seen.edge("edge"),
        source=seen.node("source"),
        target=seen.node("target"),
        passage=seen.passage("chunk"),
        alone=_LEFT_ALONE,
    )
    with connection.cursor() as cursor:
        beside = _beside(cursor, parameters)
        cursor.execute(statement, seen.parameters | parameters | {"beside": beside})
        return Deletion(*cursor.fetchone())


def delete_nodes(scope: GraphScope, nodes: Ids[int]) -> Deletion:
    """Remove these nodes; what went, as far as the scope may see it."""
    if not nodes:
        return Deletion()
    return despite_deadlocks(lambda: _delete_nodes(scope, sorted(nodes)))


@transaction.atomic
def _delete_nodes(scope: GraphScope, nodes: Ids[int]) -> Deletion:
    parameters = {"nodes": list(nodes)}
    with connection.cursor() as cursor:
        held = parameters | {"beside": _beside(cursor, parameters)}
        for statement in _HOLD:
            cursor.execute(statement, held)
        gone = preview(scope, nodes)
        beside = _beside(cursor, parameters)
        cursor.execute(_DELETE, parameters)
    note_change(
        action=Action.DELETED, kind=Kind.NODE, workspace_id=scope.workspace_id, thing=list(nodes)
    )
    remove_alone(beside)
    return gone


@transaction.atomic
def delete_edge(scope: GraphScope, edge_id: int, ends: Ids[int]) -> bool:
    """Remove an edge; whether it was still there."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM graph_edge WHERE id = %s", [edge_id])
        gone = bool(cursor.rowcount)
    if gone:
        note_change(
            action=Action.DELETED, kind=Kind.EDGE, workspace_id=scope.workspace_id, thing=edge_id
        )
    remove_alone(ends)
    return gone


def remove_alone(nodes: Ids[int]) -> None:
    """Remove those of the nodes that nobody described and nothing hangs on any more."""
    if not nodes:
        return
    with connection.cursor() as cursor:
        parameters: dict[str, Any] = {"beside": sorted(nodes), "nodes": []}
        cursor.execute(_HOLD_STUBS, parameters)
        cursor.execute(_DELETE_STUBS, parameters)
    remove_orphans(Mentioned(nodes=nodes, edges=()))


def _beside(cursor: Any, parameters: dict[str, Any]) -> list[int]:
    cursor.execute(_BESIDE, parameters)
    return [pk for (pk,) in cursor.fetchall()]

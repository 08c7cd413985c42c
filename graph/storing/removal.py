"""Removal of nodes and edges, and of extracted ones that no passage mentions any more.

Names of extracted nodes are text of documents, so they are removed in the transaction that
removes the text.
"""

from collections.abc import Collection as Ids
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from accounts.audit import Action, Kind, record_change
from common.leases import retry_on_deadlock
from documents.models import Chunk, Collection, IngestionRun
from graph.models import Evidence, Extraction, Mention
from graph.scopes import GraphScope, access_filter


@dataclass(frozen=True, slots=True)
class MentionedRows:
    """Nodes and edges that some passages mention."""

    nodes: Ids[int]
    edges: Ids[int]


def mentioned_by(chunks: "QuerySet[Chunk]") -> MentionedRows:
    """Nodes and edges that these passages mention."""
    return MentionedRows(
        nodes=set(
            Mention.objects.filter(chunk__in=chunks.values("pk")).values_list("node", flat=True)
        ),
        edges=set(
            Evidence.objects.filter(chunk__in=chunks.values("pk")).values_list("edge", flat=True)
        ),
    )


# Held first, nodes before edges and each in the order of their ids, as whoever writes them does,
# and looked at by statements of their own: what somebody else has just said of a node is seen then.
_LOCK_ORPHAN_NODES_SQL = """
    SELECT id FROM graph_node
    WHERE (id = ANY(%(nodes)s)
           OR id IN (SELECT unnest(ARRAY[source_id, target_id]) FROM graph_edge
                     WHERE id = ANY(%(edges)s) AND origin = 'extracted'))
      AND origin = 'extracted'
    ORDER BY id FOR UPDATE
"""
_LOCK_ORPHAN_EDGES_SQL = """
    SELECT id FROM graph_edge
    WHERE id = ANY(%(edges)s) AND origin = 'extracted' ORDER BY id FOR UPDATE
"""
_REMOVE_EDGES_SQL = """
    DELETE FROM graph_edge AS edge
    WHERE id = ANY(%(edges)s) AND origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_evidence WHERE edge_id = edge.id)
"""
_REMOVE_NODES_SQL = """
    DELETE FROM graph_node AS node
    WHERE id = ANY(%(held)s) AND origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_mention WHERE node_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE source_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE target_id = node.id)
"""


def remove_orphans(candidates: MentionedRows) -> int:
    """Deletes those of `candidates` that no passage mentions; returns the number of nodes.

    Given nodes stay, and so do ends of given edges.
    """
    if not candidates.nodes and not candidates.edges:
        return 0
    asked = {"nodes": list(candidates.nodes), "edges": list(candidates.edges)}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_ORPHAN_NODES_SQL, asked)
        held = [pk for (pk,) in cursor.fetchall()]
        if candidates.edges:
            cursor.execute(_LOCK_ORPHAN_EDGES_SQL, asked)
            cursor.execute(_REMOVE_EDGES_SQL, asked)
        cursor.execute(_REMOVE_NODES_SQL, {"held": held})
        return int(cursor.rowcount)


@transaction.atomic
def remove_extracted(collection: Collection) -> int:
    """Removes all mentions and relations extracted from the collection; returns the
    number of deleted nodes.
    """
    # First: a running extraction has locked that row, so this waits for it.
    Extraction.objects.filter(collection=collection).delete()
    IngestionRun.objects.filter(collection=collection).update(mentions=0, relations=0)
    chunks = Chunk.objects.filter(collection=collection)
    candidates = mentioned_by(chunks)
    Evidence.objects.filter(chunk__in=chunks.values("pk"))._raw_delete("default")
    Mention.objects.filter(chunk__in=chunks.values("pk"))._raw_delete("default")
    return remove_orphans(candidates)


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
_IS_UNUSED_STUB = """
    node.is_stub
    AND NOT EXISTS (SELECT FROM graph_mention WHERE node_id = node.id)
    AND NOT EXISTS (
        SELECT FROM graph_edge WHERE source_id = node.id AND NOT target_id = ANY(%(nodes)s))
    AND NOT EXISTS (
        SELECT FROM graph_edge WHERE target_id = node.id AND NOT source_id = ANY(%(nodes)s))
"""
_LOCK_STUBS_SQL = """
    SELECT id FROM graph_node WHERE id = ANY(%(beside)s) AND is_stub ORDER BY id FOR UPDATE
"""
_DELETE_STUBS_SQL = (
    f"DELETE FROM graph_node AS node WHERE id = ANY(%(beside)s) AND {_IS_UNUSED_STUB}"
)
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
    """Counts of deleted nodes, edges, mentions and aliases, and of stubs that only
    these edges used.
    """

    nodes: int = 0
    edges: int = 0
    mentions: int = 0
    aliases: int = 0
    stubs: int = 0


def preview_deletion(scope: GraphScope, nodes: Ids[int]) -> Deletion:
    """What would be deleted with these nodes, as far as visible."""
    parameters = {"nodes": list(nodes)}
    seen = access_filter(scope)
    statement = _COUNT_SQL.format(
        edge=seen.edge("edge"),
        source=seen.node("source"),
        target=seen.node("target"),
        passage=seen.passage("chunk"),
        alone=_IS_UNUSED_STUB,
    )
    with connection.cursor() as cursor:
        beside = _removable_neighbours(cursor, parameters)
        cursor.execute(statement, seen.parameters | parameters | {"beside": beside})
        return Deletion(*cursor.fetchone())


def delete_node_rows(scope: GraphScope, nodes: Ids[int]) -> Deletion:
    """Deletes these nodes; returns visible counts."""
    if not nodes:
        return Deletion()
    return retry_on_deadlock(lambda: _delete_locked_nodes(scope, sorted(nodes)))


@transaction.atomic
def _delete_locked_nodes(scope: GraphScope, nodes: Ids[int]) -> Deletion:
    parameters = {"nodes": list(nodes)}
    with connection.cursor() as cursor:
        held = parameters | {"beside": _removable_neighbours(cursor, parameters)}
        for statement in _LOCK_SQL:
            cursor.execute(statement, held)
        gone = preview_deletion(scope, nodes)
        beside = _removable_neighbours(cursor, parameters)
        cursor.execute(_DELETE_NODES_SQL, parameters)
    record_change(
        action=Action.DELETED,
        kind=Kind.NODE,
        workspace_id=scope.workspace_id,
        object_id=list(nodes),
    )
    remove_unused_stubs(beside)
    return gone


@transaction.atomic
def delete_edge_row(scope: GraphScope, edge_id: int, ends: Ids[int]) -> bool:
    """Deletes an edge; whether it existed."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM graph_edge WHERE id = %s", [edge_id])
        gone = bool(cursor.rowcount)
    if gone:
        record_change(
            action=Action.DELETED,
            kind=Kind.EDGE,
            workspace_id=scope.workspace_id,
            object_id=edge_id,
        )
    remove_unused_stubs(ends)
    return gone


def remove_unused_stubs(nodes: Ids[int]) -> None:
    """Deletes those of the nodes that are stubs without edges or mentions."""
    if not nodes:
        return
    with connection.cursor() as cursor:
        parameters: dict[str, Any] = {"beside": sorted(nodes), "nodes": []}
        cursor.execute(_LOCK_STUBS_SQL, parameters)
        cursor.execute(_DELETE_STUBS_SQL, parameters)
    remove_orphans(MentionedRows(nodes=nodes, edges=()))


def _removable_neighbours(cursor: Any, parameters: dict[str, Any]) -> list[int]:
    cursor.execute(_NEIGHBOURS_SQL, parameters)
    return [pk for (pk,) in cursor.fetchall()]

"""Removal of extracted nodes and edges that no passage mentions any more, and of unused stubs.

Names of extracted nodes are text of documents, so they are removed in the transaction that
removes the text.
"""

from collections.abc import Collection as Ids
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import QuerySet

from documents.models import Chunk, Collection, IngestionRun
from graph.models import Evidence, Extraction, Mention


class MentionedRows(NamedTuple):
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


#: SQL: the node exists only as an end of edges of `nodes`.
IS_UNUSED_STUB = """
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
    f"DELETE FROM graph_node AS node WHERE id = ANY(%(beside)s) AND {IS_UNUSED_STUB}"  # noqa: S608 - fixed pieces, values are parameters
)


def remove_unused_stubs(nodes: Ids[int]) -> None:
    """Deletes those of the nodes that are stubs without edges or mentions."""
    if not nodes:
        return
    with connection.cursor() as cursor:
        parameters = {"beside": sorted(nodes), "nodes": []}
        cursor.execute(_LOCK_STUBS_SQL, parameters)
        cursor.execute(_DELETE_STUBS_SQL, parameters)
    remove_orphans(MentionedRows(nodes=nodes, edges=()))

"""Extracted nodes and edges that nothing mentions any more.

Their names are text of documents, so they go in the transaction that takes the text away.
"""

from collections.abc import Collection as Ids
from dataclasses import dataclass

from django.db import connection
from django.db.models import QuerySet

from documents.models import Chunk
from graph.models import Evidence, Mention


@dataclass(frozen=True, slots=True)
class Mentioned:
    """Nodes and edges that some passages speak of."""

    nodes: Ids[int]
    edges: Ids[int]


def mentioned_by(chunks: "QuerySet[Chunk]") -> Mentioned:
    """What these passages speak of."""
    return Mentioned(
        nodes=set(
            Mention.objects.filter(chunk__in=chunks.values("pk")).values_list("node", flat=True)
        ),
        edges=set(
            Evidence.objects.filter(chunk__in=chunks.values("pk")).values_list("edge", flat=True)
        ),
    )


# Held first, nodes before edges and each in the order of their ids, as whoever writes them does,
# and looked at by statements of their own: what somebody else has just said of a node is seen then.
_HOLD_NODES = """
    SELECT id FROM graph_node
    WHERE (id = ANY(%(nodes)s)
           OR id IN (SELECT unnest(ARRAY[source_id, target_id]) FROM graph_edge
                     WHERE id = ANY(%(edges)s) AND origin = 'extracted'))
      AND origin = 'extracted'
    ORDER BY id FOR UPDATE
"""
_HOLD_EDGES = """
    SELECT id FROM graph_edge
    WHERE id = ANY(%(edges)s) AND origin = 'extracted' ORDER BY id FOR UPDATE
"""
_REMOVE_EDGES = """
    DELETE FROM graph_edge AS edge
    WHERE id = ANY(%(edges)s) AND origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_evidence WHERE edge_id = edge.id)
"""
_REMOVE_NODES = """
    DELETE FROM graph_node AS node
    WHERE id = ANY(%(held)s) AND origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_mention WHERE node_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE source_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE target_id = node.id)
"""


def remove_orphans(candidates: Mentioned) -> int:
    """Remove those of `candidates` that nothing mentions any more; how many nodes.

    What was given by a person or program stays, and so does what an edge of theirs hangs on.
    """
    if not candidates.nodes and not candidates.edges:
        return 0
    asked = {"nodes": list(candidates.nodes), "edges": list(candidates.edges)}
    with connection.cursor() as cursor:
        cursor.execute(_HOLD_NODES, asked)
        held = [pk for (pk,) in cursor.fetchall()]
        if candidates.edges:
            cursor.execute(_HOLD_EDGES, asked)
            cursor.execute(_REMOVE_EDGES, asked)
        cursor.execute(_REMOVE_NODES, {"held": held})
        return int(cursor.rowcount)

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


# Held first, in one order, and looked at by a statement of its own: what somebody else has just
# said of a node, or is saying, is seen then.
_HOLD_EDGES = """
    SELECT id FROM graph_edge WHERE id = ANY(%s) AND origin = 'extracted' ORDER BY id FOR UPDATE
"""
_REMOVE_EDGES = """
    DELETE FROM graph_edge AS edge
    WHERE id = ANY(%s) AND origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_evidence WHERE edge_id = edge.id)
    RETURNING source_id, target_id
"""
_HOLD_NODES = """
    SELECT id FROM graph_node WHERE id = ANY(%s) AND origin = 'extracted' ORDER BY id FOR UPDATE
"""
_REMOVE_NODES = """
    DELETE FROM graph_node AS node
    WHERE id = ANY(%s) AND origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_mention WHERE node_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE source_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE target_id = node.id)
"""


def remove_orphans(candidates: Mentioned) -> int:
    """Remove those of `candidates` that nothing mentions any more; how many nodes.

    What was given by a person or program stays, and so does what an edge of theirs hangs on.
    """
    nodes = set(candidates.nodes)
    with connection.cursor() as cursor:
        if candidates.edges:
            edges = sorted(candidates.edges)
            cursor.execute(_HOLD_EDGES, [edges])
            cursor.execute(_REMOVE_EDGES, [edges])
            nodes |= {pk for ends in cursor.fetchall() for pk in ends}
        if not nodes:
            return 0
        cursor.execute(_HOLD_NODES, [sorted(nodes)])
        cursor.execute(_REMOVE_NODES, [sorted(nodes)])
        return int(cursor.rowcount)

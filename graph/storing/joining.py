"""Edges of nodes that become one: each stays once, and keeps all who speak for it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from graph import limits
from graph.models import Edge
from graph.scopes import Sight

_HOLD = """
    SELECT id FROM graph_edge
    WHERE source_id = ANY(%(nodes)s) OR target_id = ANY(%(nodes)s) ORDER BY id FOR UPDATE
"""
# Those that are given count more than those that were found, those of the kept node more than
# those that come to it.
_TOUCHED = """
    SELECT edge.id, edge.source_id, edge.rel, edge.target_id
    FROM graph_edge AS edge
    JOIN graph_node AS source ON source.id = edge.source_id
    JOIN graph_node AS target ON target.id = edge.target_id
    WHERE (edge.source_id = ANY(%(nodes)s) OR edge.target_id = ANY(%(nodes)s)) AND {seen}
    ORDER BY edge.origin = 'given' DESC,
             %(keep)s IN (edge.source_id, edge.target_id) DESC, edge.id
"""
_DELETE = "DELETE FROM graph_edge WHERE id = ANY(%(edges)s)"
_EVIDENCE = """
    INSERT INTO graph_evidence (chunk_id, edge_id, workspace_id, start, "end")
    SELECT DISTINCT ON (evidence.chunk_id, joined.kept)
           evidence.chunk_id, joined.kept, evidence.workspace_id, evidence.start, evidence."end"
    FROM unnest(%(lost)s::bigint[], %(kept)s::bigint[]) AS joined (lost, kept)
    JOIN graph_evidence AS evidence ON evidence.edge_id = joined.lost
    ORDER BY evidence.chunk_id, joined.kept, evidence.edge_id
    ON CONFLICT ON CONSTRAINT graph_evidence_pkey DO NOTHING
"""
_MOVE = """
    UPDATE graph_edge
    SET source_id = CASE WHEN source_id = ANY(%(nodes)s) THEN %(keep)s ELSE source_id END,
        target_id = CASE WHEN target_id = ANY(%(nodes)s) THEN %(keep)s ELSE target_id END,
        updated_at = now()
    WHERE id = ANY(%(edges)s)
"""

Ends = tuple[int, str, int]


@dataclass(slots=True)
class Plan:
    """What becomes of the edges: `inner` ones lead from one of the nodes to another and go, `lost`
    ones become one with the edge that each is mapped to, `moving` ones come to hang on the kept
    node. The rest stays as it is."""

    inner: list[int] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)
    moving: list[int] = field(default_factory=list)


def plan(nodes: Sequence[int], *, keep: int, seen: Sight | None = None) -> Plan:
    """What is to become of the edges, of those that may be seen or of all.

    An edge between two of the nodes would say that the one is related to itself, and goes. One from
    a node to itself stays.
    """
    merged, planned, first = set(nodes), Plan(), dict[Ends, int]()
    for pk, source, rel, target in _touched(nodes, keep, seen):
        ends = (keep if source in merged else source, rel, keep if target in merged else target)
        if source != target and ends[0] == ends[2]:
            planned.inner.append(pk)
        elif (kept := first.setdefault(ends, pk)) != pk:
            planned.lost[pk] = kept
        elif ends != (source, rel, target):
            planned.moving.append(pk)
    return planned


def join(nodes: Sequence[int], *, keep: int) -> None:
    """Let all edges hang on `keep`, whose nodes the caller holds."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, {"nodes": list(nodes)})
        planned = plan(nodes, keep=keep)
        _unite(planned.lost)
        lost, kept = list(planned.lost), list(planned.lost.values())
        cursor.execute(_EVIDENCE, {"lost": lost, "kept": kept})
        cursor.execute(_DELETE, {"edges": [*planned.inner, *lost]})
        cursor.execute(_MOVE, {"nodes": list(nodes), "keep": keep, "edges": planned.moving})


def _touched(nodes: Sequence[int], keep: int, seen: Sight | None) -> list[tuple[Any, ...]]:
    parameters: dict[str, Any] = {"nodes": list(nodes), "keep": keep}
    condition = "TRUE"
    if seen is not None:
        condition = " AND ".join((seen.edge("edge"), seen.node("source"), seen.node("target")))
        parameters |= seen.parameters
    with connection.cursor() as cursor:
        cursor.execute(_TOUCHED.format(seen=condition), parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _unite(lost: dict[int, int]) -> None:
    """Give the kept edges the greatest weight, and the properties that they have not.

    What was found in documents does not flow into an edge that is given: those who cannot read the
    documents see it.
    """
    groups: dict[int, list[int]] = defaultdict(list)
    for other, kept in lost.items():
        groups[kept].append(other)
    rows = Edge.objects.in_bulk([*lost, *groups])
    for kept, others in groups.items():
        row = rows[kept]
        same = [rows[pk] for pk in others if rows[pk].origin == row.origin]
        row.weight = max(each.weight for each in (row, *same))
        props: dict[str, Any] = {}
        for each in (*reversed(same), row):
            props |= each.props
        if limits.fits(props):
            row.props = props
    Edge.objects.bulk_update([rows[kept] for kept in groups], ["weight", "props"], batch_size=500)

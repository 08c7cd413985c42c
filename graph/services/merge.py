"""Merging of nodes: edges, mentions, aliases and properties move to the node that is
kept. Begin with `merge_nodes`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.db import connection, transaction
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from common.errors import InvalidInput, NotFound
from common.leases import retry_on_deadlock
from graph import inputs
from graph.models import Edge, Node
from graph.node_ids import check_id, retired_id_form
from graph.querysets import Origin
from graph.reading.vertices import resolve
from graph.scopes import AccessFilter, GraphScope

_LOCK_TOUCHED_EDGES_SQL = """
    SELECT id FROM graph_edge
    WHERE source_id = ANY(%(nodes)s) OR target_id = ANY(%(nodes)s) ORDER BY id FOR UPDATE
"""
# Those that are given count more than those that were found, those of the kept node more than
# those that come to it.
_TOUCHED_EDGES_SQL = """
    SELECT edge.id, edge.source_id, edge.rel, edge.target_id
    FROM graph_edge AS edge
    JOIN graph_node AS source ON source.id = edge.source_id
    JOIN graph_node AS target ON target.id = edge.target_id
    WHERE (edge.source_id = ANY(%(nodes)s) OR edge.target_id = ANY(%(nodes)s)) AND {seen}
    ORDER BY edge.origin = 'given' DESC,
             %(keep)s IN (edge.source_id, edge.target_id) DESC, edge.id
"""
_DELETE_EDGES_SQL = "DELETE FROM graph_edge WHERE id = ANY(%(edges)s)"
_MOVE_EVIDENCE_SQL = """
    INSERT INTO graph_evidence (chunk_id, edge_id, workspace_id, start, "end")
    SELECT DISTINCT ON (evidence.chunk_id, joined.kept)
           evidence.chunk_id, joined.kept, evidence.workspace_id, evidence.start, evidence."end"
    FROM unnest(%(lost)s::bigint[], %(kept)s::bigint[]) AS joined (lost, kept)
    JOIN graph_evidence AS evidence ON evidence.edge_id = joined.lost
    ORDER BY evidence.chunk_id, joined.kept, evidence.edge_id
    ON CONFLICT ON CONSTRAINT graph_evidence_pkey DO NOTHING
"""
_MOVE_EDGES_SQL = """
    UPDATE graph_edge
    SET source_id = CASE WHEN source_id = ANY(%(nodes)s) THEN %(keep)s ELSE source_id END,
        target_id = CASE WHEN target_id = ANY(%(nodes)s) THEN %(keep)s ELSE target_id END,
        updated_at = now()
    WHERE id = ANY(%(edges)s)
"""

Ends = tuple[int, str, int]
#: What happens to edges: those among the nodes are deleted, lost ones become the edge they map to,
#: moving ones are attached to the kept node. Others stay.
EdgePlan = tuple[list[int], dict[int, int], list[int]]


def plan_edges(nodes: Sequence[int], *, keep: int, seen: AccessFilter | None = None) -> EdgePlan:
    """The plan for visible edges, or for all.

    Edges between two of the nodes would become self-relations and are deleted; existing
    self-relations stay.
    """
    merged, first = set(nodes), dict[Ends, int]()
    inner, lost, moving = list[int](), dict[int, int](), list[int]()
    parameters: dict[str, Any] = {"nodes": list(nodes), "keep": keep}
    condition = "TRUE"
    if seen is not None:
        condition = " AND ".join((seen.edge("edge"), seen.node("source"), seen.node("target")))
        parameters |= seen.parameters
    with connection.cursor() as cursor:
        cursor.execute(_TOUCHED_EDGES_SQL.format(seen=condition), parameters)
        touched_edges: list[tuple[Any, ...]] = cursor.fetchall()
    for pk, source, rel, target in touched_edges:
        ends = (keep if source in merged else source, rel, keep if target in merged else target)
        if source != target and ends[0] == ends[2]:
            inner.append(pk)
        elif (kept := first.setdefault(ends, pk)) != pk:
            lost[pk] = kept
        elif ends != (source, rel, target):
            moving.append(pk)
    return inner, lost, moving


def join_edges(nodes: Sequence[int], *, keep: int) -> None:
    """Moves all edges to `keep`; the caller has locked the nodes."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_TOUCHED_EDGES_SQL, {"nodes": list(nodes)})
        inner, lost, moving = plan_edges(nodes, keep=keep)
        # Gives kept edges the largest weight, and missing properties. Values of extracted
        # edges are not copied into given ones, which others can see.
        groups: dict[int, list[int]] = defaultdict(list)
        for other, kept in lost.items():
            groups[kept].append(other)
        rows = Edge.objects.in_bulk([*lost, *groups])
        for kept, others in groups.items():
            row = rows[kept]
            same = [rows[pk] for pk in others if rows[pk].origin == row.origin]
            row.weight = max(each.weight for each in (row, *same))
            _add_props(row, same)
        Edge.objects.bulk_update(
            [rows[kept] for kept in groups], ["weight", "props"], batch_size=500
        )
        cursor.execute(_MOVE_EVIDENCE_SQL, {"lost": list(lost), "kept": list(lost.values())})
        cursor.execute(_DELETE_EDGES_SQL, {"edges": [*inner, *lost]})
        cursor.execute(_MOVE_EDGES_SQL, {"nodes": list(nodes), "keep": keep, "edges": moving})


def _add_props(target: Edge | Node, others: Sequence[Edge | Node]) -> None:
    """Adds missing properties, those of the first of `others` first, unless all are too large."""
    props: dict[str, Any] = {}
    for row in (*reversed(others), target):
        props |= row.props
    if inputs.props_fit(props):
        target.props = props


# Locks in order of ids, as everywhere; no new rows can refer to them meanwhile.
_LOCK_NODES_SQL = """
    SELECT id, key FROM graph_node
    WHERE workspace_id = %(workspace)s AND id = ANY(%(all)s) ORDER BY id FOR UPDATE
"""
# Counts of a passage that mentions several of them are added.
_MOVE_MENTIONS_SQL = """
    WITH gone AS (
        DELETE FROM graph_mention WHERE node_id = ANY(%(others)s) RETURNING *
    ), joined AS (
        SELECT DISTINCT ON (chunk_id) chunk_id, kind, start, "end",
               sum(count) OVER (PARTITION BY chunk_id) AS total
        FROM gone ORDER BY chunk_id, kind, start
    )
    INSERT INTO graph_mention AS kept
        (chunk_id, node_id, workspace_id, kind, count, start, "end")
    SELECT chunk_id, %(keep)s, %(workspace)s, kind, total, start, "end" FROM joined
    ON CONFLICT ON CONSTRAINT graph_mention_pkey DO UPDATE
    SET count = kept.count + excluded.count, kind = least(kept.kind, excluded.kind),
        start = CASE WHEN excluded.kind < kept.kind THEN excluded.start ELSE kept.start END,
        "end" = CASE WHEN excluded.kind < kept.kind THEN excluded."end" ELSE kept."end" END
"""
_MOVE_ALIASES_SQL = "UPDATE graph_alias SET node_id = %(keep)s WHERE node_id = ANY(%(others)s)"
_RETIRE_IDS_SQL = """
    INSERT INTO graph_alias (workspace_id, form, node_id)
    SELECT %(workspace)s, form, %(keep)s FROM unnest(%(forms)s::text[]) AS retired (form)
    ORDER BY form
    ON CONFLICT (workspace_id, form) DO UPDATE SET node_id = excluded.node_id
"""
_DELETE_NODES_SQL = "DELETE FROM graph_node WHERE id = ANY(%(others)s)"
_COUNT_SQL = """
    SELECT (SELECT count(*) FROM graph_mention AS mention
            JOIN documents_chunk AS chunk ON chunk.id = mention.chunk_id
            WHERE mention.node_id = ANY(%(others)s) AND {passage}),
           (SELECT count(*) FROM graph_alias AS alias
            WHERE alias.node_id = ANY(%(others)s) AND left(alias.form, 1) NOT IN ('=', '~'))
"""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """Counts of a merge."""

    nodes: Annotated[int, "How many are merged into it."] = 0
    edges: Annotated[int, "That are moved to it."] = 0
    edges_joined: Annotated[int, "Of these: that become one with another."] = 0
    edges_dropped: Annotated[
        int, "Deleted, because they lead from one of these nodes to another."
    ] = 0
    mentions: Annotated[int, "Mentions that are moved to it."] = 0
    aliases: Annotated[int, "Aliases that are moved to it."] = 0


def merge_nodes(*, scope: GraphScope, keep: str, others: Iterable[str]) -> MergeResult:
    """Merges the nodes `others` into `keep`, whose id, name and properties take precedence;
    returns visible counts.

    Labels are united and missing properties added. Equal edges become one: a given one before
    an extracted one, with the largest weight and all evidence; edges among the nodes are
    deleted. Mention counts of a passage are added. Aliases and former ids mean the kept node,
    also in new extractions. The result is given if one of them was. Raises NotFound for a
    missing or invisible node, InvalidInput for documents, passages, and a node with itself.
    """
    seen = AccessFilter(scope)
    kept, rest = _resolve_merge(seen, keep, others)
    return retry_on_deadlock(lambda: _merge_locked(seen, scope.workspace_id, kept, sorted(rest)))


def merge_preview(*, scope: GraphScope, keep: str, others: Iterable[str]) -> MergeResult:
    """What `merge_nodes` would do, as far as visible. Raises the same."""
    seen = AccessFilter(scope)
    return _preview(seen, *_resolve_merge(seen, keep, others))


def _preview(seen: AccessFilter, keep: int, others: Sequence[int]) -> MergeResult:
    inner, lost, moving = plan_edges([keep, *others], keep=keep, seen=seen)
    with connection.cursor() as cursor:
        statement = _COUNT_SQL.format(passage=seen.passage("chunk"))
        cursor.execute(statement, seen.parameters | {"others": list(others)})
        mentions, aliases = cursor.fetchone()
    return MergeResult(
        nodes=len(others),
        edges=len(moving),
        edges_joined=len(lost),
        edges_dropped=len(inner),
        mentions=mentions,
        aliases=aliases,
    )


def _resolve_merge(seen: AccessFilter, keep: str, others: Iterable[str]) -> tuple[int, list[int]]:
    """Rows of the kept node and of the others."""
    ids = [check_id(node_id, field="others") for node_id in dict.fromkeys(others)]
    if not ids:
        raise InvalidInput(gettext("Name at least one node to merge into it."), field="others")
    found = resolve(seen, [check_id(keep, field="keep"), *ids])
    if missing := [node_id for node_id in (keep, *ids) if node_id not in found]:
        names = ", ".join(f"“{node_id}”" for node_id in missing[:5])
        raise NotFound(
            gettext("These nodes do not exist: {names}. Reload the list of nodes.").format(
                names=names
            )
        )
    if content := next((each for each in found.values() if each.kind != "node"), None):
        raise InvalidInput(
            gettext("“{name}” is a {kind} and cannot be merged. Choose other nodes.").format(
                name=content.id, kind=content.kind
            ),
            field="others",
        )
    kept, rest = found[keep].pk, list(dict.fromkeys(found[node_id].pk for node_id in ids))
    if kept in rest:
        raise InvalidInput(gettext("A node cannot be merged with itself."), field="others")
    return kept, rest


@transaction.atomic
def _merge_locked(
    seen: AccessFilter, workspace_id: int, keep: int, others: Sequence[int]
) -> MergeResult:
    parameters: dict[str, Any] = {
        "workspace": workspace_id,
        "keep": keep,
        "others": list(others),
        "all": [keep, *others],
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_NODES_SQL, parameters)
        keys = dict(cursor.fetchall())
        if len(keys) != len(others) + 1:
            raise NotFound(
                gettext("One of the nodes has just been removed. Reload the list of nodes.")
            )
        done = _preview(seen, keep, others)
        # Unites labels and properties; the kept node's take precedence. Values of extracted nodes
        # are not copied into given ones, which others can see.
        rows = Node.objects.in_bulk([keep, *others])
        kept = rows[keep]
        given = any(row.origin == Origin.GIVEN for row in rows.values())
        describing = [rows[pk] for pk in others if not given or rows[pk].origin == Origin.GIVEN]
        _add_props(kept, describing)
        kept.labels = list(
            dict.fromkeys(label for row in (kept, *describing) for label in row.labels)
        )
        kept.name = kept.name or next((row.name for row in describing if row.name), "")
        kept.is_stub = kept.is_stub and all(row.is_stub for row in describing)
        kept.origin = Origin.GIVEN if given else Origin.EXTRACTED
        kept.save()
        join_edges([keep, *others], keep=keep)
        parameters["forms"] = [retired_id_form(keys[pk]) for pk in others]
        for statement in (
            _MOVE_MENTIONS_SQL,
            _MOVE_ALIASES_SQL,
            _RETIRE_IDS_SQL,
            _DELETE_NODES_SQL,
        ):
            cursor.execute(statement, parameters)
    record_change(
        action=Action.MERGED,
        kind=Kind.NODE,
        workspace_id=workspace_id,
        object_id=keep,
        values={"nodes": done.nodes, "edges": done.edges, "mentions": done.mentions},
    )
    return done

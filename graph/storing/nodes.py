"""Staged nodes, and those that staged edges hang on, into their table."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from common.errors import Conflict
from graph import limits
from graph.models import Node
from graph.scopes import GraphScope, sight

#: A node that vanishes between two looks once is bad luck.
TRIES = 5

_RESOLVE = (
    """
    UPDATE graph_stage_key AS stage SET node_id = node.id
    FROM graph_node AS node
    WHERE stage.node_id IS NULL AND NOT stage.lost
      AND node.workspace_id = %(workspace)s AND node.key = stage.key
    """,
    """
    UPDATE graph_stage_key AS stage SET node_id = alias.node_id
    FROM graph_alias AS alias
    WHERE stage.node_id IS NULL AND NOT stage.lost
      AND alias.workspace_id = %(workspace)s AND alias.form = stage.retired
    """,
)
# In one order, so that two who make the same nodes do not wait for each other.
_INSERT = """
    WITH item AS (
        SELECT DISTINCT ON (no) no, name, labels, props
        FROM graph_stage_node ORDER BY no, position DESC
    ), made AS (
        INSERT INTO graph_node (
            workspace_id, key, name, labels, props, origin, is_stub, document_id, chunk_id,
            created_at, updated_at)
        SELECT %(workspace)s, stage.key, coalesce(item.name, ''), coalesce(item.labels, '{}'),
               coalesce(item.props, '{}')::jsonb, 'given', item.no IS NULL, stage.document_id,
               stage.chunk_id, now(), now()
        FROM graph_stage_key AS stage LEFT JOIN item USING (no)
        WHERE stage.node_id IS NULL AND NOT stage.lost
          AND (%(lenient)s OR stage.no < %(named)s OR stage.retired IS NULL)
        ORDER BY stage.key COLLATE "C"
        ON CONFLICT (workspace_id, key) DO NOTHING
        RETURNING id, key
    )
    UPDATE graph_stage_key AS stage SET node_id = made.id, fresh = true
    FROM made WHERE made.key = stage.key
"""
# Neither deleted nor merged until the end: in the order of their ids, as everywhere. What hangs on
# them is written after.
_HOLD = """
    SELECT count(*), (SELECT count(DISTINCT node_id) FROM graph_stage_key WHERE NOT fresh)
    FROM (
        SELECT node.id FROM graph_node AS node
        WHERE node.id IN (SELECT node_id FROM graph_stage_key WHERE NOT fresh)
        ORDER BY node.id FOR KEY SHARE
    ) AS held
"""
_FORGET_GONE = """
    UPDATE graph_stage_key AS stage SET node_id = NULL
    WHERE NOT EXISTS (SELECT FROM graph_node AS node WHERE node.id = stage.node_id)
"""
_UNSEEN = """
    UPDATE graph_stage_key AS stage SET unseen = true
    FROM graph_node AS node
    WHERE node.id = stage.node_id AND node.origin = 'extracted' AND ({seen}) IS NOT TRUE
"""
# An end is adopted: it is given now, too. What the caller cannot see it does not get to see by
# adopting it: such a node begins anew, as the caller describes it.
_CHANGED = """
    SELECT node.id, changed.name, changed.labels, changed.props, changed.is_stub
    FROM (
        SELECT DISTINCT ON (stage.node_id)
               stage.node_id, stage.unseen, item.no IS NULL AS as_end,
               item.name, item.labels, item.props::jsonb AS props
        FROM graph_stage_key AS stage LEFT JOIN graph_stage_node AS item USING (no)
        WHERE NOT stage.fresh AND stage.node_id IS NOT NULL
        ORDER BY stage.node_id, item.position DESC NULLS LAST
    ) AS wanted
    JOIN graph_node AS node ON node.id = wanted.node_id
    CROSS JOIN LATERAL (
        SELECT coalesce(wanted.name, CASE WHEN unseen THEN '' ELSE node.name END) AS name,
               coalesce(wanted.labels, CASE WHEN unseen THEN '{}' ELSE node.labels::text[] END)
               AS labels,
               CASE WHEN unseen OR %(replace)s AND wanted.props IS NOT NULL
                    THEN coalesce(wanted.props, '{}')
                    ELSE node.props || coalesce(wanted.props, '{}') END AS props,
               as_end AND (node.is_stub OR unseen) AS is_stub
    ) AS changed
    WHERE (node.name, node.labels::text[], node.props, node.origin, node.is_stub)
          IS DISTINCT FROM (
              changed.name, changed.labels, changed.props, 'given', changed.is_stub)
"""
_HOLD_CHANGED = f"""
    SELECT node.id FROM graph_node AS node
    WHERE node.id IN (SELECT id FROM ({_CHANGED}) AS changed)
    ORDER BY node.id FOR NO KEY UPDATE
"""
_UPDATE = f"""
    WITH written AS (
        UPDATE graph_node AS node
        SET name = changed.name, labels = changed.labels, props = changed.props,
            origin = 'given', is_stub = changed.is_stub, updated_at = now()
        FROM ({_CHANGED}) AS changed
        WHERE node.id = changed.id
        RETURNING node.id, octet_length(node.props::text) AS size
    )
    SELECT array_agg(id), array_agg(id) FILTER (WHERE size > %(most)s) FROM written
"""
_COUNT = """
    SELECT count(*) FILTER (WHERE no < %(named)s AND (fresh OR unseen)),
           count(*) FILTER (WHERE no >= %(named)s AND (fresh OR unseen)),
           count(DISTINCT node_id) FILTER (
               WHERE no < %(named)s AND NOT unseen AND node_id = ANY(%(written)s))
    FROM graph_stage_key
"""
_LOST = """
    SELECT no FROM graph_stage_key
    WHERE node_id IS NULL OR (NOT %(lenient)s AND unseen AND no >= %(named)s)
    ORDER BY no LIMIT 1000
"""


@dataclass(frozen=True, slots=True)
class NodesWritten:
    """Described nodes that are new or changed, and ends of edges that were made for them."""

    created: int
    updated: int
    stubs: int


def settle(scope: GraphScope, *, named: int, lenient: bool, large: bool) -> list[int]:
    """Find or make the node of each staged id, and hold them; the numbers of those for which
    there is none, at most 1,000."""
    parameters = {"workspace": scope.workspace_id, "named": named, "lenient": lenient}
    with connection.cursor() as cursor:
        for _ in range(TRIES):
            _find_or_make(cursor, parameters, large=large)
            cursor.execute(_HOLD)
            held, wanted = cursor.fetchone()
            if held == wanted:
                break
            cursor.execute(_FORGET_GONE)
        else:
            raise Conflict("Others delete the same nodes again and again. Try again in a moment.")
        if scope.user is not None:
            seen = sight(scope)
            cursor.execute(_UNSEEN.format(seen=seen.node("node")), seen.parameters)
        cursor.execute(_LOST, parameters)
        return [number for (number,) in cursor.fetchall()]


def _find_or_make(cursor: Any, parameters: dict[str, Any], *, large: bool) -> None:
    for statement in (*_RESOLVE, _INSERT, *_RESOLVE):
        cursor.execute(statement, parameters)
    # Plans go wrong where the planner does not know that so many ids were found.
    if large:
        cursor.execute("ANALYZE graph_stage_key")


def update(*, named: int, replace_props: bool) -> NodesWritten:
    """Write what is new about nodes that were there. Raises InvalidInput where one would hold too
    much."""
    most: int = settings.GRAPH_MAX_PROPS_BYTES
    parameters: dict[str, Any] = {"replace": replace_props, "named": named, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(_HOLD_CHANGED, parameters)
        cursor.execute(_UPDATE, parameters)
        written, large = cursor.fetchone()
        for node in Node.objects.filter(pk__in=large or ()).only("key", "props"):
            limits.check_merged(node.props, owner=node.key)
        cursor.execute(_COUNT, parameters | {"written": written or []})
        created, stubs, updated = cursor.fetchone()
    return NodesWritten(created=created, updated=updated, stubs=stubs)

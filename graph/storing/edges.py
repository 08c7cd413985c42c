"""Staged edges into their table."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from graph import limits
from graph.models import Edge
from graph.scopes import GraphScope, sight

# The last word on each edge counts. Sorted, so that two who write the same edges do not wait for
# each other.
_WANTED = """
    SELECT DISTINCT ON (source.node_id, item.rel COLLATE "C", target.node_id)
           source.node_id AS source_id, item.rel, target.node_id AS target_id, item.weight,
           item.props::jsonb AS props
    FROM graph_stage_edge AS item
    JOIN graph_stage_key AS source ON source.no = item.source
    JOIN graph_stage_key AS target ON target.no = item.target
    ORDER BY source.node_id, item.rel COLLATE "C", target.node_id, item.position DESC
"""
_INSERT = f"""
    INSERT INTO graph_edge (
        workspace_id, source_id, rel, target_id, weight, props, origin, updated_at)
    SELECT %(workspace)s, source_id, rel, target_id, coalesce(weight, 1), coalesce(props, '{{}}'),
           'given', now()
    FROM ({_WANTED}) AS wanted
    ON CONFLICT (source_id, rel, target_id, workspace_id) DO NOTHING
"""
_THERE = f"""
    SELECT edge.id, wanted.weight, wanted.props
    FROM ({_WANTED}) AS wanted
    JOIN graph_edge AS edge
      ON edge.workspace_id = %(workspace)s AND edge.source_id = wanted.source_id
     AND edge.rel = wanted.rel AND edge.target_id = wanted.target_id
"""
_UNSEEN = """
    SELECT edge.id FROM ({there}) AS there JOIN graph_edge AS edge USING (id)
    WHERE edge.origin = 'extracted' AND ({seen}) IS NOT TRUE
"""
_CHANGED = f"""
    SELECT edge.id, changed.weight, changed.props
    FROM ({_THERE}) AS there
    JOIN graph_edge AS edge USING (id)
    CROSS JOIN LATERAL (SELECT edge.id = ANY(%(unseen)s) AS unseen) AS known
    CROSS JOIN LATERAL (
        SELECT coalesce(there.weight, CASE WHEN unseen THEN 1 ELSE edge.weight END) AS weight,
               CASE WHEN unseen OR %(replace)s AND there.props IS NOT NULL
                    THEN coalesce(there.props, '{{}}')
                    ELSE edge.props || coalesce(there.props, '{{}}') END AS props
    ) AS changed
    WHERE (edge.weight, edge.props, edge.origin)
          IS DISTINCT FROM (changed.weight, changed.props, 'given')
"""
_HOLD = f"""
    SELECT edge.id FROM graph_edge AS edge
    WHERE edge.id IN (SELECT id FROM ({_CHANGED}) AS changed)
    ORDER BY edge.id FOR NO KEY UPDATE
"""
_UPDATE = f"""
    WITH written AS (
        UPDATE graph_edge AS edge
        SET weight = changed.weight, props = changed.props, origin = 'given', updated_at = now()
        FROM ({_CHANGED}) AS changed
        WHERE edge.id = changed.id
        RETURNING edge.id, octet_length(edge.props::text) AS size
    )
    SELECT count(*), count(*) FILTER (WHERE id = ANY(%(unseen)s)),
           array_agg(id) FILTER (WHERE size > %(most)s)
    FROM written
"""


@dataclass(frozen=True, slots=True)
class EdgesWritten:
    """Edges that are new, and those whose weight or properties changed."""

    created: int = 0
    updated: int = 0


def write(scope: GraphScope, *, staged: int, replace_props: bool) -> EdgesWritten:
    """Write the staged edges, whose ends are held. Raises InvalidInput where one would hold too
    much.

    An extracted edge that the caller cannot see is taken for a new one: it begins anew.
    """
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "replace": replace_props,
        "most": settings.GRAPH_MAX_PROPS_BYTES,
    }
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, parameters)
        created = cursor.rowcount
        if created == staged:
            return EdgesWritten(created=created)
        parameters["unseen"] = _unseen(scope)
        cursor.execute(_HOLD, parameters)
        cursor.execute(_UPDATE, parameters)
        updated, adopted, large = cursor.fetchone()
    for edge in Edge.objects.filter(pk__in=large or ()).only("rel", "props"):
        limits.check_merged(edge.props, owner=edge.rel)
    return EdgesWritten(created=created + adopted, updated=updated - adopted)


def _unseen(scope: GraphScope) -> list[int]:
    if scope.user is None:
        return []
    seen = sight(scope)
    with connection.cursor() as cursor:
        cursor.execute(_UNSEEN.format(there=_THERE, seen=seen.edge("edge")), seen.parameters)
        return [pk for (pk,) in cursor.fetchall()]

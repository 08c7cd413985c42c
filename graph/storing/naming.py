"""Staged names, by which texts are to find nodes."""

from django.db import connection

from graph.scopes import GraphScope, sight

_INSERT = """
    INSERT INTO graph_alias (workspace_id, form, node_id)
    SELECT DISTINCT ON (item.form) %(workspace)s, item.form, stage.node_id
    FROM graph_stage_alias AS item JOIN graph_stage_key AS stage USING (no)
    ORDER BY item.form, item.no
    ON CONFLICT (workspace_id, form) DO NOTHING
"""
# Who has a name that the caller cannot see is not told of, nor that anybody has.
_TAKEN = """
    SELECT DISTINCT item.form
    FROM graph_stage_alias AS item
    JOIN graph_stage_key AS stage USING (no)
    JOIN graph_alias AS alias ON alias.workspace_id = %(workspace)s AND alias.form = item.form
    JOIN graph_node AS node ON node.id = alias.node_id
    WHERE alias.node_id <> stage.node_id AND {seen}
    ORDER BY item.form LIMIT 100
"""


def register(scope: GraphScope) -> tuple[str, ...]:
    """Let texts find the nodes by their names; those that mean another node already, at most
    100."""
    seen = sight(scope)
    condition = seen.node("node") if scope.user is not None else "TRUE"
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, {"workspace": scope.workspace_id})
        cursor.execute(_TAKEN.format(seen=condition), seen.parameters)
        return tuple(form for (form,) in cursor.fetchall())

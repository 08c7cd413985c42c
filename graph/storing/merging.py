"""Several nodes made one: what hung on any hangs on the one that is kept, once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from accounts.history import Action, Kind, note_change
from common.deadlocks import despite_deadlocks
from common.errors import NotFound
from graph import limits
from graph.keys import retired_form
from graph.models import Node, Origin
from graph.scopes import Sight
from graph.storing import joining

# In the order of their ids, as everywhere: nothing new comes to hang on them meanwhile.
_HOLD = """
    SELECT id, key FROM graph_node
    WHERE workspace_id = %(workspace)s AND id = ANY(%(all)s) ORDER BY id FOR UPDATE
"""
# A passage that names several of them names the kept one as often as all together.
_MENTIONS = """
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
_ALIASES = "UPDATE graph_alias SET node_id = %(keep)s WHERE node_id = ANY(%(others)s)"
_RETIRE = """
    INSERT INTO graph_alias (workspace_id, form, node_id)
    SELECT %(workspace)s, form, %(keep)s FROM unnest(%(forms)s::text[]) AS retired (form)
    ORDER BY form
    ON CONFLICT (workspace_id, form) DO UPDATE SET node_id = excluded.node_id
"""
_DELETE = "DELETE FROM graph_node WHERE id = ANY(%(others)s)"
_COUNT = """
    SELECT (SELECT count(*) FROM graph_mention AS mention
            JOIN documents_chunk AS chunk ON chunk.id = mention.chunk_id
            WHERE mention.node_id = ANY(%(others)s) AND {passage}),
           (SELECT count(*) FROM graph_alias AS alias
            WHERE alias.node_id = ANY(%(others)s) AND left(alias.form, 1) NOT IN ('=', '~'))
"""


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge does: how many nodes go into the kept one, how many edges come to hang on it,
    become one with another (`edges_joined`) or go because they lead from one of the nodes to
    another (`edges_dropped`), and the mentions and names that are handed over."""

    nodes: int = 0
    edges: int = 0
    edges_joined: int = 0
    edges_dropped: int = 0
    mentions: int = 0
    aliases: int = 0


def preview(seen: Sight, *, keep: int, others: Sequence[int]) -> Merge:
    """What a merge would do, as far as it may be seen."""
    plan = joining.plan([keep, *others], keep=keep, seen=seen)
    with connection.cursor() as cursor:
        statement = _COUNT.format(passage=seen.passage("chunk"))
        cursor.execute(statement, seen.parameters | {"others": list(others)})
        mentions, aliases = cursor.fetchone()
    return Merge(
        nodes=len(others),
        edges=len(plan.moving),
        edges_joined=len(plan.lost),
        edges_dropped=len(plan.inner),
        mentions=mentions,
        aliases=aliases,
    )


def merge(seen: Sight, *, workspace_id: int, keep: int, others: Sequence[int]) -> Merge:
    """Make `others` one with `keep`; what was done, as far as it may be seen. Raises NotFound where
    one of them has gone meanwhile."""
    return despite_deadlocks(lambda: _merge(seen, workspace_id, keep, sorted(others)))


@transaction.atomic
def _merge(seen: Sight, workspace_id: int, keep: int, others: Sequence[int]) -> Merge:
    parameters: dict[str, Any] = {
        "workspace": workspace_id,
        "keep": keep,
        "others": list(others),
        "all": [keep, *others],
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, parameters)
        keys = dict(cursor.fetchall())
        if len(keys) != len(others) + 1:
            raise NotFound("One of the nodes has just been removed. Look again which there are.")
        done = preview(seen, keep=keep, others=others)
        _describe(keep, others)
        joining.join([keep, *others], keep=keep)
        parameters["forms"] = [retired_form(keys[pk]) for pk in others]
        for statement in (_MENTIONS, _ALIASES, _RETIRE, _DELETE):
            cursor.execute(statement, parameters)
    note_change(
        action=Action.MERGED,
        kind=Kind.NODE,
        workspace_id=workspace_id,
        thing=keep,
        values={"nodes": done.nodes, "edges": done.edges, "mentions": done.mentions},
    )
    return done


def _describe(keep: int, others: Sequence[int]) -> None:
    """Unite labels and properties; what the kept node says of itself counts.

    What was found in documents does not flow into a node that is given: those who cannot read the
    documents see it.
    """
    rows = Node.objects.in_bulk([keep, *others])
    kept = rows[keep]
    given = any(row.origin == Origin.GIVEN for row in rows.values())
    describing = [rows[pk] for pk in others if not given or rows[pk].origin == Origin.GIVEN]
    props: dict[str, Any] = {}
    for row in (*reversed(describing), kept):
        props |= row.props
    if limits.fits(props):
        kept.props = props
    kept.labels = list(dict.fromkeys(label for row in (kept, *describing) for label in row.labels))
    kept.name = kept.name or next((row.name for row in describing if row.name), "")
    kept.is_stub = kept.is_stub and all(row.is_stub for row in describing)
    kept.origin = Origin.GIVEN if given else Origin.EXTRACTED
    kept.save()

"""From forms to nodes: those that are known by them, and new ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from graph.extraction.found import Mention

#: Types whose forms are ids by themselves.
_OWN_IDS = ("ref:",)

_KNOWN = "SELECT form, node_id FROM graph_alias WHERE workspace_id = %s AND form = ANY(%s)"
# Everybody inserts in one order, so that nobody waits for somebody who waits for him.
_MAKE = """
    INSERT INTO graph_node (
        workspace_id, key, name, labels, props, origin, created_at, updated_at)
    SELECT %s, new.key, new.name, ARRAY[new.label], '{}', 'extracted', now(), now()
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (key, name, label)
    ORDER BY new.key
    ON CONFLICT (workspace_id, key) DO NOTHING
    RETURNING id
"""
_NAME = """
    INSERT INTO graph_alias (workspace_id, form, node_id)
    SELECT node.workspace_id, new.form, node.id
    FROM unnest(%s::text[], %s::text[]) AS new (key, form)
    JOIN graph_node AS node ON node.workspace_id = %s AND node.key = new.key
    ORDER BY new.form
    ON CONFLICT (workspace_id, form) DO NOTHING
"""


class Vanished(Exception):
    """A node or edge was removed just now: all is to be looked up again."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The node of each form. `unused` are new ones that somebody else's went before."""

    nodes: Mapping[str, int]
    unused: frozenset[int] = frozenset()


def resolve(workspace_id: int, mentions: Iterable[Mention]) -> Resolved:
    """The nodes that are meant, made where there are none. Raises Vanished.

    Forms are looked up among the names of all nodes, so that nodes that were merged stay merged,
    and what a caller put into the graph is met by what documents say of it.
    """
    first = {mention.form: mention for mention in reversed(list(mentions))}
    known = _known(workspace_id, list(first))
    new = [mention for form, mention in first.items() if form not in known]
    if not new:
        return Resolved(known)
    made = _make(workspace_id, new)
    known |= _known(workspace_id, [mention.form for mention in new])
    if len(known) < len(first):
        raise Vanished
    return Resolved(known, made.difference(known.values()))


def node_key(mention: Mention) -> str:
    """The id under which a node is made: `ent:name:ada lovelace`, `ref:example.com/guide`."""
    if mention.form.startswith(_OWN_IDS):
        return mention.form
    return f"ent:{mention.type}:{mention.form}"


def _known(workspace_id: int, forms: list[str]) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [workspace_id, forms])
        return dict(cursor.fetchall())


def _make(workspace_id: int, mentions: Sequence[Mention]) -> frozenset[int]:
    """Nodes for these and their names; which of them were not there."""
    keys = [node_key(mention) for mention in mentions]
    names = [mention.name for mention in mentions]
    with connection.cursor() as cursor:
        cursor.execute(_MAKE, [workspace_id, keys, names, [mention.type for mention in mentions]])
        made = frozenset(pk for (pk,) in cursor.fetchall())
        cursor.execute(_NAME, [keys, [mention.form for mention in mentions], workspace_id])
    return made

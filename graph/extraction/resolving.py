"""From forms to nodes: those that are known by them, and new ones."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from graph.extraction.found import Mention

#: A document's title is a name of what it is about.
_TYPES = {"title": "name"}

# Thousands of texts go as JSON, which is written three times as fast as an array.
_KNOWN = """
    SELECT form, node_id FROM graph_alias
    WHERE workspace_id = %s AND form IN (SELECT jsonb_array_elements_text(%s::jsonb))
"""
# Everybody inserts in one order, so that nobody waits for somebody who waits for him.
_MAKE = """
    INSERT INTO graph_node (
        workspace_id, key, name, labels, props, origin, created_at, updated_at)
    SELECT %s, new.key, new.name, ARRAY[new.label], '{}', 'extracted', now(), now()
    FROM jsonb_to_recordset(%s::jsonb) AS new (key text, name text, label text)
    ORDER BY new.key
    ON CONFLICT (workspace_id, key) DO NOTHING
    RETURNING id
"""
_NAME = """
    INSERT INTO graph_alias (workspace_id, form, node_id)
    SELECT node.workspace_id, new.form, node.id
    FROM jsonb_to_recordset(%s::jsonb) AS new (key text, form text)
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
    match mention.type:
        case "ref":
            return mention.form
        case "table" | "email":
            return f"ent:{mention.form}"
        case "date":
            return f"ent:date:{mention.form.replace(' ', '-')}"
    return f"ent:{_label(mention)}:{mention.form}"


def _label(mention: Mention) -> str:
    return _TYPES.get(mention.type, mention.type)


def _known(workspace_id: int, forms: list[str]) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [workspace_id, json.dumps(forms)])
        return dict(cursor.fetchall())


def _make(workspace_id: int, mentions: Sequence[Mention]) -> frozenset[int]:
    """Nodes for these and their names; which of them were not there."""
    new = json.dumps(
        [
            {"key": node_key(each), "form": each.form, "name": each.name, "label": _label(each)}
            for each in mentions
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute(_MAKE, [workspace_id, new])
        made = frozenset(pk for (pk,) in cursor.fetchall())
        cursor.execute(_NAME, [new, workspace_id])
    return made

"""Nodes and edges of what was read: `resolve_mentions` finds or creates the nodes of mentions,
`write_relations` the edges of relations and their evidence."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from common.sql import copy_rows
from graph.extraction.mentions import Mention

#: Titles become nodes of type name.
_LABELS = {"title": "name"}

# Thousands of texts go as JSON, which is written three times as fast as an array.
_KNOWN_SQL = """
    SELECT form, node_id FROM graph_alias
    WHERE workspace_id = %s AND form IN (SELECT jsonb_array_elements_text(%s::jsonb))
"""
# Inserts in a fixed order avoid deadlocks.
_MAKE_NODES_SQL = """
    INSERT INTO graph_node (
        workspace_id, key, name, labels, props, origin, created_at, updated_at)
    SELECT %s, new.key, new.name, ARRAY[new.label], '{}', 'extracted', now(), now()
    FROM jsonb_to_recordset(%s::jsonb) AS new (key text, name text, label text)
    ORDER BY new.key
    ON CONFLICT (workspace_id, key) DO NOTHING
    RETURNING id
"""
_MAKE_ALIASES_SQL = """
    INSERT INTO graph_alias (workspace_id, form, node_id)
    SELECT node.workspace_id, new.form, node.id
    FROM jsonb_to_recordset(%s::jsonb) AS new (key text, form text)
    JOIN graph_node AS node ON node.workspace_id = %s AND node.key = new.key
    ORDER BY new.form
    ON CONFLICT (workspace_id, form) DO NOTHING
"""


class VanishedNode(Exception):
    """A node or edge was deleted concurrently: everything must be looked up again."""


def resolve_mentions(
    workspace_id: int, mentions: Iterable[Mention]
) -> tuple[dict[str, int], frozenset[int]]:
    """Node ids of the mentions by form, created where missing; and nodes just created that a
    concurrent one replaced. Raises VanishedNode.

    Forms are looked up among all aliases, so that merged nodes stay merged, and extracted names
    match given nodes.
    """
    first: dict[str, Mention] = {}
    for mention in sorted(mentions, key=is_code):
        first.setdefault(mention.form, mention)
    known = _known_nodes(workspace_id, list(first))
    new = [mention for form, mention in first.items() if form not in known]
    if not new:
        return known, frozenset()
    rows = json.dumps(
        [
            {
                "key": node_key(each),
                "form": each.form,
                "name": each.name,
                "label": node_label(each),
            }
            for each in new
        ]
    )
    with connection.cursor() as cursor:
        cursor.execute(_MAKE_NODES_SQL, [workspace_id, rows])
        made = frozenset(pk for (pk,) in cursor.fetchall())
        cursor.execute(_MAKE_ALIASES_SQL, [rows, workspace_id])
    known |= _known_nodes(workspace_id, [mention.form for mention in new])
    if len(known) < len(first):
        raise VanishedNode
    return known, made.difference(known.values())


def is_code(mention: Mention) -> bool:
    """A sort key: what prose calls by name anywhere is a thing, though it stands in code elsewhere,
    such as Python and `python`.
    """
    return mention.type == "code"


def node_key(mention: Mention) -> str:
    """Id of a new node: `ent:name:ada lovelace`, `ref:example.com/guide`."""
    match mention.type:
        case "ref":
            return mention.form
        case "table" | "email":
            return f"ent:{mention.form}"
        case "date":
            return f"ent:date:{mention.form.replace(' ', '-')}"
    return f"ent:{node_label(mention)}:{mention.form}"


def node_label(mention: Mention) -> str:
    return _LABELS.get(mention.type, mention.type)


def _known_nodes(workspace_id: int, forms: list[str]) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN_SQL, [workspace_id, json.dumps(forms)])
        return dict(cursor.fetchall())


Triple = tuple[int, str, int]

_FIND_EDGES_SQL = """
    SELECT edge.source_id, edge.rel, edge.target_id, edge.id
    FROM graph_edge AS edge
    JOIN unnest(%s::bigint[], %s::text[], %s::bigint[]) AS said (source_id, rel, target_id)
      USING (source_id, rel, target_id)
    WHERE edge.workspace_id = %s
"""
_MAKE_EDGES_SQL = """
    INSERT INTO graph_edge (workspace_id, source_id, rel, target_id, weight, props, origin)
    SELECT %s, said.source_id, said.rel, said.target_id, 1, '{}', 'extracted'
    FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS said (source_id, rel, target_id)
    ORDER BY 2, 3, 4
    ON CONFLICT (source_id, rel, target_id, workspace_id) DO NOTHING
"""
_EDGE_ENDS_SQL = "SELECT source_id, target_id FROM graph_edge WHERE id = ANY(%s)"
_EVIDENCE_COLUMNS = (
    ("workspace_id", "int8"),
    ("chunk_id", "int8"),
    ("edge_id", "int8"),
    ("start", "int4"),
    ("end", "int4"),
)


@dataclass(frozen=True, slots=True)
class RelationEvidence:
    """Evidence: a passage states a relation of two nodes in the sentence from `start` to `end`."""

    chunk_id: int
    triple: Triple
    start: int
    end: int


def find_edges(workspace_id: int, triples: Iterable[Triple]) -> dict[Triple, int]:
    """Existing edges by (source, relation, target)."""
    wanted = sorted(set(triples))
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FIND_EDGES_SQL, [*_triple_arrays(wanted), workspace_id])
        return {(source, rel, target): pk for source, rel, target, pk in cursor.fetchall()}


def edge_ends(edge_ids: Iterable[int]) -> set[int]:
    """Nodes at both ends of these edges."""
    with connection.cursor() as cursor:
        cursor.execute(_EDGE_ENDS_SQL, [sorted(edge_ids)])
        return {pk for ends in cursor.fetchall() for pk in ends}


def write_relations(workspace_id: int, statements: Sequence[RelationEvidence]) -> int:
    """Creates missing edges and their evidence; returns the number of evidence rows.
    Raises VanishedNode.
    """
    if not statements:
        return 0
    wanted = sorted({statement.triple for statement in statements})
    with connection.cursor() as cursor:
        cursor.execute(_MAKE_EDGES_SQL, [workspace_id, *_triple_arrays(wanted)])
    edges = find_edges(workspace_id, wanted)
    if len(edges) < len(wanted):
        raise VanishedNode
    said: dict[tuple[int, int], RelationEvidence] = {}
    for statement in statements:
        said.setdefault((statement.chunk_id, edges[statement.triple]), statement)
    copy_rows(
        "graph_evidence",
        _EVIDENCE_COLUMNS,
        (
            (workspace_id, chunk_id, edge_id, statement.start, statement.end)
            for (chunk_id, edge_id), statement in said.items()
        ),
    )
    return len(said)


def _triple_arrays(triples: Sequence[Triple]) -> list[list[int] | list[str]]:
    return [
        [source for source, _, _ in triples],
        [rel for _, rel, _ in triples],
        [target for _, _, target in triples],
    ]

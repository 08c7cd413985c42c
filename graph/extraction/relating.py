"""Relations that passages state, as edges with their evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from common.copy import copy_rows
from graph.extraction.resolving import Vanished

Triple = tuple[int, str, int]

_FIND = """
    SELECT edge.source_id, edge.rel, edge.target_id, edge.id
    FROM graph_edge AS edge
    JOIN unnest(%s::bigint[], %s::text[], %s::bigint[]) AS said (source_id, rel, target_id)
      USING (source_id, rel, target_id)
    WHERE edge.workspace_id = %s
"""
_MAKE = """
    INSERT INTO graph_edge (workspace_id, source_id, rel, target_id, weight, props, origin)
    SELECT %s, said.source_id, said.rel, said.target_id, 1, '{}', 'extracted'
    FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS said (source_id, rel, target_id)
    ORDER BY 2, 3, 4
    ON CONFLICT (source_id, rel, target_id, workspace_id) DO NOTHING
"""
_ENDS = "SELECT source_id, target_id FROM graph_edge WHERE id = ANY(%s)"
_COLUMNS = (
    ("workspace_id", "int8"),
    ("chunk_id", "int8"),
    ("edge_id", "int8"),
    ("start", "int4"),
    ("end", "int4"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A passage says that two nodes are related, in the sentence from `start` to `end`."""

    chunk_id: int
    triple: Triple
    start: int
    end: int


def find_edges(workspace_id: int, triples: Iterable[Triple]) -> dict[Triple, int]:
    """The edges that there are already."""
    wanted = sorted(set(triples))
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [*_arrays(wanted), workspace_id])
        return {(source, rel, target): pk for source, rel, target, pk in cursor.fetchall()}


def ends_of(edge_ids: Iterable[int]) -> set[int]:
    """The nodes at both ends of these edges."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDS, [sorted(edge_ids)])
        return {pk for ends in cursor.fetchall() for pk in ends}


def state(workspace_id: int, statements: Sequence[Statement]) -> int:
    """Make the edges that are missing, and note which passage says which; how many say so.

    Raises Vanished.
    """
    if not statements:
        return 0
    wanted = sorted({statement.triple for statement in statements})
    with connection.cursor() as cursor:
        cursor.execute(_MAKE, [workspace_id, *_arrays(wanted)])
    edges = find_edges(workspace_id, wanted)
    if len(edges) < len(wanted):
        raise Vanished
    said: dict[tuple[int, int], Statement] = {}
    for statement in statements:
        said.setdefault((statement.chunk_id, edges[statement.triple]), statement)
    copy_rows(
        "graph_evidence",
        _COLUMNS,
        (
            (workspace_id, chunk_id, edge_id, statement.start, statement.end)
            for (chunk_id, edge_id), statement in said.items()
        ),
    )
    return len(said)


def _arrays(triples: Sequence[Triple]) -> list[list[int] | list[str]]:
    return [
        [source for source, _, _ in triples],
        [rel for _, rel, _ in triples],
        [target for _, _, target in triples],
    ]

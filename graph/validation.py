"""Consistency checks that no constraint covers: orphans, workspaces, the extraction queue."""

from collections.abc import Callable

from django.db import connection, transaction

from documents.validation import Check, Scope, SqlProbe, execute, register_probes
from graph.listener import GraphListener
from graph.node_ids import DERIVED_RELATIONS
from graph.removal import MentionedRows, remove_orphans

#: Documents that are put into the queue by one statement.
QUEUED_AT_ONCE = 10_000

# Nodes, edges and aliases are in no collection: looking at one looks at none of them.

_ORPHAN_NODES_SQL = """
    SELECT node.id, true AS node_untold
    FROM graph_node AS node
    WHERE %(collection)s::bigint IS NULL AND node.origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_mention WHERE node_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE source_id = node.id)
      AND NOT EXISTS (SELECT FROM graph_edge WHERE target_id = node.id)
"""
_ORPHAN_EDGES_SQL = """
    SELECT edge.id, true AS edge_untold
    FROM graph_edge AS edge
    WHERE %(collection)s::bigint IS NULL AND edge.origin = 'extracted'
      AND NOT EXISTS (SELECT FROM graph_evidence WHERE edge_id = edge.id)
"""

_EDGES_SQL = f"""
    SELECT edge.id,
           edge.workspace_id <> source.workspace_id OR edge.workspace_id <> target.workspace_id
               AS edge_workspace,
           edge.rel IN ({", ".join(f"'{name}'" for name in DERIVED_RELATIONS)})
               AND (source.document_id IS NOT NULL OR source.chunk_id IS NOT NULL
                    OR target.document_id IS NOT NULL OR target.chunk_id IS NOT NULL)
               AS edge_derived
    FROM graph_edge AS edge
    JOIN graph_node AS source ON source.id = edge.source_id
    JOIN graph_node AS target ON target.id = edge.target_id
    WHERE %(collection)s::bigint IS NULL
"""  # noqa: S608 (our own names)
_NODES_SQL = """
    SELECT node.id, true AS node_workspace
    FROM graph_node AS node
    LEFT JOIN documents_document AS document ON document.id = node.document_id
    LEFT JOIN documents_chunk AS chunk ON chunk.id = node.chunk_id
    WHERE %(collection)s::bigint IS NULL
      AND (document.workspace_id <> node.workspace_id OR chunk.workspace_id <> node.workspace_id)
"""
_ALIASES_SQL = """
    SELECT alias.id, true AS alias_workspace
    FROM graph_alias AS alias JOIN graph_node AS node ON node.id = alias.node_id
    WHERE %(collection)s::bigint IS NULL AND alias.workspace_id <> node.workspace_id
"""
_WORKSPACE_SQL = """
    SELECT told.chunk_id || ' of ' || told.{of}_id AS id, true AS {table}_workspace
    FROM graph_{table} AS told
    JOIN documents_chunk AS chunk ON chunk.id = told.chunk_id
    JOIN graph_{of} AS thing ON thing.id = told.{of}_id
    WHERE (%(collection)s::bigint IS NULL OR chunk.collection_id = %(collection)s)
      AND (told.workspace_id <> chunk.workspace_id OR told.workspace_id <> thing.workspace_id)
"""

_UNQUEUED_SQL = """
    SELECT document.id, true AS document_unread
    FROM documents_document AS document
    JOIN documents_collection AS collection ON collection.id = document.collection_id
    WHERE document.status = 'ready' AND document.is_current AND document.chunk_count > 0
      AND collection.graph <> 'off'
      AND (%(collection)s::bigint IS NULL OR document.collection_id = %(collection)s)
      AND NOT EXISTS (SELECT FROM graph_extraction WHERE document_id = document.id)
"""
_QUEUE_SQL = """
    SELECT reading.id,
           reading.state = 'running'
               AND (leased_until IS NULL OR leased_until < now() - %(abandoned)s)
               AS reading_without_lease,
           (reading.workspace_id, reading.collection_id)
               <> (document.workspace_id, document.collection_id) AS reading_elsewhere
    FROM graph_extraction AS reading
    JOIN documents_document AS document ON document.id = reading.document_id
    WHERE %(collection)s::bigint IS NULL OR document.collection_id = %(collection)s
"""
_RELEASE_SQL = f"""
    UPDATE graph_extraction
    SET state = 'waiting', token = NULL, leased_until = NULL, due_at = now()
    WHERE id IN (SELECT id FROM ({_QUEUE_SQL}) AS looked_at WHERE reading_without_lease)
"""  # noqa: S608 (the text above)
_MOVE_SQL = f"""
    UPDATE graph_extraction AS reading
    SET workspace_id = document.workspace_id, collection_id = document.collection_id
    FROM documents_document AS document
    WHERE document.id = reading.document_id
      AND reading.id IN (SELECT id FROM ({_QUEUE_SQL}) AS looked_at WHERE reading_elsewhere)
"""  # noqa: S608 (the text above)
_DROP_ALIASES_SQL = (
    f"DELETE FROM graph_alias WHERE id IN (SELECT id FROM ({_ALIASES_SQL}) AS looked_at)"  # noqa: S608 (the text above)
)


def _find_ids(sql: str, scope: Scope) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql, scope.parameters)
        return [row[0] for row in cursor.fetchall()]


@transaction.atomic
def _remove_nodes(scope: Scope) -> int:
    return remove_orphans(MentionedRows(nodes=_find_ids(_ORPHAN_NODES_SQL, scope), edges=()))


@transaction.atomic
def _remove_edges(scope: Scope) -> int:
    found = _find_ids(_ORPHAN_EDGES_SQL, scope)
    remove_orphans(MentionedRows(nodes=(), edges=found))
    return len(found)


def _queue_documents(scope: Scope) -> int:
    unread = _find_ids(_UNQUEUED_SQL, scope)
    for start in range(0, len(unread), QUEUED_AT_ONCE):
        with transaction.atomic():
            GraphListener().loaded(unread[start : start + QUEUED_AT_ONCE])
    return len(unread)


def _run_sql(sql: str) -> Callable[[Scope], int]:
    return lambda scope: execute(sql, scope)


def _workspace_probe(table: str, of: str, rows: str) -> SqlProbe:
    """Check that rows are in the workspace of their passage."""
    return SqlProbe(
        _WORKSPACE_SQL.format(table=table, of=of),
        (
            Check(
                f"{table}_workspace",
                rows,
                f"are in another workspace than their passage or {of}",
                "Read the passages' documents again (“Read again” in the admin).",
            ),
        ),
    )


register_probes(
    [
        SqlProbe(
            _ORPHAN_EDGES_SQL,
            (
                Check(
                    "edge_untold",
                    "edges",
                    "were found in documents, and no passage says so any more",
                    "`validate --fix` removes them.",
                    _remove_edges,
                ),
            ),
        ),
        SqlProbe(
            _ORPHAN_NODES_SQL,
            (
                Check(
                    "node_untold",
                    "nodes",
                    "were found in documents, and no passage or edge speaks of them any more",
                    "`validate --fix` removes them.",
                    _remove_nodes,
                ),
            ),
        ),
        SqlProbe(
            _EDGES_SQL,
            (
                Check(
                    "edge_workspace",
                    "edges",
                    "are in another workspace than their nodes",
                    "Delete them: the wrong people may see them.",
                ),
                Check(
                    "edge_derived",
                    "edges",
                    "of documents or passages have a relation that is read from the documents",
                    "Delete them, or name their relation otherwise.",
                ),
            ),
        ),
        SqlProbe(
            _NODES_SQL,
            (
                Check(
                    "node_workspace",
                    "nodes",
                    "stand for a document or passage of another workspace",
                    "Delete them: the wrong people may see them.",
                ),
            ),
        ),
        SqlProbe(
            _ALIASES_SQL,
            (
                Check(
                    "alias_workspace",
                    "aliases",
                    "mean a node of another workspace",
                    "`validate --fix` removes them.",
                    _run_sql(_DROP_ALIASES_SQL),
                ),
            ),
        ),
        _workspace_probe("mention", "node", "mentions"),
        _workspace_probe("evidence", "edge", "pieces of evidence"),
        SqlProbe(
            _UNQUEUED_SQL,
            (
                Check(
                    "document_unread",
                    "documents",
                    "are ready and were never in the queue of the graph",
                    "`validate --fix` puts them there.",
                    _queue_documents,
                ),
            ),
        ),
        SqlProbe(
            _QUEUE_SQL,
            (
                Check(
                    "reading_without_lease",
                    "documents in the queue of the graph",
                    "are being read by nobody",
                    "Is a scheduler running? `validate --fix` has them wait again.",
                    _run_sql(_RELEASE_SQL),
                ),
                Check(
                    "reading_elsewhere",
                    "documents in the queue of the graph",
                    "are there in another workspace or collection than their own",
                    "`validate --fix` corrects that.",
                    _run_sql(_MOVE_SQL),
                ),
            ),
        ),
    ]
)

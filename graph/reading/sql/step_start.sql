-- a document or passage stands on rows too, where a caller's edge hangs on it
start(kind, id, node_id) AS (
    SELECT 'node', id, id FROM unnest(%(nodes)s::bigint[]) AS id
    UNION ALL
    SELECT 'document', document_id, id FROM graph_node WHERE document_id = ANY(%(documents)s::bigint[])
    UNION ALL
    SELECT 'chunk', chunk_id, id FROM graph_node WHERE chunk_id = ANY(%(chunks)s::bigint[])
)

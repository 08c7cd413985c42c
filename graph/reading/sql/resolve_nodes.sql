-- a node that has the id goes before one that took it over
SELECT DISTINCT ON (wanted.id) wanted.id,
       CASE WHEN node.document_id IS NOT NULL THEN 'document'
            WHEN node.chunk_id IS NOT NULL THEN 'chunk' ELSE 'node' END,
       coalesce(node.document_id, node.chunk_id, node.id)
FROM unnest(%(ids)s::text[], %(forms)s::text[]) AS wanted(id, form)
CROSS JOIN LATERAL (
    SELECT own.id AS node_id, 0 AS rank FROM graph_node AS own
    WHERE own.workspace_id = %(workspace)s AND own.key = wanted.id
    UNION ALL
    SELECT alias.node_id, 1 FROM graph_alias AS alias
    WHERE alias.workspace_id = %(workspace)s AND alias.form = wanted.form
) AS called
-- OFFSET 0: looked up for each, not each id for all nodes
CROSS JOIN LATERAL (SELECT * FROM graph_node WHERE id = called.node_id OFFSET 0) AS node
WHERE {node}
ORDER BY wanted.id, called.rank

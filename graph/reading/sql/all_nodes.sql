SELECT node.id FROM graph_node AS node
WHERE node.id > %(after)s AND node.document_id IS NULL AND node.chunk_id IS NULL AND {node}
ORDER BY node.id
LIMIT %(limit)s

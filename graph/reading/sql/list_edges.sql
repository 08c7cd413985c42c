SELECT edge.id, edge.source_id, edge.rel, edge.target_id, edge.weight, edge.origin,
       CASE WHEN %(with_props)s THEN edge.props::text END AS props,
       source.document_id AS source_document, source.chunk_id AS source_chunk,
       target.document_id AS target_document, target.chunk_id AS target_chunk
FROM graph_edge AS edge
JOIN graph_node AS source ON source.id = edge.source_id
JOIN graph_node AS target ON target.id = edge.target_id
WHERE {edge} AND {source} AND {target} AND {filter}
ORDER BY edge.id DESC
LIMIT %(limit)s

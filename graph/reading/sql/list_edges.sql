SELECT edge.id, edge.rel, edge.weight, edge.origin,
       CASE WHEN %(with_props)s THEN edge.props::text END AS props,
       CASE WHEN source.document_id IS NOT NULL THEN 'document'
            WHEN source.chunk_id IS NOT NULL THEN 'chunk' ELSE 'node' END AS source_kind,
       coalesce(source.document_id, source.chunk_id, source.id) AS source_pk,
       CASE WHEN target.document_id IS NOT NULL THEN 'document'
            WHEN target.chunk_id IS NOT NULL THEN 'chunk' ELSE 'node' END AS target_kind,
       coalesce(target.document_id, target.chunk_id, target.id) AS target_pk
FROM graph_edge AS edge
JOIN graph_node AS source ON source.id = edge.source_id
JOIN graph_node AS target ON target.id = edge.target_id
WHERE {edge} AND {source} AND {target} AND {filter}
ORDER BY edge.id DESC
LIMIT %(limit)s

SELECT chunk.id, collection.slug AS collection, document.key, chunk.ordinal, document.title,
       row.labels,
       CASE WHEN %(props)s THEN jsonb_build_object(
           'collection', collection.slug, 'document', document.key, 'ordinal', chunk.ordinal,
           'page', chunk.page, 'heading_path', chunk.heading_path, 'text', left(chunk.text, 500)
       ) || coalesce(row.props, '{{}}'::jsonb) END AS props
FROM documents_chunk AS chunk
JOIN documents_document AS document ON document.id = chunk.document_id
JOIN documents_collection AS collection ON collection.id = chunk.collection_id
LEFT JOIN LATERAL (
    SELECT node.labels, node.props FROM graph_node AS node
    WHERE node.chunk_id = chunk.id ORDER BY node.id LIMIT 1
) AS row ON TRUE
WHERE chunk.id = ANY(%(pks)s) AND {passage}

SELECT document.id, collection.slug AS collection, document.key, document.version,
       document.is_current, document.title, row.labels,
       CASE WHEN %(props)s THEN jsonb_build_object(
           'collection', collection.slug, 'key', document.key, 'version', document.version,
           'media_type', document.media_type, 'language', document.language,
           'url', document.url, 'chunks', document.chunk_count
       ) || coalesce(row.props, '{{}}'::jsonb) END AS props
FROM documents_document AS document
JOIN documents_collection AS collection ON collection.id = document.collection_id
LEFT JOIN LATERAL (
    SELECT node.labels, node.props FROM graph_node AS node
    WHERE node.document_id = document.id ORDER BY node.id LIMIT 1
) AS row ON TRUE
WHERE document.id = ANY(%(pks)s) AND {document}

SELECT 'node' AS kind, id, key, name, NULL AS slug, NULL::int AS ordinal
FROM graph_node WHERE id = ANY(%(nodes)s::bigint[])
UNION ALL
SELECT 'chunk', chunk.id, document.key,
       coalesce(nullif(document.title, ''), nullif(document.source, ''), document.key),
       collection.slug, chunk.ordinal
FROM documents_chunk AS chunk
JOIN documents_document AS document ON document.id = chunk.document_id
JOIN documents_collection AS collection ON collection.id = chunk.collection_id
WHERE chunk.id = ANY(%(chunks)s::bigint[])

SELECT 'chunk', chunk.id, 'HAS_CHUNK', 1.0, FALSE, 'document', chunk.document_id, NULL::bigint, 'derived', 0
FROM documents_chunk AS chunk
WHERE chunk.id = ANY(%(chunks)s::bigint[]) AND {chunk}

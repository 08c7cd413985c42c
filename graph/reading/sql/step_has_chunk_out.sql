SELECT 'document', document.id, 'HAS_CHUNK', 1.0, TRUE, 'chunk', near.id, NULL::bigint, 'derived', 0
FROM unnest(%(documents)s::bigint[]) AS document(id) CROSS JOIN LATERAL (
    SELECT chunk.id FROM documents_chunk AS chunk
    WHERE chunk.document_id = document.id AND {chunk}
      AND {reach}
    ORDER BY chunk.ordinal
    LIMIT %(fan)s
) AS near

SELECT 'chunk', passage.id, 'MENTIONS', near.count::float8, TRUE, 'node', near.id, NULL::bigint, 'derived', 0
FROM unnest(%(passages_here)s::bigint[]) AS passage(id) CROSS JOIN LATERAL (
    SELECT mention.node_id AS id, mention.count
    FROM documents_chunk AS chunk
    JOIN graph_mention AS mention ON mention.chunk_id = chunk.id
    JOIN graph_node AS other ON other.id = mention.node_id
    WHERE chunk.id = passage.id AND {chunk}
      AND other.document_id IS NULL AND other.chunk_id IS NULL AND {labels}
      AND {reach}
    ORDER BY mention.count DESC, mention.node_id
    LIMIT %(fan)s
) AS near

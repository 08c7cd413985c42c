SELECT 'document', document.id, 'MENTIONS', near.weight::float8, TRUE, 'node', near.id,
       NULL::bigint, 'derived', near.scanned
FROM unnest(%(documents)s::bigint[]) AS document(id) CROSS JOIN LATERAL (
    SELECT named.* FROM (
        SELECT told.node_id AS id, sum(told.count) AS weight, sum(count(*)) OVER () AS scanned
        FROM (
            SELECT mention.node_id, mention.count
            FROM documents_chunk AS chunk
            JOIN graph_mention AS mention ON mention.chunk_id = chunk.id
            WHERE chunk.document_id = document.id AND {chunk}
            LIMIT %(scan)s
        ) AS told
        GROUP BY told.node_id
    ) AS named
    JOIN graph_node AS other ON other.id = named.id
    WHERE other.document_id IS NULL AND other.chunk_id IS NULL AND {labels}
      AND {reach}
    ORDER BY named.weight DESC, named.id
    LIMIT %(fan)s
) AS near

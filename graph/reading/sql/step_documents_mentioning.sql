SELECT 'node', node.id, 'MENTIONS', near.weight::float8, FALSE, 'document', near.id,
       NULL::bigint, 'derived', near.scanned
FROM unnest(%(nodes)s::bigint[]) AS node(id) CROSS JOIN LATERAL (
    SELECT naming.* FROM (
        SELECT told.document_id AS id, sum(told.count) AS weight, sum(count(*)) OVER () AS scanned
        FROM (
            SELECT chunk.document_id, mention.count
            FROM graph_mention AS mention
            JOIN documents_chunk AS chunk ON chunk.id = mention.chunk_id
            WHERE mention.node_id = node.id AND {chunk}
            LIMIT %(scan)s
        ) AS told
        GROUP BY told.document_id
    ) AS naming
    WHERE {reach}
    ORDER BY naming.weight DESC, naming.id
    LIMIT %(fan)s
) AS near

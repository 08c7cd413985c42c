SELECT 'node', node.id, 'MENTIONS', near.count::float8, FALSE, 'chunk', near.id, NULL::bigint, 'derived',
       near.scanned
FROM unnest(%(nodes)s::bigint[]) AS node(id) CROSS JOIN LATERAL (
    SELECT told.id, told.count, count(*) OVER () AS scanned
    FROM (
        SELECT chunk.id, mention.count
        FROM graph_mention AS mention
        JOIN documents_chunk AS chunk ON chunk.id = mention.chunk_id
        WHERE mention.node_id = node.id AND {chunk} AND {passages}
          AND {reach}
        LIMIT %(scan)s
    ) AS told
    ORDER BY told.count DESC, told.id
    LIMIT %(fan)s
) AS near

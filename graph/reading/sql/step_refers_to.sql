SELECT 'document', document.id, 'REFERS_TO', near.weight::float8, {outgoing}, 'document', near.id,
       NULL::bigint, 'derived', near.scanned
FROM unnest(%(documents)s::bigint[]) AS document(id) CROSS JOIN LATERAL (
    SELECT led.* FROM (
        SELECT told.document_id AS id, sum(told.count) AS weight, sum(count(*)) OVER () AS scanned
        FROM (
            -- a document that names itself in many passages is not led to more often
            SELECT DISTINCT there.document_id, link.chunk_id, link.node_id, link.count
            FROM documents_chunk AS here
            JOIN graph_mention AS {near} ON {near}.chunk_id = here.id AND {near}.kind = {near_kind}
            JOIN graph_mention AS {far} ON {far}.node_id = {near}.node_id AND {far}.kind = {far_kind}
            JOIN documents_chunk AS there ON there.id = {far}.chunk_id
            WHERE here.document_id = document.id AND there.document_id <> document.id
              AND {here} AND {there}
            LIMIT %(scan)s
        ) AS told
        GROUP BY told.document_id
    ) AS led
    WHERE {reach}
    ORDER BY led.weight DESC, led.id
    LIMIT %(fan)s
) AS near

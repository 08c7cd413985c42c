SELECT start.kind, start.id, near.rel, near.weight, {outgoing}, near.kind, near.id, near.edge_id, near.origin, 0
FROM start CROSS JOIN LATERAL (
    SELECT edge.rel, edge.weight, edge.id AS edge_id, edge.origin,
           CASE WHEN other.document_id IS NOT NULL THEN 'document'
                WHEN other.chunk_id IS NOT NULL THEN 'chunk' ELSE 'node' END AS kind,
           coalesce(other.document_id, other.chunk_id, other.id) AS id
    FROM graph_edge AS edge
    JOIN graph_node AS other ON other.id = edge.{far}_id
    WHERE edge.{near}_id = start.node_id AND {reach}
      AND {rels} AND {labels} AND {edge} AND {other}
    ORDER BY edge.weight DESC, edge.{far}_id, edge.rel
    LIMIT %(fan)s
) AS near

WITH seen AS MATERIALIZED (
    SELECT edge.source_id, edge.rel, edge.target_id FROM graph_edge AS edge
    JOIN graph_node AS source ON source.id = edge.source_id
    JOIN graph_node AS target ON target.id = edge.target_id
    WHERE edge.id %% %(one_in)s = 0 AND {edge} AND {source} AND {target}
)
SELECT '' AS what, '' AS name, count(*) AS number FROM seen
UNION ALL
(SELECT 'rel', rel, count(*) FROM seen GROUP BY rel ORDER BY count(*) DESC, rel LIMIT %(names)s)
UNION ALL
(SELECT 'node', ends.id::text, count(*)
 FROM (SELECT source_id AS id FROM seen
       UNION ALL SELECT target_id FROM seen WHERE target_id <> source_id) AS ends
 JOIN graph_node AS node ON node.id = ends.id
 WHERE node.document_id IS NULL AND node.chunk_id IS NULL
 GROUP BY ends.id ORDER BY count(*) DESC, ends.id LIMIT %(best)s)

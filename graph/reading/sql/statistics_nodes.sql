WITH seen AS MATERIALIZED (
    SELECT node.id, node.origin, node.labels FROM graph_node AS node
    WHERE node.id %% %(one_in)s = 0 AND {node}
)
SELECT '' AS what, '' AS name, count(*) AS number FROM seen
UNION ALL
SELECT 'origin', origin, count(*) FROM seen GROUP BY origin
UNION ALL
(SELECT 'label', label, count(*) FROM seen CROSS JOIN unnest(labels) AS label
 GROUP BY label ORDER BY count(*) DESC, label LIMIT %(names)s)

-- rank 0 is called so, 1 begins so, 2 holds it, 3 is like it
(SELECT 'node' AS kind, node.id, named.rank, named.nearness, named.name
 FROM (
     SELECT node.id,
            CASE WHEN lower(node.name) = lower(%(text)s) THEN 0
                 WHEN node.name ILIKE %(prefix)s THEN 1 ELSE 2 END AS rank,
            0.0 AS nearness, node.name
     FROM graph_node AS node
     WHERE node.workspace_id = %(workspace)s AND node.name ILIKE %(pattern)s AND {labels}
     ORDER BY rank, length(node.name), node.name, node.id
     LIMIT %(candidates)s
 ) AS named
 JOIN graph_node AS node ON node.id = named.id
 WHERE {node}
 ORDER BY named.rank, length(named.name), named.name, named.id
 LIMIT %(limit)s)
UNION ALL
(SELECT 'node', node.id, named.rank, 0.0, node.name
 FROM (
     SELECT alias.node_id AS id, min(CASE WHEN alias.form = %(form)s THEN 0 ELSE 1 END) AS rank,
            min(length(alias.form)) AS size
     FROM graph_alias AS alias
     WHERE alias.workspace_id = %(workspace)s AND %(form)s <> ''
       AND alias.form >= %(form)s AND alias.form < %(form)s || %(last)s
     GROUP BY alias.node_id
     ORDER BY rank, size, id
     LIMIT %(candidates)s
 ) AS named
 JOIN graph_node AS node ON node.id = named.id
 WHERE {node} AND {labels}
 ORDER BY named.rank, named.size, named.id
 LIMIT %(limit)s)
UNION ALL
(SELECT 'node', node.id, CASE WHEN node.key = %(text)s THEN 0 ELSE 1 END, 0.0, node.key
 FROM graph_node AS node
 WHERE node.workspace_id = %(workspace)s
   AND node.key >= %(text)s AND node.key < %(text)s || %(last)s AND {labels} AND {node}
 ORDER BY node.key
 LIMIT %(limit)s)

-- rank 0 is called so, 1 begins so, 2 holds it. Each list is cut before it is ranked: a beginning of
-- one letter is that of a tenth of all names.
(SELECT 'node' AS kind, node.id,
        CASE WHEN called.form = %(form)s THEN 0 ELSE 1 END AS rank, 0.0 AS nearness,
        called.form::text AS name
 FROM (
     SELECT alias.node_id, alias.form FROM graph_alias AS alias
     WHERE alias.workspace_id = %(workspace)s AND %(form)s <> ''
       AND alias.form >= %(form)s AND alias.form < %(form)s || %(last)s
     ORDER BY alias.form
     LIMIT %(candidates)s
 ) AS called
 JOIN graph_node AS node ON node.id = called.node_id
 WHERE {labels} AND {node}
 ORDER BY rank, length(called.form), called.form
 LIMIT %(limit)s)
UNION ALL
(SELECT 'node', node.id, CASE WHEN node.key = %(text)s THEN 0 ELSE 1 END, 0.0, node.key::text
 FROM (
     SELECT node.id FROM graph_node AS node
     WHERE node.workspace_id = %(workspace)s
       AND node.key >= %(text)s AND node.key < %(text)s || %(last)s
     ORDER BY node.key
     LIMIT %(candidates)s
 ) AS called
 JOIN graph_node AS node ON node.id = called.id
 WHERE {labels} AND {node}
 ORDER BY length(node.key), node.key
 LIMIT %(limit)s)
UNION ALL
(SELECT 'node', node.id,
        CASE WHEN lower(node.name) = lower(%(text)s) THEN 0
             WHEN node.name ILIKE %(prefix)s THEN 1 ELSE 2 END AS rank,
        0.0, node.name
 FROM (
     SELECT node.id FROM graph_node AS node
     WHERE node.workspace_id = %(workspace)s AND %(is_long)s AND node.name ILIKE %(pattern)s
       AND {labels}
     LIMIT %(candidates)s
 ) AS called
 JOIN graph_node AS node ON node.id = called.id
 WHERE {node}
 ORDER BY rank, length(node.name), node.name, node.id
 LIMIT %(limit)s)

(SELECT 'node' AS kind, node.id, 3 AS rank, word_similarity(%(text)s, node.name) AS nearness,
        node.name
 FROM (
     SELECT node.id FROM graph_node AS node
     WHERE node.workspace_id = %(workspace)s AND %(text)s <%% node.name AND {labels}
     LIMIT %(candidates)s
 ) AS called
 JOIN graph_node AS node ON node.id = called.id
 WHERE {node}
 ORDER BY nearness DESC, length(node.name), node.name, node.id
 LIMIT %(limit)s)

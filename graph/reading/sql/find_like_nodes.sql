(SELECT 'node' AS kind, node.id, 3 AS rank, named.nearness, node.name
 FROM (
     SELECT node.id, word_similarity(%(text)s, node.name) AS nearness
     FROM graph_node AS node
     WHERE node.workspace_id = %(workspace)s AND %(text)s <%% node.name AND {labels}
     ORDER BY nearness DESC, node.id
     LIMIT %(candidates)s
 ) AS named
 JOIN graph_node AS node ON node.id = named.id
 WHERE {node}
 ORDER BY named.nearness DESC, named.id
 LIMIT %(limit)s)

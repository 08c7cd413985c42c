SELECT node.id, node.key, node.name, node.labels, node.origin,
       CASE WHEN %(props)s THEN node.props END AS props
FROM graph_node AS node
WHERE node.id = ANY(%(pks)s) AND {node}

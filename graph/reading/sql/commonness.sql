SELECT node.id,
       (SELECT count(*) FROM (
            SELECT FROM graph_edge WHERE source_id = node.id LIMIT %(most)s) AS outgoing)
       + (SELECT count(*) FROM (
            SELECT FROM graph_edge WHERE target_id = node.id LIMIT %(most)s) AS incoming)
       + (SELECT count(*) FROM (
            SELECT FROM graph_mention WHERE node_id = node.id LIMIT %(most)s) AS mentions)
FROM unnest(%(nodes)s::bigint[]) AS node(id)

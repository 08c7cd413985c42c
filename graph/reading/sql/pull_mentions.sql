-- Of names within each other the question means the longest. A node that too many passages mention
-- costs no more than one look at its first mentions. Of hubs the own documents are taken, and the
-- mentions that lead to the hub from here. All of this is in indexes, but that a mention is of the
-- document's own name is in another one, so it comes again, as such. What an edge says of a thing
-- that is named here is as if it were named here, too.
-- An edge that passages tell of is there for those who may read one of them. Not EXISTS: of that
-- PostgreSQL may make a list of all edges.
WITH found AS MATERIALIZED (
    SELECT alias.node_id, run.start, run.stop
    FROM unnest(%(graph_forms)s::text[], %(graph_starts)s::int[], %(graph_stops)s::int[])
         AS run (form, start, stop)
    JOIN graph_alias AS alias
      ON alias.workspace_id = %(graph_workspace)s AND alias.form = run.form
),
asked AS MATERIALIZED (
    SELECT DISTINCT node_id FROM found
    WHERE NOT EXISTS (SELECT FROM found AS longer
                      WHERE longer.start <= found.start AND longer.stop >= found.stop
                        AND longer.stop - longer.start > found.stop - found.start)
),
named AS MATERIALIZED (
    SELECT node_id, chunk_id, kind
    FROM graph_mention WHERE chunk_id = ANY(%(graph_chunks)s::bigint[])
),
linked AS MATERIALIZED (
    SELECT other.node_id, named.chunk_id
    FROM named,
         LATERAL ((SELECT target_id AS node_id, weight FROM graph_edge AS edge
                   WHERE source_id = named.node_id AND (edge.origin = 'given' OR (
                           SELECT TRUE FROM graph_evidence AS evidence,
                                LATERAL ({seen_evidence}) AS seen
                           WHERE evidence.edge_id = edge.id AND seen.is_allowed LIMIT 1))
                   ORDER BY weight DESC, target_id, rel LIMIT {max_edges})
                  UNION ALL
                  (SELECT source_id, weight FROM graph_edge AS edge
                   WHERE target_id = named.node_id AND (edge.origin = 'given' OR (
                           SELECT TRUE FROM graph_evidence AS evidence,
                                LATERAL ({seen_evidence}) AS seen
                           WHERE evidence.edge_id = edge.id AND seen.is_allowed LIMIT 1))
                   ORDER BY weight DESC, source_id, rel LIMIT {max_edges})) AS other
    WHERE EXISTS (SELECT FROM graph_edge WHERE workspace_id = %(graph_workspace)s)
    GROUP BY other.node_id, named.chunk_id
    ORDER BY max(other.weight) DESC, other.node_id, named.chunk_id
    LIMIT {max_linked}
),
start AS MATERIALIZED (
    SELECT node_id FROM named
    UNION SELECT node_id FROM linked
    UNION SELECT node_id FROM asked
),
counted AS MATERIALIZED (
    SELECT start.node_id, coalesce(often.chunks, '{{}}') AS chunks
    FROM start,
         LATERAL (SELECT array_agg(chunk_id) AS chunks
                  FROM (SELECT chunk_id FROM graph_mention AS mention
                        WHERE mention.node_id = start.node_id
                        LIMIT {max_mentions} + 1) AS first_ones) AS often
),
ordered AS MATERIALIZED (
    SELECT node_id, chunks, cardinality(chunks) > {max_mentions} AS is_hub,
           sum(cardinality(chunks)) OVER (ORDER BY cardinality(chunks), node_id
                                          ROWS UNBOUNDED PRECEDING) AS upto
    FROM counted
),
pulled AS MATERIALIZED (
    SELECT node_id, unnest(chunks) AS chunk_id, 0::bigint AS sign
    FROM ordered
    WHERE NOT is_hub AND upto <= {max_rows}
    UNION ALL
    SELECT node_id, own.chunk_id, {own_name} + is_hub::int
    FROM ordered,
         LATERAL (SELECT chunk_id FROM graph_mention AS mention
                  WHERE mention.node_id = ordered.node_id AND mention.kind = 0
                  LIMIT CASE WHEN is_hub THEN {max_namesakes} ELSE {max_mentions} END) AS own
    WHERE is_hub OR upto <= {max_rows}
    UNION ALL
    SELECT node_id, chunk_id, {hub}
    FROM ordered JOIN named USING (node_id)
    WHERE is_hub AND kind <> 0
    UNION ALL
    SELECT node_id, chunk_id, is_hub::int
    FROM ordered JOIN linked USING (node_id)
)
SELECT (SELECT array_agg(node_id) FROM asked),
       (SELECT count(*)
        FROM (SELECT FROM documents_document
              -- an array, because IN may look each document's chunks through
              WHERE collection_id = ANY(ARRAY(SELECT collection_id FROM documents_chunk
                                              WHERE id = ANY(%(graph_chunks)s::bigint[])))
                AND is_current
              LIMIT %(graph_counted)s) AS counted),
       mention.*, chunk.*
FROM (SELECT array_agg(chunk_id), array_agg(node_id), array_agg(sign) FROM pulled) AS mention,
     (SELECT array_agg(seen.id), array_agg(seen.document_id)
      FROM ({seen_pulled}) AS seen WHERE seen.is_allowed) AS chunk

-- Counting ends where a node is too common, so no hub costs more than another.
WITH named AS MATERIALIZED (
    SELECT mention.chunk_id AS seed, mention.node_id, often.passages,
           row_number() OVER (PARTITION BY mention.chunk_id
                              ORDER BY often.passages, mention.node_id) AS place
    FROM graph_mention AS mention,
         LATERAL (SELECT count(*) AS passages
                  FROM (SELECT FROM graph_mention AS other
                        WHERE other.node_id = mention.node_id
                        LIMIT %(graph_most)s + 1) AS counted) AS often
    WHERE mention.chunk_id = ANY(%(graph_seeds)s)
      AND often.passages BETWEEN 2 AND %(graph_most)s
),
shared AS (
    SELECT named.seed, mention.chunk_id, sum(1 / ln(1 + named.passages)) AS score,
           (array_agg(named.node_id ORDER BY named.passages, named.node_id))[1] AS node_id
    FROM named,
         LATERAL (SELECT chunk_id FROM graph_mention AS other
                  WHERE other.node_id = named.node_id
                  LIMIT %(graph_most)s) AS mention
    WHERE named.place <= %(graph_nodes)s AND mention.chunk_id <> ALL(%(graph_known)s)
    GROUP BY named.seed, mention.chunk_id
),
-- the own document's neighbours beside them: what stands next to a passage goes with it
beside AS (
    SELECT seed.id AS seed, near.id AS chunk_id, {beside}::float8 AS score,
           NULL::bigint AS node_id
    FROM documents_chunk AS seed
    JOIN documents_chunk AS near ON near.document_id = seed.document_id
     AND near.ordinal IN (seed.ordinal - 1, seed.ordinal + 1)
    WHERE seed.id = ANY(%(graph_seeds)s) AND near.id <> ALL(%(graph_known)s)
),
best AS MATERIALIZED (
    SELECT * FROM (
        SELECT together.*, row_number() OVER (PARTITION BY seed ORDER BY score DESC, chunk_id)
                           AS among_all
        FROM (SELECT * FROM shared UNION ALL SELECT * FROM beside) AS together
    ) AS numbered
    WHERE among_all <= %(graph_looked)s
),
ordered AS (
    SELECT best.*, row_number() OVER (PARTITION BY seed ORDER BY among_all) AS place
    FROM best, LATERAL ({seen}) AS seen
    WHERE seen.is_allowed
)
SELECT seed, chunk_id, node_id, score FROM ordered WHERE place <= %(graph_each)s
ORDER BY seed, place

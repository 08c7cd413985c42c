-- the direction between the best passage by words and the best by meaning, in each space
best AS MATERIALIZED (
    SELECT chunk.space_id, sum(l2_normalize(chunk.embedding)) AS vector
    FROM ((SELECT id FROM bm25 ORDER BY score DESC, id LIMIT 1) UNION {nearest}) AS one
    JOIN documents_chunk AS chunk USING (id)
    WHERE chunk.embedding IS NOT NULL
    GROUP BY chunk.space_id
)

-- the direction between the best passages of both arms, in each space, where these are known
best AS MATERIALIZED (
    SELECT space_id, sum(l2_normalize(embedding)) AS vector
    FROM documents_chunk
    WHERE id = ANY(%(best)s) AND embedding IS NOT NULL
    GROUP BY space_id
)

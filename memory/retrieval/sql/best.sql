-- the direction between the best row by words and the best by meaning, in each space
best AS MATERIALIZED (
    SELECT row.space_id, sum(l2_normalize(row.embedding)) AS vector
    FROM ((SELECT id FROM bm25 ORDER BY score DESC, id LIMIT 1)
          UNION
          (SELECT DISTINCT ON (space_id) id FROM mine WHERE similarity IS NOT NULL
           ORDER BY space_id, similarity DESC, id)) AS one
    JOIN {table} AS row USING (id)
    WHERE row.embedding IS NOT NULL
    GROUP BY row.space_id
)

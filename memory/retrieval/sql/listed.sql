threaded AS (
    SELECT id, lag(id) OVER thread AS previous, lead(id) OVER thread AS following
    FROM mine
    WINDOW thread AS (PARTITION BY thread ORDER BY moment, id)
),
best_listed AS (
    (SELECT id FROM bm25 ORDER BY score DESC, id LIMIT %(depth)s)
    UNION
    (SELECT id FROM mine WHERE similarity IS NOT NULL ORDER BY similarity DESC, id
     LIMIT %(depth)s)
),
-- an answer follows its question: neighbours of what was found are looked at as well
listed AS MATERIALIZED (
    SELECT id, previous, following
    FROM threaded
    WHERE id IN (SELECT id FROM best_listed)
       OR previous IN (SELECT id FROM best_listed)
       OR following IN (SELECT id FROM best_listed)
)

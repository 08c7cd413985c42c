-- who follows whom in a conversation, as long as nobody paused for long
threaded AS (
    SELECT id,
           CASE WHEN moment - lag(moment) OVER thread <= %(pause)s THEN lag(id) OVER thread END
               AS previous,
           CASE WHEN lead(moment) OVER thread - moment <= %(pause)s THEN lead(id) OVER thread END
               AS following,
           lag(id, 2) OVER thread AS second_previous,
           lead(id, 2) OVER thread AS second_following
    FROM mine
    WINDOW thread AS (PARTITION BY thread ORDER BY moment, id)
),
best_listed AS MATERIALIZED (
    (SELECT id FROM bm25 ORDER BY score DESC, id LIMIT %(depth)s)
    UNION
    (SELECT id FROM mine WHERE similarity IS NOT NULL ORDER BY similarity DESC, id
     LIMIT %(depth)s)
),
-- an answer follows its question: neighbours of what was found are looked at as well
near AS (
    SELECT unnest(ARRAY[id, previous, following, second_previous, second_following]) AS id
    FROM threaded
    JOIN best_listed USING (id)
),
listed AS MATERIALIZED (
    SELECT id, previous, following, id IN (SELECT id FROM best_listed) AS is_best
    FROM threaded
    WHERE id IN (SELECT id FROM near)
)

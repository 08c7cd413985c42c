-- what holds for the whole memory, in a row without an id
SELECT NULL::bigint, NULL::timestamptz,
       jsonb_build_object(
           'rows', (SELECT count(*) FROM mine),
           'spaces', (SELECT coalesce(jsonb_agg(DISTINCT space_id), '[]') FROM mine
                      WHERE space_id IS NOT NULL),
           'backgrounds', (SELECT coalesce(jsonb_object_agg(space_id, jsonb_build_array(level, rows)),
                                           '{{}}')
                           FROM (SELECT space_id, avg(similarity) AS level, count(*) AS rows
                                 FROM mine WHERE similarity IS NOT NULL
                                 GROUP BY space_id) AS background)
       )::text,
       NULL::float8, NULL::float8, NULL::float8, NULL::bigint, NULL::float8,
       NULL::bigint, NULL::bigint
UNION ALL
SELECT listed.id, row.{moment}, CASE WHEN is_best THEN {text} ELSE '' END, bm25.score, bm25.coverage, mine.similarity, mine.space_id,
       1 - (row.embedding <=> best.vector), listed.previous, listed.following
FROM listed
JOIN mine USING (id)
JOIN {table} AS row USING (id)
LEFT JOIN bm25 USING (id)
LEFT JOIN best ON best.space_id = mine.space_id

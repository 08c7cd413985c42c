-- What the people who made these searches searched for next, each other question once.
SELECT first, (array_agg(DISTINCT query))[1:5] AS questions
FROM (
    SELECT wanted.first, following.query
    FROM unnest(%(firsts)s::bigint[], %(ids)s::bigint[]) AS wanted (first, id)
    JOIN search_searchlog AS log ON log.id = wanted.id
    CROSS JOIN LATERAL (
        SELECT later.query FROM search_searchlog AS later
        WHERE later.workspace_id = log.workspace_id AND later.user_id = log.user_id
          AND later.created_at > log.created_at
          AND later.created_at <= log.created_at + %(soon)s
          AND lower(regexp_replace(btrim(later.query), '\s+', ' ', 'g'))
              <> lower(regexp_replace(btrim(log.query), '\s+', ' ', 'g'))
        ORDER BY later.created_at LIMIT 1
    ) AS following
) AS next_ones
GROUP BY first

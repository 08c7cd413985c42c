-- Groups of equal questions whose last search went badly, out of the newest searches.
WITH floors AS (
    SELECT * FROM unnest(%(spaces)s::bigint[], %(with_words)s::float8[], %(without_words)s::float8[])
        AS floor (space_id, with_words, without_words)
), looked_at AS (
    SELECT log.id, log.workspace_id, log.user_id, log.query, log.total, log.lexical_total,
           log.similarity, log.refused, log.collections, log.tables, log.created_at
    FROM search_searchlog AS log
    WHERE (%(workspace)s::bigint IS NULL OR log.workspace_id = %(workspace)s)
      AND log.created_at >= %(since)s AND log.query <> ''
      AND (%(words)s::text = '%%' OR log.query ILIKE %(words)s)
    ORDER BY log.created_at DESC LIMIT %(looked_at)s
), told AS MATERIALIZED (
    SELECT looked_at.*,
           -- Numbers are sorted many times faster than texts.
           hashtextextended(lower(CASE WHEN position('  ' IN query) > 0
                                       THEN regexp_replace(btrim(query), '\s+', ' ', 'g')
                                       ELSE btrim(query) END), 0) AS same,
           (total = 0 AND tables IS NULL)::int AS nothing,
           refused::int AS refusal,
           (total > 0 AND NOT refused
            AND similarity < (SELECT max(greatest(with_words, without_words)) FROM floors)
            AND similarity < coalesce((
               SELECT min(CASE WHEN lexical_total = 0 THEN floors.without_words
                               ELSE floors.with_words END)
               FROM documents_collection AS collection JOIN floors USING (space_id)
               WHERE collection.id = ANY(collections)
           ), -1))::int AS far
    FROM looked_at
), grouped AS (
    SELECT workspace_id, same,
           count(*) AS asked, count(DISTINCT user_id) AS people,
           sum(nothing) AS nothing, sum(refusal) AS refused, sum(far) AS far,
           max(similarity) AS similarity, max(created_at) AS last_at,
           (array_agg(query ORDER BY id DESC))[1] AS question,
           (array_agg(id ORDER BY id DESC))[1:20] AS log_ids,
           (array_agg(nothing + refusal + far ORDER BY id DESC))[1] AS is_open
    FROM told GROUP BY workspace_id, same
)
SELECT workspace_id, asked, people, nothing, refused, far, similarity, last_at, question, log_ids
FROM grouped
WHERE is_open > 0
  AND CASE %(reason)s::text
      WHEN 'nothing' THEN nothing > 0 WHEN 'refused' THEN refused > 0 WHEN 'far' THEN far > 0
      ELSE true END
ORDER BY asked DESC, last_at DESC
LIMIT %(limit)s OFFSET %(offset)s

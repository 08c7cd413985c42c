-- every language that chunks of these collections are in, with its statistics
language AS MATERIALIZED (
    SELECT language,
           sum(chunk_count)::float8 AS chunks,
           -- a language may have superseded versions only
           coalesce(sum(average_length * chunk_count) / nullif(sum(chunk_count), 0),
                    max(average_length)) AS average_length
    FROM documents_lexicalstatistics
    WHERE collection_id = ANY(%(collections)s)
    GROUP BY language
),
-- the query's lexemes, once a language; the text form of a tsquery quotes any character
lexeme AS (
    SELECT language.*, found.lexeme, cardinality(found.positions) AS times,
           '''' || replace(replace(found.lexeme, '\', '\\'), '''', '''''') || '''' AS quoted
    FROM language, unnest(to_tsvector(language.language, ragsite_words(%(text)s))) AS found
    -- the parser gives a hyphenated word and its parts; counting it twice lost a point
    WHERE found.lexeme !~ '^[[:alnum:]]+(-[[:alnum:]]+)+$'
      -- 東京大学 → 東京 京大 大学 学, whose last letter says no more than the pair before it; letters
      -- that stand alone in the query are among its prefixes
      AND NOT ragsite_is_letter(found.lexeme)
),
-- materialised, because a cast that is inlined is evaluated for every row
term AS MATERIALIZED (
    SELECT lexeme.language, average_length, times, quoted, quoted::tsquery AS query, chunk_count,
           -- the + 1 keeps the weight of a word that stands in most chunks above zero (Lucene)
           ln(1 + (greatest(chunks - chunk_count, 0) + 0.5) / (chunk_count + 0.5)) AS idf
    FROM lexeme,
         LATERAL (SELECT coalesce(sum(chunk_count), 0)::float8 AS chunk_count
                  FROM documents_lexemefrequency AS frequency
                  WHERE frequency.collection_id = ANY(%(collections)s)
                    AND frequency.language = lexeme.language
                    AND frequency.lexeme = lexeme.lexeme) AS frequency
    UNION ALL
    SELECT language.language, average_length, 1, stem.query::text, stem.query, chunk_count,
           ln(1 + (greatest(chunks - chunk_count, 0) + 0.5) / (chunk_count + 0.5))
    FROM language,
         unnest(%(prefixes)s::text[]) AS word,
         LATERAL (SELECT to_tsquery(language.language, word || ':*') AS query) AS stem,
         LATERAL (SELECT coalesce(sum(chunk_count), 0)::float8 AS chunk_count
                  FROM documents_lexemefrequency AS frequency
                  WHERE frequency.collection_id = ANY(%(collections)s)
                    AND frequency.language = language.language
                    AND starts_with(frequency.lexeme, lower(word))) AS frequency
    WHERE numnode(stem.query) > 0
),
ordered AS (
    SELECT language.language, quoted, chunks, chunk_count,
           sum(chunk_count) OVER (PARTITION BY language.language ORDER BY chunk_count, quoted
                                  ROWS UNBOUNDED PRECEDING) AS upto
    FROM term
    JOIN language USING (language)
),
-- the rarest lexemes, as many as stand in no more chunks than are scored: none of those is missed
rare AS MATERIALIZED (
    SELECT language, string_agg(quoted, ' | ')::tsquery AS query, max(upto) AS upto
    FROM ordered
    WHERE upto <= %(candidates)s
    GROUP BY language
),
other AS (
    SELECT ordered.language, quoted, rare.query AS rare,
           rare.upto IS NULL OR rare.upto < %(budget)s AS are_few,
           -- how many chunks have all the rarer ones of these, were words independent
           chunks * exp(sum(ln((chunk_count + 1) / (chunks + 1)))
                        OVER (PARTITION BY ordered.language ORDER BY chunk_count, quoted
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS remaining
    FROM ordered
    LEFT JOIN rare USING (language)
    WHERE rare.language IS NULL OR ordered.upto > rare.upto
),
-- of the others as many at once as leave enough chunks, or any of them
beside AS (
    SELECT language, are_few, rare,
           string_agg(quoted, ' & ')
               FILTER (WHERE coalesce(remaining, 'infinity') > 2 * %(budget)s)::tsquery AS several,
           string_agg(quoted, ' | ')::tsquery AS any_one
    FROM other
    GROUP BY language, are_few, rare
),
-- no chunk matches two of these; common words count where the rare ones stand in few chunks, and
-- a single common word where, within the scope, that was not enough either
wanted AS MATERIALIZED (
    SELECT language, query FROM rare
    UNION ALL
    SELECT language, several && coalesce(!! rare, '') FROM beside WHERE are_few OR %(any)s
    UNION ALL
    SELECT language, any_one && !! several && coalesce(!! rare, '') FROM beside WHERE %(any)s
)

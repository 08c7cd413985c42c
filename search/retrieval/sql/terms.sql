-- every language that chunks of these collections are in, with its statistics
language AS MATERIALIZED (
    SELECT language,
           sum(chunk_count)::float8 AS chunks,
           sum(average_length * chunk_count) / sum(chunk_count) AS average_length
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
-- the rarest lexemes until their chunks pass the budget, or all lexemes at once
wanted AS MATERIALIZED (
    SELECT language,
           coalesce(string_agg(quoted, ' | ') FILTER (WHERE before < %(budget)s), '')::tsquery
           || string_agg(quoted, ' & ')::tsquery AS query
    FROM (SELECT language, quoted,
                 sum(chunk_count) OVER (PARTITION BY language ORDER BY chunk_count, quoted
                                        ROWS UNBOUNDED PRECEDING) - chunk_count AS before
          FROM term) AS ordered
    GROUP BY language
)

-- BM25 over the generated search vectors, in stock PostgreSQL.
-- :scope stands for the conditions of the search's scope on documents_chunk AS chunk.
WITH
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
    FROM language, unnest(to_tsvector(language.language, %(text)s)) AS found
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
),
candidate AS MATERIALIZED (
    SELECT chunk.id, chunk.language,
           -- joined with nothing, so that it is decompressed once and not for every term
           chunk.search_vector || ''::tsvector AS search_vector
    FROM wanted
    JOIN documents_chunk AS chunk
      ON chunk.search_vector @@ wanted.query AND chunk.language = wanted.language
    WHERE :scope
    LIMIT %(candidates)s
)
SELECT candidate.id,
       sum(term.times * term.idf * tf * (%(k1)s + 1)
           / (tf + %(k1)s * (1 - %(b)s
                             + %(b)s * length(search_vector) / term.average_length))) AS score
FROM candidate
JOIN term USING (language),
     -- ts_rank of one lexeme with equal weights w is w / 1.6449 · Σ 1/j² for j up to its
     -- frequency; the tail of that sum is close to 1 / (frequency + ½), which is turned round here
     LATERAL (SELECT ts_rank('{1,1,1,1}', search_vector, term.query)::float8 AS every,
                     ts_rank('{0,0,0,1}', search_vector, term.query)::float8 AS heading) AS rank,
     LATERAL (SELECT CASE WHEN every > 0
                     THEN round(1 / (1.64493406685 * (1 - every)) - 0.5) ELSE 0 END
                   + CASE WHEN heading > 1e-10
                     THEN round(1 / (1.64493406685 * (1 - heading)) - 0.5) ELSE 0 END
                     * %(heading_boost)s AS tf) AS frequency
WHERE tf > 0
GROUP BY candidate.id
ORDER BY score DESC, candidate.id
LIMIT %(depth)s

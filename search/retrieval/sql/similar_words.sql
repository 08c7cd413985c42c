-- the query's words that stand nowhere in these collections, with lexemes that are spelt like them
WITH language AS (
    SELECT DISTINCT language FROM documents_lexicalstatistics
    WHERE collection_id = ANY(%(collections)s)
),
meant AS MATERIALIZED (
    SELECT word, language, tsvector_to_array(to_tsvector(language, ragsite_words(word))) AS lexemes
    FROM language, unnest(%(words)s::text[]) AS word
),
-- known in one language is known; a word without lexemes is a stop word there, and known too
unknown AS MATERIALIZED (
    SELECT word, language, lexemes[1] AS lexeme
    FROM meant
    WHERE cardinality(lexemes) = 1
      AND word NOT IN (
          SELECT word FROM meant
          LEFT JOIN documents_lexemefrequency AS frequency
            ON frequency.collection_id = ANY(%(collections)s)
           AND frequency.language = meant.language
           AND frequency.lexeme = ANY(meant.lexemes)
          WHERE frequency.lexeme IS NOT NULL OR cardinality(meant.lexemes) = 0
      )
)
SELECT word, language::text, lexeme
FROM (SELECT unknown.word, unknown.language, similar_one.lexeme,
             row_number() OVER (PARTITION BY unknown.word
                                -- what is frequent was more likely meant
                                ORDER BY similar_one.likeness
                                         + 0.03 * ln(1 + similar_one.chunk_count) DESC,
                                         similar_one.lexeme) AS place
      FROM unknown,
           LATERAL (SELECT frequency.lexeme, sum(frequency.chunk_count) AS chunk_count,
                           similarity(frequency.lexeme, unknown.lexeme) AS likeness
                    FROM documents_lexemefrequency AS frequency
                    WHERE frequency.lexeme %% unknown.lexeme
                      AND frequency.collection_id = ANY(%(collections)s)
                      AND frequency.language = unknown.language
                    GROUP BY frequency.lexeme) AS similar_one) AS ranked
WHERE place <= %(most)s
ORDER BY word, place

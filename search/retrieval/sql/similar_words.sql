-- the query's words that occur in none of these collections, with lexemes that are spelt like them
WITH language AS (
    SELECT DISTINCT language FROM documents_lexicalsegment
    WHERE collection_id = ANY(%(collections)s) AND is_current
),
meant AS MATERIALIZED (
    SELECT word, language, tsvector_to_array(to_tsvector(language, ragsite_words(word))) AS lexemes
    FROM language, unnest(%(words)s::text[]) AS word
),
-- known in one language is known; a word without lexemes is a stop word there, and known too
unknown AS MATERIALIZED (
    SELECT word, language, lexemes[1] COLLATE "C" AS lexeme
    FROM meant
    WHERE cardinality(lexemes) = 1
      AND word NOT IN (
          SELECT word FROM meant
          LEFT JOIN documents_lexeme AS known
            ON known.collection_id = ANY(%(collections)s)
           AND known.language = meant.language
           AND known.lexeme = ANY(meant.lexemes COLLATE "C")
          WHERE known.lexeme IS NOT NULL OR cardinality(meant.lexemes) = 0
      )
)
SELECT word, language::text, lexeme
FROM (SELECT unknown.word, unknown.language, similar_one.lexeme,
             row_number() OVER (PARTITION BY unknown.word
                                -- what is frequent was more likely meant
                                ORDER BY similar_one.likeness
                                         + 0.03 * ln(1 + frequency.chunk_count) DESC,
                                         similar_one.lexeme) AS place
      FROM unknown,
           LATERAL (SELECT DISTINCT known.lexeme, similarity(known.lexeme, unknown.lexeme) AS likeness
                    FROM documents_lexeme AS known
                    WHERE known.lexeme %% unknown.lexeme
                      AND known.collection_id = ANY(%(collections)s)
                      AND known.language = unknown.language) AS similar_one,
           LATERAL (SELECT coalesce(sum(octet_length(posting.data) / 5), 0)::bigint AS chunk_count
                    FROM documents_lexicalsegment AS segment
                    JOIN documents_posting AS posting
                      ON posting.segment_id = segment.id AND posting.lexeme = similar_one.lexeme
                    WHERE segment.collection_id = ANY(%(collections)s) AND segment.is_current
                      AND segment.language = unknown.language) AS frequency) AS ranked
WHERE place <= %(most)s
ORDER BY word, place

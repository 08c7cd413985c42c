-- the question's lexemes in each language of the collections: in how many of its chunks each stands,
-- and in which of those that were found
WITH language AS (
    SELECT language, sum(chunk_count)::float8 AS chunks
    FROM documents_lexicalstatistics
    WHERE collection_id = ANY(%(collections)s)
    GROUP BY language
),
lexeme AS (
    SELECT language.*, found.lexeme,
           '''' || replace(replace(found.lexeme, '\', '\\'), '''', '''''') || '''' AS quoted
    FROM language, unnest(to_tsvector(language.language, ragsite_words(%(text)s))) AS found
    -- as in BM25: neither compounds beside their parts, nor single letters of Chinese
    WHERE found.lexeme !~ '^[[:alnum:]]+(-[[:alnum:]]+)+$' AND NOT ragsite_is_letter(found.lexeme)
)
SELECT lexeme.language::text, lexeme.chunks, frequency.chunk_count,
       ARRAY(SELECT chunk.id FROM documents_chunk AS chunk
             WHERE chunk.id = ANY(%(chunks)s) AND chunk.language = lexeme.language
               AND chunk.search_vector @@ lexeme.quoted::tsquery)
FROM lexeme,
     LATERAL (SELECT coalesce(sum(chunk_count), 0)::float8 AS chunk_count
              FROM documents_lexemefrequency AS frequency
              WHERE frequency.collection_id = ANY(%(collections)s)
                AND frequency.language = lexeme.language
                AND frequency.lexeme = lexeme.lexeme) AS frequency

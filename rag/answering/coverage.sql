-- which of the given chunks contain each of these lexemes
SELECT wanted.language, wanted.lexeme,
       ARRAY(SELECT chunk.id FROM documents_chunk AS chunk
             WHERE chunk.id = ANY(%(chunks)s) AND chunk.language = wanted.language::regconfig
               AND chunk.search_vector @@ (
                   '''' || replace(replace(wanted.lexeme, '\', '\\'), '''', '''''') || ''''
               )::tsquery)
FROM unnest(%(languages)s::text[], %(lexemes)s::text[]) AS wanted (language, lexeme)

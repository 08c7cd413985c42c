-- what only the vectors listed is scored by its words too
candidate AS (
    SELECT id, language, search_vector FROM found
    UNION ALL
    SELECT chunk.id, chunk.language, chunk.search_vector || ''::tsvector
    FROM nearest
    JOIN documents_chunk AS chunk USING (id)
    WHERE nearest.id NOT IN (SELECT id FROM found)
)

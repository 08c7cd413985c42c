-- chunks that BM25 looks at; lateral and with a limit of its own, so that the planner looks each
-- language's query up in the GIN index and does not join the other way round
found AS MATERIALIZED (
    SELECT chunk.*
    FROM wanted,
         LATERAL (SELECT chunk.id, chunk.language,
                         -- joined with nothing, so that it is decompressed once, not once a term
                         chunk.search_vector || ''::tsvector AS search_vector
                  FROM documents_chunk AS chunk
                  WHERE chunk.search_vector @@ wanted.query
                    AND chunk.language = wanted.language
                    AND {scope}
                  LIMIT %(candidates)s) AS chunk
)

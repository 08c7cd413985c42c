-- ids of chunks that BM25 looks at; lateral and with a limit of its own, so that the planner
-- looks each language's query up in the GIN index and does not join the other way round
SELECT found.id
FROM wanted,
     LATERAL (SELECT chunk.id
              FROM documents_chunk AS chunk
              WHERE chunk.search_vector @@ wanted.query
                AND chunk.language = wanted.language
                AND {scope}
              LIMIT %(candidates)s) AS found

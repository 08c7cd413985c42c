-- ids of chunks that BM25 looks at
SELECT chunk.id
FROM wanted
JOIN documents_chunk AS chunk
  ON chunk.search_vector @@ wanted.query AND chunk.language = wanted.language
WHERE {scope}
LIMIT %(candidates)s

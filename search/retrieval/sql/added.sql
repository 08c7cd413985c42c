-- chunks that another arm brought, to be scored by their words
candidate AS MATERIALIZED (
    SELECT chunk.id, chunk.language, chunk.search_vector || ''::tsvector AS search_vector
    FROM documents_chunk AS chunk
    WHERE chunk.id = ANY(%(added)s) AND {scope}
)

SELECT EXISTS (
    SELECT FROM documents_collection AS collection
    JOIN documents_chunk AS chunk ON chunk.collection_id = collection.id
    WHERE collection.workspace_id = %(workspace)s AND chunk.access IS NOT NULL
)

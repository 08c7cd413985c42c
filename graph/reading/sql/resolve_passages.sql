SELECT collection.slug, document.key, chunk.ordinal, chunk.id
FROM unnest(%(slugs)s::text[], %(keys)s::text[], %(ordinals)s::int[]) AS wanted(slug, key, ordinal)
JOIN documents_collection AS collection
  ON collection.workspace_id = %(workspace)s AND collection.slug = wanted.slug
JOIN documents_document AS document
  ON document.collection_id = collection.id AND document.key = wanted.key AND document.is_current
JOIN documents_chunk AS chunk
  ON chunk.document_id = document.id AND chunk.ordinal = wanted.ordinal
WHERE {passage}

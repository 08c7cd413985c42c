SELECT collection.slug, document.key, document.version, document.is_current, document.id
FROM unnest(%(slugs)s::text[], %(keys)s::text[]) AS wanted(slug, key)
JOIN documents_collection AS collection
  ON collection.workspace_id = %(workspace)s AND collection.slug = wanted.slug
JOIN documents_document AS document
  ON document.collection_id = collection.id AND document.key = wanted.key
WHERE {document}

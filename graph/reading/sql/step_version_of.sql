SELECT 'document', document.id, 'VERSION_OF', 1.0, {outgoing}, 'document', other.id, NULL::bigint, 'derived', 0
FROM documents_document AS document
JOIN documents_document AS other
  ON other.collection_id = document.collection_id AND other.key = document.key
 AND {newer}.is_current AND {older}.version < {newer}.version
WHERE document.id = ANY(%(documents)s::bigint[]) AND {document} AND {other}

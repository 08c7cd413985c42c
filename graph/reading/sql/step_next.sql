SELECT 'chunk', chunk.id, 'NEXT', 1.0, {outgoing}, 'chunk', other.id, NULL::bigint, 'derived', 0
FROM documents_chunk AS chunk
JOIN documents_chunk AS other
  ON other.document_id = chunk.document_id AND other.ordinal = chunk.ordinal {sign} 1
WHERE chunk.id = ANY(%(chunks)s::bigint[]) AND {chunk} AND {other}

SELECT mention.chunk_id, chunk.document_id, chunk.ordinal, mention.kind, mention.count,
       mention.start, mention."end",
       greatest(0, mention.start - %(around)s) AS snippet_start,
       substr(chunk.text, greatest(0, mention.start - %(around)s)::int + 1,
              (mention."end" - greatest(0, mention.start - %(around)s) + %(around)s)::int) AS snippet
FROM graph_mention AS mention
JOIN documents_chunk AS chunk ON chunk.id = mention.chunk_id
WHERE mention.node_id = %(node)s AND {chunk}
  AND (chunk.document_id, chunk.ordinal) > (%(document)s, %(ordinal)s)
ORDER BY chunk.document_id, chunk.ordinal
LIMIT %(limit)s

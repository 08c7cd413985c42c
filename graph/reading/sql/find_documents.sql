(SELECT 'document' AS kind, document.id,
        CASE WHEN lower(document.title) = lower(%(text)s) THEN 0
             WHEN document.title ILIKE %(prefix)s THEN 1 ELSE 2 END AS rank,
        0.0 AS nearness, document.title AS name
 FROM documents_document AS document
 WHERE document.is_current AND document.title ILIKE %(pattern)s AND {document}
 ORDER BY rank, length(document.title), document.title, document.id
 LIMIT %(limit)s)

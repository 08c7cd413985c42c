(SELECT 'document' AS kind, document.id,
        CASE WHEN lower(document.title) = lower(%(text)s) THEN 0
             WHEN document.title ILIKE %(prefix)s THEN 1 ELSE 2 END AS rank,
        0.0 AS nearness, document.title::text AS name
 FROM (
     SELECT document.id FROM documents_document AS document
     WHERE document.is_current AND document.title ILIKE %(pattern)s AND {document}
     LIMIT %(candidates)s
 ) AS called
 JOIN documents_document AS document ON document.id = called.id
 ORDER BY rank, length(document.title), document.title, document.id
 LIMIT %(limit)s)

(SELECT 'document' AS kind, document.id, 3 AS rank,
        word_similarity(%(text)s, document.title) AS nearness, document.title::text AS name
 FROM (
     SELECT document.id FROM documents_document AS document
     WHERE document.is_current AND %(text)s <%% document.title AND {document}
     LIMIT %(candidates)s
 ) AS called
 JOIN documents_document AS document ON document.id = called.id
 ORDER BY nearness DESC, length(document.title), document.title, document.id
 LIMIT %(limit)s)

(SELECT 'document' AS kind, document.id, 3 AS rank,
        word_similarity(%(text)s, document.title) AS nearness, document.title AS name
 FROM documents_document AS document
 WHERE document.is_current AND %(text)s <%% document.title AND {document}
 ORDER BY nearness DESC, document.id
 LIMIT %(limit)s)

SELECT document.id FROM documents_document AS document
WHERE document.id > %(after)s AND {document}
ORDER BY document.id
LIMIT %(limit)s

SELECT (SELECT count(*) FROM graph_node WHERE workspace_id = %(workspace)s) AS nodes,
       (SELECT count(*) FROM graph_edge WHERE workspace_id = %(workspace)s) AS edges,
       (SELECT count(*) FROM documents_document AS document
        WHERE document.is_current AND {document}) AS documents,
       (SELECT coalesce(sum(extraction.mentions), 0)::bigint
        FROM graph_extraction AS extraction
        JOIN documents_document AS document ON document.id = extraction.document_id
        WHERE document.is_current AND {document}) AS mentions

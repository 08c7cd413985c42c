"""Chunks against the documents that they are of, and their offsets against their texts."""

from documents.validation.base import Check, Scope, SqlProbe, execute

#: Reads every chunk's row once, without its text and vector.
_COPIES = """
    SELECT c.id,
           c.workspace_id <> d.workspace_id AS chunk_workspace,
           c.collection_id <> d.collection_id AS chunk_collection,
           c.access IS DISTINCT FROM d.access AS chunk_access,
           c.media_type <> d.media_type AS chunk_media_type,
           c.is_current <> d.is_current AS chunk_is_current,
           d.status = 'ready' AND c.embedding IS NULL AS chunk_without_vector,
           c.space_id <> k.space_id AND c.space_id <> ALL (k.former_spaces) AS chunk_space
    FROM documents_chunk c
    JOIN documents_document d ON d.id = c.document_id
    JOIN documents_collection k ON k.id = c.collection_id
    WHERE %(collection)s::bigint IS NULL
       OR c.collection_id = %(collection)s OR d.collection_id = %(collection)s
"""

#: Reads every chunk's text once, document by document.
_OFFSETS = """
    SELECT c.id,
           c."end" - c.start <> char_length(c.text) AS chunk_offsets,
           c.start < before.start AS chunk_order,
           c.start < before."end" AND c.start >= before.start
               AND left(c.text, shared.length)
                   <> substr(before.text, (c.start - before.start)::int + 1, shared.length)
               AS chunk_overlap
    FROM documents_chunk c
    LEFT JOIN documents_chunk before
        ON before.document_id = c.document_id AND before.ordinal = c.ordinal - 1
    CROSS JOIN LATERAL (
        SELECT (least(before."end", c."end") - c.start)::int AS length
    ) AS shared
    WHERE %(collection)s::bigint IS NULL OR c.collection_id = %(collection)s
"""

_COPY_AGAIN = """
    UPDATE documents_chunk c
    SET access = d.access, media_type = d.media_type, is_current = d.is_current
    FROM documents_document d
    WHERE d.id = c.document_id
      AND (%(collection)s::bigint IS NULL OR d.collection_id = %(collection)s)
      AND (c.access IS DISTINCT FROM d.access OR c.media_type <> d.media_type
           OR c.is_current <> d.is_current)
"""


def _copy_again(scope: Scope) -> int:
    return execute(_COPY_AGAIN, scope)


_DELETE_AND_INGEST = "Delete their documents and ingest them again."
_OVERWRITE = "Ingest their documents again with `--overwrite`."

PROBES = (
    SqlProbe(
        _COPIES,
        (
            Check(
                "chunk_workspace",
                "chunks",
                "are in another workspace than their document",
                _DELETE_AND_INGEST,
            ),
            Check(
                "chunk_collection",
                "chunks",
                "are in another collection than their document",
                _DELETE_AND_INGEST,
            ),
            Check(
                "chunk_access",
                "chunks",
                "have another access list than their document",
                "`validate --fix` gives them the document's.",
                _copy_again,
            ),
            Check(
                "chunk_media_type",
                "chunks",
                "have another media type than their document",
                "`validate --fix` gives them the document's.",
                _copy_again,
            ),
            Check(
                "chunk_is_current",
                "chunks",
                "are current where their document is not, or the other way round",
                "`validate --fix` gives them the document's.",
                _copy_again,
            ),
            Check(
                "chunk_without_vector",
                "chunks",
                "of ready documents have no vector",
                "`manage.py reindex --chunk-ids …` embeds them.",
            ),
            Check(
                "chunk_space",
                "chunks",
                "are in an embedding space that their collection does not search",
                "`manage.py reindex --chunk-ids …` embeds them in the collection's.",
            ),
        ),
    ),
    SqlProbe(
        _OFFSETS,
        (
            Check(
                "chunk_offsets",
                "chunks",
                "have offsets that are not as far apart as their text is long",
                _OVERWRITE,
            ),
            Check(
                "chunk_order", "chunks", "begin before the chunk that goes before them", _OVERWRITE
            ),
            Check(
                "chunk_overlap",
                "chunks",
                "share characters with the chunk before them that are not the same",
                _OVERWRITE,
            ),
        ),
    ),
)

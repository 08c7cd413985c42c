"""Vectors that can be compared with a question's."""

from documents.validation.base import Check, SqlProbe

#: Reads every vector, which are most of the table's bytes. pgvector itself keeps NaN out; a length
#: of zero, or beyond what its squares can hold, it does not.
_VECTORS = """
    SELECT c.id,
           vector_dims(c.embedding) <> s.dimensions AS vector_dimensions,
           NOT (vector_norm(c.embedding) > 0 AND vector_norm(c.embedding) < 'infinity')
               AS vector_unusable
    FROM documents_chunk c JOIN documents_embeddingspace s ON s.id = c.space_id
    WHERE c.embedding IS NOT NULL
      AND (%(collection)s::bigint IS NULL OR c.collection_id = %(collection)s)
"""

_CURE = "`manage.py reindex --chunk-ids …` embeds them anew."

PROBES = (
    SqlProbe(
        _VECTORS,
        (
            Check(
                "vector_dimensions",
                "chunks",
                "have a vector of other dimensions than their space",
                _CURE,
            ),
            Check(
                "vector_unusable",
                "chunks",
                "have a vector of zeros, NaN or infinity, which is near to nothing",
                _CURE,
            ),
        ),
    ),
)

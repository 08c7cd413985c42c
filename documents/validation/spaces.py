"""Ids of embedding spaces that no foreign key guards."""

from documents.validation.base import Check, Scope, SqlProbe, execute

_FORMER = """
    SELECT DISTINCT k.id, true AS former_space_missing
    FROM documents_collection k CROSS JOIN unnest(k.former_spaces) AS former (id)
    WHERE NOT EXISTS (SELECT FROM documents_embeddingspace s WHERE s.id = former.id)
      AND (%(collection)s::bigint IS NULL OR k.id = %(collection)s)
"""

_FORGET = """
    UPDATE documents_collection k
    SET former_spaces = ARRAY(
        SELECT former.id FROM unnest(k.former_spaces) AS former (id)
        JOIN documents_embeddingspace s ON s.id = former.id ORDER BY former.id
    )
    WHERE (%(collection)s::bigint IS NULL OR k.id = %(collection)s)
      AND EXISTS (
        SELECT FROM unnest(k.former_spaces) AS former (id)
        WHERE NOT EXISTS (SELECT FROM documents_embeddingspace s WHERE s.id = former.id)
      )
"""


def _forget(scope: Scope) -> int:
    return execute(_FORGET, scope)


PROBES = (
    SqlProbe(
        _FORMER,
        (
            Check(
                "former_space_missing",
                "collections",
                "search a former embedding space that is gone",
                "`validate --fix` forgets it.",
                _forget,
            ),
        ),
    ),
)

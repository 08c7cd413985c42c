"""What BM25 knows of a collection against its chunks."""

from documents.ingestion import statistics
from documents.models import Collection
from documents.validation.base import Check, Scope, SqlProbe

#: Reads every chunk's row once.
_LANGUAGES = """
    SELECT used.collection_id AS id, true AS statistics_language
    FROM (
        SELECT collection_id, language FROM documents_chunk
        WHERE %(collection)s::bigint IS NULL OR collection_id = %(collection)s
        GROUP BY collection_id, language
    ) AS used
    WHERE NOT EXISTS (
        SELECT FROM documents_lexicalstatistics s
        WHERE s.collection_id = used.collection_id AND s.language = used.language
    )
    GROUP BY used.collection_id
"""

#: Beat counts stale collections every ten minutes; while something changes it need not be done.
_STALE = """
    SELECT k.id, true AS statistics_stale
    FROM documents_collection k
    WHERE k.statistics_stale
      AND (%(collection)s::bigint IS NULL OR k.id = %(collection)s)
      AND NOT EXISTS (
        SELECT FROM documents_ingestionrun r
        WHERE r.collection_id = k.id AND r.finished_at IS NULL
      )
      AND NOT EXISTS (
        SELECT FROM documents_document d
        WHERE d.collection_id = k.id
          AND greatest(d.updated_at, d.indexed_at) > now() - interval '20 minutes'
      )
      AND EXISTS (SELECT FROM documents_chunk c WHERE c.collection_id = k.id)
"""

#: A sample of each collection that is not to be counted anyway: 20 of its words by the index, and
#: the words of the first chunks of 10 documents.
_FREQUENCIES = r"""
    SELECT k.id,
           EXISTS (
               SELECT FROM (
                   SELECT f.language, f.lexeme, f.chunk_count
                   FROM documents_lexemefrequency f WHERE f.collection_id = k.id
                   ORDER BY random() LIMIT 20
               ) AS word
               WHERE word.chunk_count <> (
                   SELECT count(*) FROM documents_chunk c
                   WHERE c.collection_id = k.id AND c.language = word.language AND c.is_current
                     AND c.search_vector @@ format(
                         '''%%s''', replace(replace(word.lexeme, '\', '\\'), '''', '''''')
                     )::tsquery
               )
           ) OR EXISTS (
               SELECT FROM (
                   SELECT d.id FROM documents_document d
                   WHERE d.collection_id = k.id AND d.is_current AND d.chunk_count > 0
                   ORDER BY random() LIMIT 10
               ) AS d
               JOIN documents_chunk c ON c.document_id = d.id AND c.ordinal = 0
               CROSS JOIN unnest(tsvector_to_array(c.search_vector)) AS word (lexeme)
               WHERE NOT EXISTS (
                   SELECT FROM documents_lexemefrequency f
                   WHERE f.collection_id = k.id AND f.language = c.language
                     AND f.lexeme = word.lexeme
               )
           ) AS statistics_disagree
    FROM documents_collection k
    WHERE NOT k.statistics_stale
      AND (%(collection)s::bigint IS NULL OR k.id = %(collection)s)
"""


def _refresh(scope: Scope) -> int:
    collections = Collection.objects.all()
    if scope.collection_id is not None:
        collections = collections.filter(pk=scope.collection_id)
    for collection in collections:
        statistics.refresh(collection)
    return len(collections)


_CURE = "`validate --fix` counts their words anew."

PROBES = (
    SqlProbe(
        _LANGUAGES,
        (
            Check(
                "statistics_language",
                "collections",
                "have chunks in a language that searches do not look for",
                _CURE,
                _refresh,
            ),
        ),
    ),
    SqlProbe(
        _STALE,
        (
            Check(
                "statistics_stale",
                "collections",
                "have changed long since their words were counted",
                f"Is a scheduler running? {_CURE}",
                _refresh,
            ),
        ),
    ),
    SqlProbe(
        _FREQUENCIES,
        (
            Check(
                "statistics_disagree",
                "collections",
                "have words in another number of chunks than was counted",
                _CURE,
                _refresh,
            ),
        ),
    ),
)

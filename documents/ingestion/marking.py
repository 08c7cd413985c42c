"""Telling of duplicates, when a run is over."""

from django.db import connection

from documents.models import IngestionRun

# The other documents with these bytes may be of a run that ends at the same time: whoever comes
# second sees the first one's.
_MARK = """
    WITH mine AS (
        SELECT id, collection_id, source_sha256 FROM documents_document
        WHERE id IN (SELECT document_id FROM documents_ingestionitem
                     WHERE run_id = %(run)s AND state = 'ready')
          AND is_current AND chunk_count > 0 AND source_sha256 <> '' AND duplicate_of_id IS NULL
    ), original AS (
        SELECT DISTINCT ON (mine.id) mine.id AS duplicate_id, document.id
        FROM mine JOIN documents_document AS document USING (collection_id, source_sha256)
        WHERE document.is_current AND document.status = 'ready' AND document.chunk_count > 0
          AND document.duplicate_of_id IS NULL
        ORDER BY mine.id, document.id IN (SELECT id FROM mine), document.id
    ), locked AS (
        SELECT document.id, original.id AS original_id
        FROM documents_document AS document JOIN original ON original.duplicate_id = document.id
        WHERE original.id <> document.id
        ORDER BY document.id FOR NO KEY UPDATE OF document
    )
    UPDATE documents_document AS document SET duplicate_of_id = locked.original_id
    FROM locked WHERE document.id = locked.id
"""


def mark_duplicates(run: IngestionRun) -> int:
    """Name the original of each document that the run made ready and whose bytes were there
    before; how many that are. Documents that lean are not among them: they name it already."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('duplicates', %s))", [run.collection_id]
        )
        cursor.execute(_MARK, {"run": run.pk})
        return int(cursor.rowcount)

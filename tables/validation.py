"""Consistency checks of tables that no constraint covers."""

from functools import partial

from django.db import connection, transaction

from documents.validation import Check, Scope, SqlProbe, execute, register_probes
from tables.models import Table
from tables.store import store_tables

_PLACES = """
    SELECT own.id,
           (own.workspace_id, own.collection_id) <> (document.workspace_id, document.collection_id)
               OR EXISTS (
                   SELECT FROM tables_columnblock AS block
                   WHERE block.table_id = own.id AND block.position = 0
                     AND (block.workspace_id, block.collection_id)
                         <> (own.workspace_id, own.collection_id)
               ) AS table_elsewhere,
           own.is_current <> document.is_current AS table_version
    FROM tables_table AS own
    JOIN documents_document AS document ON document.id = own.document_id
    WHERE %(collection)s::bigint IS NULL OR own.collection_id = %(collection)s
"""
_SET_CURRENT = """
    UPDATE tables_table AS own SET is_current = document.is_current
    FROM documents_document AS document
    WHERE document.id = own.document_id AND own.is_current <> document.is_current
      AND (%(collection)s::bigint IS NULL OR own.collection_id = %(collection)s)
"""
_ROWS = """
    SELECT own.id, true AS table_rows
    FROM tables_table AS own
    LEFT JOIN (
        SELECT table_id, sum(cardinality(starts)) AS rows
        FROM tables_columnblock WHERE position = 0 GROUP BY table_id
    ) AS held ON held.table_id = own.id
    WHERE own.row_count <> coalesce(held.rows, 0)
      AND (%(collection)s::bigint IS NULL OR own.collection_id = %(collection)s)
"""


def _read_again(statement: str, scope: Scope) -> int:
    """Delete the tables that the statement finds, and read those of their documents again."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(statement, scope.parameters)
            found = [row[0] for row in cursor.fetchall() if row[1]]
        tables = Table.objects.filter(pk__in=found)
        documents = sorted(set(tables.values_list("document", flat=True)))
        Table.objects.filter(document__in=documents).delete()
        store_tables(documents)
    return len(found)


_FIX = "`validate --fix` reads the tables of their documents again."

register_probes(
    [
        SqlProbe(
            _PLACES,
            (
                Check(
                    "table_elsewhere",
                    "tables",
                    "are in another workspace or collection than their document",
                    _FIX,
                    partial(_read_again, _PLACES),
                ),
                Check(
                    "table_version",
                    "tables",
                    "count as those of another version than their document is",
                    "`validate --fix` sets it.",
                    partial(execute, _SET_CURRENT),
                ),
            ),
        ),
        SqlProbe(
            _ROWS,
            (
                Check(
                    "table_rows",
                    "tables",
                    "say another number of rows than they have",
                    _FIX,
                    partial(_read_again, _ROWS),
                ),
            ),
        ),
    ]
)

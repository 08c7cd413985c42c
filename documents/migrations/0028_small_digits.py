"""Words with digits above or below the line are found as they are typed: `co2` finds CO₂, `m2` m²."""

from typing import Any

from django.db import connection, migrations

from common.rls import bypass_rls
from documents.lexical_index import index_all_pending, rebuild_lexical_index
from documents.migrations._word_forms import FUNCTIONS, SMALL_DIGITS

_COLLECTIONS = """
    SELECT DISTINCT collection_id FROM documents_chunk
    WHERE (octet_length(text) <> length(text) OR octet_length(context) <> length(context))
          AND context || text ~ %s
    ORDER BY 1
"""


def index_small_digits(apps: Any, schema_editor: Any) -> None:
    """Index the collections again that have such a word."""
    with connection.cursor() as cursor, bypass_rls():
        cursor.execute(_COLLECTIONS, [f"[{SMALL_DIGITS[0]}\u00b5\u2126\u212a\u212b]"])
        collection_ids = [pk for (pk,) in cursor.fetchall()]
    if collection_ids:
        index_all_pending()
    for collection_id in collection_ids:
        rebuild_lexical_index(collection_id)


class Migration(migrations.Migration):
    atomic = False  # a transaction for each collection, and all of it may run again
    dependencies = [("documents", "0027_collection_vectors")]

    operations = [
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunPython(index_small_digits, migrations.RunPython.noop),
    ]

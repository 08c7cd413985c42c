"""The former inverted index and its word counts go; the release before cannot search without them.

What it wrote since the migration before is indexed first.
"""

from typing import Any

from django.db import migrations

from common.migration_operations import InOneTransaction
from documents import lexical_index


def index_chunks(apps: Any, schema_editor: Any) -> None:
    lexical_index.index_all_pending()


def count_again(apps: Any, schema_editor: Any) -> None:
    """Going back, the former statistics are counted anew."""
    apps.get_model("documents", "Collection").objects.update(statistics_stale=True)


def is_gone(cursor: Any) -> bool:
    cursor.execute("SELECT to_regclass('documents_lexicalstatistics') IS NULL")
    return bool(cursor.fetchone()[0])


class Migration(migrations.Migration):
    atomic = False
    #: Read by `manage.py upgrade` and by the check of migrations.
    needs_stopped_site = True
    dependencies = [("documents", "0014_lexical_index")]

    operations = [
        migrations.RunPython(index_chunks, migrations.RunPython.noop),
        InOneTransaction(
            [
                migrations.RunPython(migrations.RunPython.noop, count_again),
                migrations.RemoveIndex(model_name="chunk", name="chunk_search_vector_index"),
                migrations.DeleteModel(name="LexemeFrequency"),
                migrations.DeleteModel(name="LexicalStatistics"),
                migrations.RemoveField(model_name="collection", name="statistics_stale"),
            ],
            is_done=is_gone,
        ),
    ]

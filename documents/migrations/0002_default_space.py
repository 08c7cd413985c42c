"""The default embedding space, all-MiniLM-L6-v2, with its HNSW index, and inline vectors."""

from typing import Any

from django.db import migrations

from documents.spaces import HNSW_DEFAULTS, SpaceSql

DEFAULT = SpaceSql(space_id=1, dimensions=384)


def create_default_space(apps: Any, schema_editor: Any) -> None:
    space = apps.get_model("documents", "EmbeddingSpace")
    space.objects.create(
        id=DEFAULT.space_id,
        name="minilm-384",
        model_name="all-MiniLM-L6-v2",
        dimensions=DEFAULT.dimensions,
        index_options=HNSW_DEFAULTS,
    )
    # The row was given its id, so the sequence must be told.
    schema_editor.execute(
        "SELECT setval(pg_get_serial_sequence('documents_embeddingspace', 'id'), 1)"
    )


def delete_default_space(apps: Any, schema_editor: Any) -> None:
    apps.get_model("documents", "EmbeddingSpace").objects.filter(id=DEFAULT.space_id).delete()


# Vectors stay in the row: an exact scan that fetched each from the TOAST table took 3.6 times as
# long (measured, 10,664 chunks). MAIN and not PLAIN, so that a vector too large for a page still
# goes out of line.
INLINE = "ALTER TABLE documents_chunk ALTER COLUMN embedding SET STORAGE MAIN"
OUT_OF_LINE = "ALTER TABLE documents_chunk ALTER COLUMN embedding SET STORAGE EXTERNAL"


class Migration(migrations.Migration):
    dependencies = [("documents", "0001_initial")]

    operations = [
        migrations.RunPython(create_default_space, delete_default_space),
        migrations.RunSQL(INLINE, OUT_OF_LINE),
        migrations.RunSQL(DEFAULT.create_index(), DEFAULT.drop_index()),
    ]

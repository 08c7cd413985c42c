"""The default embedding space, all-MiniLM-L6-v2, and its HNSW index."""

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


class Migration(migrations.Migration):
    dependencies = [("documents", "0001_initial")]

    operations = [
        migrations.RunPython(create_default_space, delete_default_space),
        migrations.RunSQL(DEFAULT.create_index(**HNSW_DEFAULTS), DEFAULT.drop_index()),
    ]

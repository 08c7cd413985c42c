"""The default space of a new site has an index of half precision. A site that has vectors keeps its
index, until its passages move into another space (`manage.py reembed`)."""

from typing import Any

from django.db import migrations

from common.rls import bypass_rls
from documents.spaces import SpaceSql


def use_half_precision(apps: Any, schema_editor: Any) -> None:
    _replace_index(apps, schema_editor, "full", "half")


def use_full_precision(apps: Any, schema_editor: Any) -> None:
    _replace_index(apps, schema_editor, "half", "full")


def _replace_index(apps: Any, schema_editor: Any, before: str, after: str) -> None:
    spaces = apps.get_model("documents", "EmbeddingSpace").objects
    space = spaces.filter(is_default=True, precision=before, index_type="hnsw").first()
    if space is None:
        return
    with bypass_rls():
        if apps.get_model("documents", "Chunk").objects.filter(space_id=space.pk).exists():
            return
    spaces.filter(pk=space.pk).update(precision=after)
    sql = SpaceSql(
        space_id=space.pk,
        dimensions=space.dimensions,
        metric=space.metric,
        precision=after,
        options=space.index_options,
    )
    schema_editor.execute(sql.drop_index())
    schema_editor.execute(sql.create_index())


class Migration(migrations.Migration):
    dependencies = [("documents", "0028_small_digits")]

    operations = [migrations.RunPython(use_half_precision, use_full_precision)]

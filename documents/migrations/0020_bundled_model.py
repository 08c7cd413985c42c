"""The default space of a new site is that of the bundled model for English. A site that has vectors
keeps its own; its new collections get another one (documents.services.spaces.default_space)."""

from typing import Any

from django.conf import settings
from django.db import migrations

FORMER = {"name": "minilm-384", "model_name": "all-MiniLM-L6-v2", "dimensions": 384}
BUNDLED = {"name": "bge-small-en-384", "model_name": "bge-small-en-v1.5", "dimensions": 384}
#: Tables with vectors; the first migration of memory may come later.
WITH_VECTORS = ("documents_chunk", "memory_context", "memory_fact")


def adopt_bundled_model(apps: Any, schema_editor: Any) -> None:
    default = settings.INFERENCE["embedder"]["default"]
    if default == {"BACKEND": "inference.backends.onnx_local.OnnxEmbedder", "OPTIONS": {}}:
        _rename(apps, schema_editor, FORMER, BUNDLED)


def adopt_former_model(apps: Any, schema_editor: Any) -> None:
    _rename(apps, schema_editor, BUNDLED, FORMER)


def _rename(apps: Any, schema_editor: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
    spaces = apps.get_model("documents", "EmbeddingSpace").objects
    found = spaces.filter(**before).first()
    if found is None or spaces.count() > 1 or _has_vectors(schema_editor.connection):
        return
    spaces.filter(pk=found.pk).update(**after)


def _has_vectors(connection: Any) -> bool:
    with connection.cursor() as cursor:
        for table in WITH_VECTORS:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [table])
            if not cursor.fetchone()[0]:
                continue
            cursor.execute(
                f"SELECT EXISTS (SELECT FROM {table} WHERE embedding IS NOT NULL)"  # noqa: S608
            )
            if cursor.fetchone()[0]:
                return True
    return False


class Migration(migrations.Migration):
    dependencies = [("documents", "0019_models_chosen_by_hand")]

    operations = [migrations.RunPython(adopt_bundled_model, adopt_former_model)]

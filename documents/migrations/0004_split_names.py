"""File names, host names and dotted identifiers are found by their parts.

Writes the chunk table anew, and the words of every collection are counted again.
"""

from typing import Any

import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.db import migrations, models

import common.fields
import common.search_vector

INDEX = "chunk_search_vector_index"


def vector(context: Any, text: Any) -> models.GeneratedField:
    return models.GeneratedField(
        db_persist=True,
        expression=models.Func(
            common.fields.ToTSVector("language", context, weight="A"),
            common.fields.ToTSVector("language", text, weight="D"),
            arg_joiner=" || ",
            output_field=django.contrib.postgres.search.SearchVectorField(),
            template="%(expressions)s",
        ),
        output_field=django.contrib.postgres.search.SearchVectorField(),
    )


def count_again(apps: Any, schema_editor: Any) -> None:
    apps.get_model("documents", "Collection").objects.update(statistics_stale=True)


class Migration(migrations.Migration):
    dependencies = [("documents", "0003_reembedding")]

    operations = [
        migrations.RunPython(count_again, count_again),
        migrations.RemoveIndex("chunk", INDEX),
        migrations.RemoveField("chunk", "search_vector"),
        migrations.AddField(
            "chunk",
            "search_vector",
            vector(
                common.search_vector.SplitNames("context"),
                common.search_vector.SplitNames("text"),
            ),
        ),
        migrations.AddIndex(
            "chunk",
            django.contrib.postgres.indexes.GinIndex(
                models.F("search_vector"), fastupdate=False, name=INDEX
            ),
        ),
    ]

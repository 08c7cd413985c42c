"""Words that are spelt alike are found by an index, for “did you mean”."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("documents", "0007_words_without_spaces")]

    operations = [
        TrigramExtension(),
        migrations.AddIndex(
            "lexemefrequency",
            django.contrib.postgres.indexes.GinIndex(
                fields=["lexeme"],
                name="lexemefrequency_similar_index",
                opclasses=["gin_trgm_ops"],
                fastupdate=False,
            ),
        ),
    ]

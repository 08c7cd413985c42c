"""Equality of metadata is looked up, whatever its key: `metadata @@ '$."year" == 2020'`."""

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0004_split_names"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="chunk",
            index=django.contrib.postgres.indexes.GinIndex(
                fastupdate=False,
                fields=["metadata"],
                name="chunk_metadata_index",
                opclasses=["jsonb_path_ops"],
            ),
        ),
    ]

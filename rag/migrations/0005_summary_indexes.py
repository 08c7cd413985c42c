"""Indexes of summaries: by document, and of those that are still to be written."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("rag", "0004_summary")]

    operations = [
        AddIndexConcurrently(
            "summary",
            django.contrib.postgres.indexes.GinIndex(
                fields=["documents"], name="summary_documents_index"
            ),
        ),
        AddIndexConcurrently(
            "summary",
            models.Index(
                condition=models.Q(("state__in", ["waiting", "running"])),
                fields=["created_at"],
                name="summary_unfinished_index",
            ),
        ),
    ]

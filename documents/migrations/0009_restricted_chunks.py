"""Whether a collection holds chunks with an access list is looked up in an index."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("documents", "0008_similar_words")]

    operations = [
        migrations.AddIndex(
            "chunk",
            models.Index(
                fields=["collection"],
                condition=models.Q(access__isnull=False),
                name="chunk_restricted_index",
            ),
        ),
    ]

"""Vectors of long documents are kept as they are made, and items tell how far they are."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_workspace_shard"),
        ("documents", "0024_word_forms"),
    ]

    operations = [
        migrations.AddField(
            model_name="ingestionitem",
            name="chunks_embedded",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="Chunks of a long document that have their vectors by now.",
            ),
        ),
        migrations.AddField(
            model_name="ingestionitem",
            name="chunks_to_embed",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="Chunks of a long document to embed, all in all.",
            ),
        ),
        migrations.CreateModel(
            name="StagedVectors",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "digests",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        help_text="Content hashes of the chunks.",
                        size=None,
                    ),
                ),
                (
                    "vectors",
                    models.BinaryField(
                        help_text="float32 (chunks, dimensions), in the order of the hashes."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="staged_vectors",
                        to="documents.document",
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="documents.embeddingspace",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "staged vectors",
                "verbose_name_plural": "staged vectors",
                "ordering": ["id"],
            },
        ),
        # Numbers that no compression makes smaller.
        migrations.RunSQL(
            "ALTER TABLE documents_stagedvectors ALTER COLUMN vectors SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]

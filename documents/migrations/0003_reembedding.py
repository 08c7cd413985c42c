"""Re-embedding: which spaces a collection had, which one new collections use, and the moves."""

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


def choose_default(apps: Any, schema_editor: Any) -> None:
    space = apps.get_model("documents", "EmbeddingSpace")
    first = space.objects.filter(state="live").order_by("id").first()
    if first is not None:
        first.is_default = True
        first.save(update_fields=["is_default"])


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0002_default_space"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Reembedding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("stopped", "Stopped"),
                            ("failed", "Failed"),
                            ("done", "Done"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                (
                    "total",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Chunks to move, at the start."
                    ),
                ),
                (
                    "done",
                    models.PositiveBigIntegerField(default=0, help_text="Chunks moved since then."),
                ),
                (
                    "sources",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        blank=True,
                        default=list,
                        help_text="Spaces that chunks came from.",
                        size=None,
                    ),
                ),
                (
                    "refused",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        blank=True,
                        default=list,
                        editable=False,
                        help_text="Chunks whose text the model gives no usable vector for.",
                        size=None,
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("token", models.UUIDField(editable=False, null=True)),
                (
                    "seen_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "started_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("finished_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "verbose_name": "re-embedding",
                "ordering": ["-id"],
            },
        ),
        migrations.AddField(
            model_name="collection",
            name="former_spaces",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                blank=True,
                default=list,
                editable=False,
                help_text="Spaces that still hold chunks of it while it is re-embedded: searched too.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="embeddingspace",
            name="is_default",
            field=models.BooleanField(
                default=False, help_text="New collections use it.", verbose_name="default"
            ),
        ),
        migrations.AlterField(
            model_name="embeddingspace",
            name="embedder",
            field=models.CharField(
                default="default",
                help_text="Its alias: “default”, or one of EMBEDDERS.",
                max_length=63,
            ),
        ),
        migrations.AlterField(
            model_name="embeddingspace",
            name="index_type",
            field=models.CharField(
                choices=[("hnsw", "HNSW"), ("ivfflat", "IVFFlat"), ("none", "None (exact)")],
                default="hnsw",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="embeddingspace",
            name="metric",
            field=models.CharField(
                choices=[("cosine", "Cosine"), ("l2", "L2"), ("ip", "Inner product")],
                default="cosine",
                max_length=10,
            ),
        ),
        migrations.RunPython(choose_default, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="embeddingspace",
            name="state",
            field=models.CharField(
                choices=[("live", "Live"), ("retired", "Retired")], default="live", max_length=10
            ),
        ),
        migrations.AddConstraint(
            model_name="embeddingspace",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_default", True)),
                fields=("is_default",),
                name="embeddingspace_default_unique",
            ),
        ),
        migrations.AddField(
            model_name="reembedding",
            name="collection",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: all.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="documents.collection",
            ),
        ),
        migrations.AddField(
            model_name="reembedding",
            name="created_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="reembedding",
            name="target",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reembeddings",
                to="documents.embeddingspace",
            ),
        ),
        migrations.AddConstraint(
            model_name="reembedding",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "done"), _negated=True),
                fields=("target", "collection"),
                name="reembedding_target_collection_unique",
                nulls_distinct=False,
            ),
        ),
    ]

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_api_key"),
        ("documents", "0012_collection_facets"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="document",
            name="corrections",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="What people set here: `title`, `metadata`, `without`. It goes before all"
                " that a source says, also when that is ingested again.",
            ),
        ),
        migrations.CreateModel(
            name="ChunkEdit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "chunk",
                    models.BigIntegerField(help_text="Id of the passage; it may be gone since."),
                ),
                (
                    "start",
                    models.PositiveBigIntegerField(
                        help_text="Offset of the passage when it was changed."
                    ),
                ),
                ("before", models.TextField()),
                ("after", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("applied", "Applied"),
                            ("conflict", "not applied: the source has changed there"),
                            ("undone", "Undone"),
                            ("closed", "Closed"),
                        ],
                        default="applied",
                        max_length=8,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="edits",
                        to="documents.document",
                    ),
                ),
                (
                    "settled_by",
                    models.ForeignKey(
                        blank=True,
                        help_text="Who undid or dismissed it.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
            options={"ordering": ["-id"]},
        ),
    ]

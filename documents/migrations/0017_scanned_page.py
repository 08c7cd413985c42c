"""What OCR read on pages that have no text of their own, and how far it is."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_change"),
        ("documents", "0016_collection_fusion"),
    ]

    operations = [
        migrations.AddField(
            model_name="ingestionitem",
            name="pages_read",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="Pages that OCR has read."
            ),
        ),
        migrations.AddField(
            model_name="ingestionitem",
            name="pages_to_read",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="Pages for OCR, all in all."
            ),
        ),
        migrations.CreateModel(
            name="ScannedPage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source_sha256", models.CharField(max_length=64)),
                ("page", models.PositiveIntegerField(help_text="From 1.")),
                ("engine", models.CharField(max_length=40)),
                ("text", models.TextField(blank=True)),
                (
                    "lines",
                    models.JSONField(
                        default=list,
                        help_text="In reading order: `box` (left, top, right, bottom as fractions of the shown page), `confidence`, and `words`, each a text and the four numbers of its box.",
                    ),
                ),
                ("confidence", models.FloatField(help_text="Mean over its characters, 0 to 1.")),
                (
                    "rotation",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Degrees clockwise that set the page upright."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scanned_pages",
                        to="documents.document",
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
                "ordering": ["document", "page"],
                "indexes": [
                    models.Index(fields=["source_sha256", "page"], name="scannedpage_source_index")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("document", "source_sha256", "page", "workspace"),
                        name="scannedpage_document_source_page_unique",
                    )
                ],
            },
        ),
    ]

"""Summaries of documents, which go with any of their documents and with its text."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

# As rag_forget_documents, which empties answers: no way of deleting or changing a document goes
# around it. The first ingestion of a document changes nothing that could be in a summary.
FORGET = """
CREATE FUNCTION rag_forget_deleted_summaries() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM rag_summary WHERE documents && ARRAY(SELECT gone.id FROM gone);
    RETURN NULL;
END $$;
CREATE FUNCTION rag_forget_changed_summaries() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM rag_summary WHERE documents && ARRAY[NEW.id];
    RETURN NULL;
END $$;
CREATE TRIGGER rag_forget_deleted_summaries AFTER DELETE ON documents_document
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rag_forget_deleted_summaries();
CREATE TRIGGER rag_forget_changed_summaries AFTER UPDATE OF content_sha256, title
ON documents_document FOR EACH ROW
WHEN (OLD.content_sha256 <> '' AND (OLD.content_sha256, OLD.title)
      IS DISTINCT FROM (NEW.content_sha256, NEW.title))
EXECUTE FUNCTION rag_forget_changed_summaries();
"""
KEEP = """
DROP TRIGGER rag_forget_changed_summaries ON documents_document;
DROP TRIGGER rag_forget_deleted_summaries ON documents_document;
DROP FUNCTION rag_forget_changed_summaries();
DROP FUNCTION rag_forget_deleted_summaries();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_change"),
        ("rag", "0003_forget_as_the_owner"),
    ]

    operations = [
        migrations.CreateModel(
            name="Summary",
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
                    "fingerprint",
                    models.CharField(help_text="SHA-256 of its passages.", max_length=64),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("about", "what it is about"), ("summary", "Summary")],
                        max_length=7,
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True, help_text="None: sentences are quoted.", max_length=200
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="done",
                        max_length=7,
                    ),
                ),
                ("text", models.TextField(blank=True)),
                ("citations", models.JSONField(blank=True, default=list)),
                (
                    "documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, editable=False, size=None
                    ),
                ),
                (
                    "chunks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        editable=False,
                        help_text="The passages that were read, the most central ones of a long text.",
                        size=None,
                    ),
                ),
                (
                    "passage_count",
                    models.PositiveIntegerField(default=0, help_text="Of the whole text."),
                ),
                ("calls_done", models.PositiveSmallIntegerField(default=0)),
                ("calls_total", models.PositiveSmallIntegerField(default=0)),
                ("error_code", models.CharField(blank=True, max_length=40)),
                ("error", models.TextField(blank=True)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
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
                "verbose_name_plural": "summaries",
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["documents"], name="summary_documents_index"
                    ),
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "running"])),
                        fields=["created_at"],
                        name="summary_unfinished_index",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "fingerprint", "kind", "model"),
                        name="summary_workspace_fingerprint_kind_model_unique",
                    )
                ],
            },
        ),
        migrations.RunSQL(FORGET, KEEP),
    ]

"""The search log and judgements; what is deleted elsewhere leaves the log by triggers."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# By statement and in the database, so that no way of deleting goes around it.
FORGET_DOCUMENTS = """
CREATE FUNCTION search_forget_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE search_searchlog AS log
    SET documents = ARRAY(
        SELECT listed.id FROM unnest(log.documents) WITH ORDINALITY AS listed (id, place)
        WHERE listed.id NOT IN (SELECT gone.id FROM gone) ORDER BY listed.place
    )
    WHERE log.documents && ARRAY(SELECT gone.id FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER searchlog_forget_documents AFTER DELETE ON documents_document
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION search_forget_documents();
"""

FORGET_COLLECTIONS = """
CREATE FUNCTION search_forget_collections() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM search_searchlog
    WHERE collections <> '{}' AND collections <@ ARRAY(SELECT gone.id FROM gone);
    UPDATE search_searchlog AS log
    SET collections = ARRAY(
        SELECT listed.id FROM unnest(log.collections) AS listed (id)
        WHERE listed.id NOT IN (SELECT gone.id FROM gone) ORDER BY listed.id
    )
    WHERE log.collections && ARRAY(SELECT gone.id FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER searchlog_forget_collections AFTER DELETE ON documents_collection
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION search_forget_collections();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("documents", "0006_collection_search"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Judgement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("question", models.TextField()),
                (
                    "question_sha256",
                    models.CharField(
                        editable=False,
                        help_text="Of the question without regard to case.",
                        max_length=64,
                    ),
                ),
                (
                    "grade",
                    models.PositiveSmallIntegerField(
                        choices=[(2, "Pinned"), (1, "Good"), (0, "Bad")]
                    ),
                ),
                ("note", models.TextField(blank=True)),
                (
                    "chunk",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="The passage that was shown when it was judged.",
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="documents.chunk",
                        verbose_name="passage",
                    ),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="documents.collection",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="documents.document",
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
                        verbose_name="judged by",
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
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["workspace"], name="judgement_workspace_index")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("collection", "question_sha256", "document", "workspace"),
                        name="judgement_question_document_unique",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("grade__in", [0, 1, 2])), name="judgement_grade_check"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchLog",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("query", models.TextField(verbose_name="question")),
                ("mode", models.CharField(max_length=10)),
                (
                    "filter",
                    models.JSONField(blank=True, help_text="In JSON form. Empty: none.", null=True),
                ),
                (
                    "collections",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        help_text="Ids of those that were searched.",
                        size=None,
                    ),
                ),
                (
                    "documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        help_text="Ids of the best ones found, in order.",
                        size=None,
                    ),
                ),
                ("total", models.PositiveIntegerField(help_text="Hits that were ranked.")),
                (
                    "lexical_total",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Passages found by words. Empty: words did not count.",
                        null=True,
                    ),
                ),
                (
                    "degraded",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20),
                        default=list,
                        help_text="What should have worked.",
                        size=None,
                    ),
                ),
                ("milliseconds", models.FloatField()),
                (
                    "source",
                    models.CharField(
                        choices=[("web", "Web"), ("api", "API"), ("command", "Command")],
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
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
            options={
                "verbose_name": "logged search",
                "verbose_name_plural": "logged searches",
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["created_at"], name="searchlog_created_at_index"),
                    models.Index(
                        fields=["workspace", "created_at"], name="searchlog_workspace_index"
                    ),
                    models.Index(
                        condition=models.Q(("total", 0)),
                        fields=["workspace", "created_at"],
                        name="searchlog_found_nothing_index",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["documents"], name="searchlog_documents_index"
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            FORGET_DOCUMENTS,
            "DROP TRIGGER searchlog_forget_documents ON documents_document;"
            " DROP FUNCTION search_forget_documents();",
        ),
        migrations.RunSQL(
            FORGET_COLLECTIONS,
            "DROP TRIGGER searchlog_forget_collections ON documents_collection;"
            " DROP FUNCTION search_forget_collections();",
        ),
    ]

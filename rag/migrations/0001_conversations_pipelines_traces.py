"""Conversations, pipelines and traces; what quotes a deleted document is emptied by a trigger."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# In the database and by statement, so that no way of deleting a document goes around it: what
# quotes it goes in the same transaction.
FORGET = """
CREATE FUNCTION rag_forget_documents() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT gone.id FROM gone);
BEGIN
    UPDATE rag_message
    SET state = 'removed', content = '', passages = '[]', citations = '[]', verdict = '{}',
        memory = NULL, error = '', documents = '{}'
    WHERE documents && ids;
    WITH emptied AS (
        UPDATE rag_trace
        SET answer = '', error = '', documents = '{}', removed_at = now()
        WHERE documents && ids
        RETURNING id
    )
    UPDATE rag_span SET input = '', output = '', error = ''
    FROM emptied WHERE rag_span.trace_id = emptied.id;
    RETURN NULL;
END $$;
CREATE TRIGGER rag_forget_documents AFTER DELETE ON documents_document
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rag_forget_documents();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0002_idempotency_record"),
        ("documents", "0011_graph_extraction"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("title", models.CharField(blank=True, max_length=200)),
                (
                    "collections",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SlugField(max_length=63),
                        blank=True,
                        default=list,
                        help_text="Slugs of those that were asked last. None: all.",
                        size=None,
                    ),
                ),
                (
                    "pipeline",
                    models.CharField(blank=True, help_text="That was asked last.", max_length=63),
                ),
                (
                    "user",
                    models.ForeignKey(
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
                "ordering": ["-updated_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Pipeline",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("slug", models.SlugField(max_length=63)),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                (
                    "definition",
                    models.JSONField(help_text="Nodes and edges: docs/reference/pipelines.md."),
                ),
                ("version", models.PositiveIntegerField(default=1)),
                (
                    "changed_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
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
            options={
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="Trace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("pipeline", models.CharField(max_length=63)),
                (
                    "version",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Of the pipeline. Empty: a template, or one of no name.",
                        null=True,
                    ),
                ),
                ("definition", models.JSONField(blank=True, default=dict)),
                ("question", models.TextField(blank=True)),
                ("answer", models.TextField(blank=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("timed_out", "timed out"),
                        ],
                        default="running",
                        max_length=9,
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("input_tokens", models.PositiveIntegerField(default=0)),
                ("output_tokens", models.PositiveIntegerField(default=0)),
                ("error_code", models.CharField(blank=True, max_length=40)),
                ("error", models.TextField(blank=True)),
                (
                    "documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, editable=False, size=None
                    ),
                ),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
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
                "ordering": ["-started_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Span",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("node", "Node"), ("model", "model call"), ("tool", "tool call")],
                        max_length=5,
                    ),
                ),
                (
                    "node",
                    models.CharField(help_text="Id of the node that it belongs to.", max_length=63),
                ),
                (
                    "type",
                    models.CharField(
                        help_text="Of the node; the model's or tool's name.", max_length=63
                    ),
                ),
                ("iteration", models.PositiveIntegerField(default=1)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="done",
                        max_length=9,
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("input", models.TextField(blank=True)),
                ("output", models.TextField(blank=True)),
                ("is_cut", models.BooleanField(default=False)),
                ("input_tokens", models.PositiveIntegerField(default=0)),
                ("output_tokens", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True)),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="children",
                        to="rag.span",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.workspace",
                    ),
                ),
                (
                    "trace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="spans",
                        to="rag.trace",
                    ),
                ),
            ],
            options={
                "ordering": ["trace", "ordinal"],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "User"), ("assistant", "Assistant")], max_length=9
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "being answered"),
                            ("complete", "Complete"),
                            ("stopped", "Stopped"),
                            ("failed", "Failed"),
                            ("removed", "removed with a document"),
                        ],
                        default="complete",
                        max_length=8,
                    ),
                ),
                ("content", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("generator", models.CharField(blank=True, max_length=10)),
                ("pipeline", models.CharField(blank=True, max_length=63)),
                (
                    "passages",
                    models.JSONField(
                        blank=True, default=list, help_text="What was found, without the texts."
                    ),
                ),
                ("citations", models.JSONField(blank=True, default=list)),
                ("verdict", models.JSONField(blank=True, default=dict)),
                ("memory", models.JSONField(blank=True, help_text="What memory added.", null=True)),
                (
                    "degraded",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("finish_reason", models.CharField(blank=True, max_length=10)),
                ("error_code", models.CharField(blank=True, max_length=40)),
                ("error", models.TextField(blank=True)),
                ("input_tokens", models.PositiveIntegerField(default=0)),
                ("output_tokens", models.PositiveIntegerField(default=0)),
                ("elapsed_ms", models.FloatField(blank=True, null=True)),
                ("first_token_ms", models.FloatField(blank=True, null=True)),
                (
                    "documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, editable=False, size=None
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="rag.conversation",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.workspace",
                    ),
                ),
                (
                    "trace",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="messages",
                        to="rag.trace",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                fields=["workspace", "user", "-updated_at"], name="conversation_recent_index"
            ),
        ),
        migrations.AddConstraint(
            model_name="pipeline",
            constraint=models.UniqueConstraint(
                fields=("workspace", "slug"), name="pipeline_workspace_slug_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(
                fields=["workspace", "user", "-started_at"], name="trace_recent_index"
            ),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(
                fields=["workspace", "pipeline", "-started_at"], name="trace_pipeline_index"
            ),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=models.Index(fields=["started_at"], name="trace_age_index"),
        ),
        migrations.AddIndex(
            model_name="trace",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["documents"], name="trace_documents_index"
            ),
        ),
        migrations.AddConstraint(
            model_name="span",
            constraint=models.UniqueConstraint(
                fields=("trace", "ordinal", "workspace"), name="span_trace_ordinal_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["documents"], name="message_documents_index"
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("state", "running")),
                fields=["created_at"],
                name="message_running_index",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["user", "assistant"])), name="message_role_check"
            ),
        ),
        migrations.RunSQL(
            FORGET,
            "DROP TRIGGER rag_forget_documents ON documents_document;"
            " DROP FUNCTION rag_forget_documents();",
        ),
    ]

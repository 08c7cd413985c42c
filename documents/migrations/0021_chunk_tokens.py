"""Tokens of passages, and which documents have theirs."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from common.migration_operations import InOneTransaction, create_index_concurrently


def has_column(cursor: Any) -> bool:
    cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_attribute WHERE attname = 'tokens_model'"
        " AND attrelid = 'documents_document'::regclass AND NOT attisdropped)"
    )
    return bool(cursor.fetchone()[0])


def create_index(apps: Any, schema_editor: Any) -> None:
    create_index_concurrently(
        schema_editor.connection,
        name="document_tokens_model_index",
        table="documents_document",
        columns="tokens_model",
        where="chunk_count > 0 AND is_current AND status = 'ready'",
    )


def drop_index(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS document_tokens_model_index")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0004_change"), ("documents", "0020_bundled_model")]

    operations = [
        InOneTransaction(
            [
                migrations.CreateModel(
                    name="ChunkTokens",
                    fields=[
                        (
                            "chunk",
                            models.OneToOneField(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                primary_key=True,
                                related_name="+",
                                serialize=False,
                                to="documents.chunk",
                            ),
                        ),
                        (
                            "model",
                            models.CharField(
                                help_text="Name of the token encoder.", max_length=200
                            ),
                        ),
                        ("content_sha256", models.CharField(max_length=64)),
                        (
                            "bits",
                            models.BinaryField(
                                default=bytes, help_text="A bit a dimension, token after token."
                            ),
                        ),
                        (
                            "starts",
                            models.BinaryField(
                                default=bytes,
                                help_text="Offset of each token in the text, 32 bits,"
                                " little-endian; -1 in title and headings.",
                            ),
                        ),
                        (
                            "ends",
                            models.BinaryField(
                                default=bytes, help_text="Offsets behind the tokens, likewise."
                            ),
                        ),
                        ("attempts", models.PositiveSmallIntegerField(default=0)),
                        ("token", models.UUIDField(blank=True, editable=False, null=True)),
                        ("leased_until", models.DateTimeField(blank=True, null=True)),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="accounts.workspace",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "tokens of a passage",
                        "verbose_name_plural": "tokens of a passage",
                    },
                ),
                # Chunks are removed by the thousand without Django's eyes. Signs of states hold
                # nothing that pglz could compress.
                migrations.RunSQL(
                    "ALTER TABLE documents_chunktokens ADD CONSTRAINT"
                    " documents_chunktokens_chunk_id_cascade FOREIGN KEY (chunk_id)"
                    " REFERENCES documents_chunk (id) ON DELETE CASCADE;"
                    "ALTER TABLE documents_chunktokens ALTER COLUMN bits SET STORAGE EXTERNAL",
                    migrations.RunSQL.noop,
                ),
                migrations.AddField(
                    model_name="document",
                    name="tokens_model",
                    field=models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="The token encoder that has read all of its passages.",
                        max_length=200,
                    ),
                ),
            ],
            is_done=has_column,
        ),
        migrations.RunPython(create_index, drop_index),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddIndex(
                    model_name="document",
                    index=models.Index(
                        condition=models.Q(
                            ("chunk_count__gt", 0), ("is_current", True), ("status", "ready")
                        ),
                        fields=["tokens_model"],
                        name="document_tokens_model_index",
                    ),
                ),
            ],
        ),
    ]

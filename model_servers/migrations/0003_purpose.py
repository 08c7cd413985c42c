"""Embedders and rerankers beside chat models, with a default for each of these purposes."""

from typing import Any

from django.db import migrations, models

from common.migration_operations import InOneTransaction, create_index_concurrently

FORMER, INDEX = "modelconnection_default_unique", "modelconnection_purpose_default_unique"
TABLE = "model_servers_modelconnection"


def has_column(cursor: Any) -> bool:
    cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_attribute WHERE attname = 'purpose'"
        " AND attrelid = %s::regclass AND NOT attisdropped)",
        [TABLE],
    )
    return bool(cursor.fetchone()[0])


def replace_index(apps: Any, schema_editor: Any) -> None:
    change = {"name": INDEX, "table": TABLE, "columns": "purpose", "where": "is_default"}
    create_index_concurrently(schema_editor.connection, **change, is_unique=True)
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {FORMER}")


def restore_index(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(f"DELETE FROM {TABLE} WHERE purpose <> 'chat'")  # noqa: S608 - a constant
    change = {"name": FORMER, "table": TABLE, "columns": "is_default", "where": "is_default"}
    create_index_concurrently(schema_editor.connection, **change, is_unique=True)
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0008_workspace_shard"), ("model_servers", "0002_usage")]

    operations = [
        InOneTransaction(
            [
                migrations.AddField(
                    "modelconnection",
                    "dimensions",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Of an embedder: the length of its vectors.",
                        null=True,
                    ),
                ),
                migrations.AddField(
                    "modelconnection",
                    "purpose",
                    models.CharField(
                        choices=[
                            ("chat", "Answers"),
                            ("embedder", "Search by meaning"),
                            ("reranker", "Reranking"),
                        ],
                        db_default="chat",
                        default="chat",
                        help_text="What the model is for.",
                        max_length=20,
                    ),
                ),
                migrations.AlterField(
                    "modelconnection",
                    "is_default",
                    models.BooleanField(
                        default=False,
                        help_text="It answers, or reranks, on the site where nothing else is"
                        " chosen. Which embedder is the default is kept with the embedding spaces.",
                    ),
                ),
            ],
            is_done=has_column,
        ),
        migrations.RunPython(replace_index, restore_index),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint("modelconnection", FORMER),
                migrations.AddConstraint(
                    "modelconnection",
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)), fields=("purpose",), name=INDEX
                    ),
                ),
            ],
        ),
    ]

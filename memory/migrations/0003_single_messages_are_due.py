"""Conversations of a single message, which waited for a second one, are due."""

from typing import Any

from django.db import migrations

from common.migration_operations import fill_in_steps


def make_due(apps: Any, schema_editor: Any) -> None:
    fill_in_steps(
        schema_editor.connection,
        table="memory_extractionitem",
        assignment="due_at = last_message_at",
        missing="state = 'waiting' AND due_at IS NULL",
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("memory", "0002_endings_of_facts")]

    operations = [migrations.RunPython(make_due, migrations.RunPython.noop, elidable=True)]
